/** The channels of drains: while patterns are matched, when they lose values, and when their tables are gone. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { DrainTable } from '../../../../server/wings/drains/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { FakeDestination, reload, samplesIn, tableTo } from './fake-destination.ts'

let destination: FakeDestination
let producer: TestProducer | undefined
beforeEach(async () => {
  destination = new FakeDestination()
  await destination.open()
})
afterEach(async () => {
  await producer?.stop()
  await destination.close()
})

const tableOf = (more: Partial<DrainTable> = {}): DrainTable => tableTo(destination.port, more)
const follow = (...tables: readonly DrainTable[]): void => reload(producer, tables)

async function start(more: Partial<DrainTable> = {}): Promise<Seat> {
  producer = await TestProducer.start({ config: { drain: [tableOf(more)] } })
  await producer.addUser('root', { role: 'admin' })
  return producer.seat('root')
}

function push(name: string, value: number, ms = 0): void {
  producer?.push.push(`test.${name}`, { type: BasicType.DOUBLE, value }, EPOCH + ms * 1_000, 'h')
}

/** Time goes on until it holds; the destination answers in real time. */
async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    producer?.clock.advance(500)
    await producer?.settle()
    await holds()
  })
}

async function ledger(seat: Seat): Promise<unknown> {
  const channels = decoded(await seat.query('producer.channels')) as { name: string }[]
  return channels.find(({ name }) => name === 'drain:d')
}

async function status(seat: Seat): Promise<unknown> {
  const sensors = decoded(await seat.query('producer.sensors')) as { name: string }[]
  return sensors.find(({ name }) => name === 'drain/d')
}

describe('the label for the tenant', () => {
  it('is on everything, and what has one of that name keeps it under another', async () => {
    await start({ tenantLabel: 'host', name: 'd' })
    push('a', 1)
    await until(() => expect(destination.samples).toEqual(['test_a{exported_host=h,host=default} 1 0']))
  })
})

describe('while its pattern is matched', () => {
  it('a drain delivers what is bound already, and says so', async () => {
    producer = await TestProducer.start({ config: { drain: [] } })
    await producer.addUser('root', { role: 'admin' })
    const seat = await producer.seat('root')
    const { hub } = producer.server.parts
    const bind = hub.bind.bind(hub)
    let isMatched = (): void => {}
    const matched = new Promise<void>((resolve) => {
      isMatched = resolve
    })
    hub.bind = (...given) => ({ ...bind(...given), matched })
    follow(tableOf({ metrics: ['test.*'] }))
    await producer.settle()
    push('a', 1)
    await until(() => expect(destination.samples).toEqual(['test_a{host=h} 1 0']))
    expect(await status(seat)).toMatchObject({ state: 'matching' })
    isMatched()
    await until(async () => expect(await status(seat)).toMatchObject({ state: 'sending' }))
  })
})

describe('what the channel of a drain loses', () => {
  it('is in the log at once, and then once a minute', async () => {
    destination.answer = () => ({ status: 503 })
    await start({ batchSize: 1 })
    const { registry } = producer!.server.parts.producer
    const channel = [...registry.all()].find(({ row }) => row.name === 'drain:d')!
    registry.configure(channel, { ...channel.row, maxBytes: 4_096, windowBytes: 4_096 })
    const lines = (): { lost: number }[] =>
      producer!.logged
        .map((line) => JSON.parse(line))
        .filter(({ msg }) => msg === 'the channel of a drain has lost values')
    const lose = (): void => {
      for (let value = 0; value < 500; value++) push('a', value, value)
    }
    lose()
    for (let second = 0; second < 30; second++) producer?.clock.advance(1_000)
    expect(lines()).toHaveLength(1)
    expect(lines()[0]?.lost).toBeGreaterThan(0)
    lose()
    for (let second = 0; second < 20; second++) producer?.clock.advance(1_000)
    expect(lines()).toHaveLength(1)
    for (let second = 0; second < 20; second++) producer?.clock.advance(1_000)
    expect(lines()).toHaveLength(2)
    const { overflow } = channel.queue.counts.dropped
    expect(lines().reduce((sum, { lost }) => sum + lost, 0)).toBe(overflow)
  })
})

describe('the channel of a drain that is not in the configuration any more', () => {
  it('collects nothing, keeps what waits, and goes on when the drain is back', async () => {
    destination.answer = () => ({ status: 503 })
    const seat = await start()
    push('a', 1)
    await until(() => expect(destination.requests.length).toBeGreaterThan(0))
    follow()
    await producer?.settle()
    push('a', 2, 1)
    expect(await ledger(seat)).toMatchObject({ accepted: 1, committed: 0 })
    expect(producer?.logged.join()).toContain("cinnabar user remove 'default/drain:d'")
    destination.answer = () => ({ status: 204 })
    destination.requests.length = 0
    follow(tableOf({ metrics: ['test.*'] }))
    await producer?.settle()
    push('a', 3, 2)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    expect(destination.samples).toEqual(['test_a{host=h} 1 0', 'test_a{host=h} 3 2'])
  })

  it('collects nothing after a restart without it either', async () => {
    const tables = [tableOf({ metrics: ['test.*'] })]
    producer = await TestProducer.start({ config: { drain: tables } })
    await producer.addUser('root', { role: 'admin' })
    await producer.settle()
    tables.length = 0
    producer = await producer.crash()
    const seat = await producer.seat('root')
    push('a', 1)
    expect(await ledger(seat)).toMatchObject({ accepted: 0, bound: 1 })
    expect(producer.logged.join()).toContain("cinnabar user remove 'default/drain:d'")
  })
})

describe('a reload while a pattern is being matched', () => {
  /** What the channel binds. */
  function bound(): string[] {
    const { registry } = producer!.server.parts.producer
    const channel = [...registry.all()].find(({ row }) => row.name === 'drain:d')
    return [...(channel?.bindings.values() ?? [])].map(({ instance }) => instance.selection.name).sort()
  }

  /** A server on which the patterns `test.m*` are matched until the function that it gives is called. */
  async function startMatching(): Promise<() => void> {
    producer = await TestProducer.start({ config: { drain: [] } })
    await producer.addUser('root', { role: 'admin' })
    const { hub } = producer.server.parts
    const bind = hub.bind.bind(hub)
    let isMatched = (): void => {}
    const matched = new Promise<void>((resolve) => {
      isMatched = resolve
    })
    hub.bind = (instance, ...rest) => {
      const source = bind(instance, ...rest)
      return instance.selection.name.startsWith('test.m') ? { ...source, matched } : source
    }
    return isMatched
  }

  it('binds what the last one names, and nothing of those before', async () => {
    const isMatched = await startMatching()
    follow(tableOf({ metrics: ['test.m*', 'test.b'] }))
    await producer?.settle()
    expect(bound()).toEqual(['test.m*'])
    follow(tableOf({ metrics: ['test.n*', 'test.c'] }))
    follow(tableOf({ metrics: ['test.c', 'test.d'] }))
    await producer?.settle()
    expect(bound()).toEqual(['test.c', 'test.d'])
    isMatched()
    await producer?.settle()
    expect(bound()).toEqual(['test.c', 'test.d'])
    for (const name of ['a', 'b', 'c', 'd', 'm', 'n']) push(name, 1)
    await until(() => expect(destination.samples).toEqual(['test_c{host=h} 1 0', 'test_d{host=h} 1 0']))
  })

  it('back to what was there before has all of it', async () => {
    const isMatched = await startMatching()
    const before = tableOf({ metrics: ['test.m*', 'test.b'] })
    follow(before)
    follow(tableOf({ metrics: ['test.c'] }))
    follow(before)
    await producer?.settle()
    const seat = await producer!.seat('root')
    expect(await status(seat)).toMatchObject({ state: 'matching' })
    isMatched()
    await producer?.settle()
    expect(bound()).toEqual(['test.b', 'test.m*'])
    push('b', 1)
    push('c', 2)
    push('more', 3)
    await until(() => expect([...destination.samples].sort()).toEqual(['test_b{host=h} 1 0', 'test_more{host=h} 3 0']))
  })

  it('that ends the drain lets its channel collect nothing, also when the pattern is matched', async () => {
    const isMatched = await startMatching()
    const seat = await producer!.seat('root')
    follow(tableOf({ metrics: ['test.m*', 'test.b'] }))
    await producer?.settle()
    follow()
    isMatched()
    await producer?.settle()
    push('more', 1)
    push('b', 1)
    expect(bound()).toEqual(['test.m*'])
    expect(await ledger(seat)).toMatchObject({ accepted: 0 })
    follow(tableOf({ metrics: ['test.m*', 'test.b'] }))
    await producer?.settle()
    push('more', 2, 1)
    push('b', 2, 1)
    await until(() => expect([...destination.samples].sort()).toEqual(['test_b{host=h} 2 1', 'test_more{host=h} 2 1']))
  })
})

describe('a metric that is not named any more', () => {
  it('collects nothing; what waits of it is delivered, and then its binding ends', async () => {
    destination.answer = () => ({ status: 503 })
    const seat = await start({ metrics: ['test.a', 'test.b'] })
    push('a', 1)
    push('b', 2, 1)
    await until(() => expect(destination.requests.length).toBeGreaterThan(0))
    // A mistake, such as a name with a typo.
    follow(tableOf({ metrics: ['test.a', 'test.bb'] }))
    await producer?.settle()
    push('b', 3, 2)
    expect(await ledger(seat)).toMatchObject({ accepted: 2, committed: 0, bound: 3, dropped: { stopped: 0 } })
    destination.answer = () => ({ status: 204 })
    destination.requests.length = 0
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    expect(destination.samples).toEqual(['test_a{host=h} 1 0', 'test_b{host=h} 2 1'])
    follow(tableOf({ metrics: ['test.a', 'test.cc'] }))
    await producer?.settle()
    expect(await ledger(seat)).toMatchObject({ bound: 2 })
  })

  it('goes on when it is named again', async () => {
    destination.answer = () => ({ status: 503 })
    const seat = await start({ metrics: ['test.a', 'test.b'] })
    push('b', 1)
    follow(tableOf({ metrics: ['test.a'] }))
    await producer?.settle()
    follow(tableOf({ metrics: ['test.a', 'test.b'] }))
    await producer?.settle()
    push('b', 2, 1)
    expect(await ledger(seat)).toMatchObject({ accepted: 2, bound: 2, dropped: { stopped: 0 } })
  })
})

describe('another role', () => {
  it('ends what it does not allow, at once and with what waits, as rules do', async () => {
    destination.answer = () => ({ status: 503 })
    const seat = await start({ metrics: ['test.a', 'test.b'], role: 'wide' })
    await done(seat, 'role.deny', { role: 'narrow', command: 'COLLECT', object: 'test.b' })
    push('a', 1)
    push('b', 2)
    follow(tableOf({ metrics: ['test.a', 'test.b'], role: 'narrow' }))
    await producer?.settle()
    push('b', 3)
    expect(await ledger(seat)).toMatchObject({ accepted: 2, bound: 1, dropped: { purged: 1 } })
  })
})

describe('a right that is withdrawn', () => {
  it.each([
    ['its name', ['test.a', 'test.b']],
    ['a pattern', ['test.*']],
  ])('to what is bound by %s: what was read before is in no request from then on', async (_, metrics) => {
    destination.answer = () => ({ status: 503 })
    const seat = await start({ metrics, role: 'narrow' })
    push('a', 1)
    push('b', 2)
    await until(() => expect(destination.samples).toContain('test_b{host=h} 2 0'))
    await done(seat, 'role.deny', { role: 'narrow', command: 'COLLECT', object: 'test.b' })
    const before = destination.requests.length
    destination.answer = () => ({ status: 204 })
    push('a', 3, 1)
    const later = (): string[] => destination.requests.slice(before).flatMap(({ body }) => samplesIn(body))
    await until(() => expect(later()).toContain('test_a{host=h} 3 1'))
    expect(later().filter((sample) => sample.startsWith('test_b'))).toEqual([])
  })
})
