/** Section 15, Liveness: what is no longer allowed ends at once, and what is lost with it is reported. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Labels, Measurement, Metric, PolledSensor } from '../../../server/kernel/metrics/metric.ts'
import { done, newToken, run, tokenSeat } from '../../support/administration.ts'
import { command, status } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { balance, decoded } from '../../support/records.ts'
import { numberOf, type Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

const WITHDRAWN = 4
const PURGED = 4

let producer: TestProducer
let root: Seat
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('op', { role: 'operator' })
  root = await producer.seat('root')
  seat = await producer.seat('op')
})
afterEach(() => producer.stop())

const deny = (object: string, where = ''): Promise<number> =>
  done(root, 'role.deny', { role: 'operator', command: 'COLLECT', object, where })
const push = (name: string, value: number, host: string) => producer.push.push(name, { type: 2, value }, value, host)

describe('a binding that a new rule forbids', () => {
  it('ends with NOTICE 4; its queued values are a GAP; the connection and other bindings stay', async () => {
    const channel = await seat.defChannel()
    const kept = await seat.follow('test.kept', channel)
    const id = await seat.follow('test.gone', channel)
    for (const value of [1, 2, 3]) producer.emit(value, 'test.gone')
    producer.emit(4, 'test.kept')
    await deny('test.gone')
    producer.emit(5, 'test.gone')
    expect(await seat.ledger(channel)).toMatchObject({
      accepted: 4,
      queued: 1,
      dropped: { purged: 3 },
      bindings: [{ metric: kept, name: 'test.kept' }],
    })
    expect(await seat.ask((seq) => command.get(seq, id))).toMatchObject({ status: status.NO_SUCH_ID })
    await seat.setChannel(channel)
    expect(numberOf(await seat.value())).toBe(4)
    expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 3, metric: id })
    await deny('test.kept')
    expect(await seat.notice()).toMatchObject({ code: WITHDRAWN, channel })
    await producer.settle()
    expect(seat.peer.closed).toBe(false)
  })

  it('does not come back with a restart, nor its values', async () => {
    const channel = await seat.defChannel()
    const id = await seat.follow('test.gone', channel)
    for (const value of [1, 2, 3]) producer.emit(value, 'test.gone')
    await deny('test.gone')
    await producer.settle()
    producer = await producer.crash()
    seat = await producer.seat('op')
    producer.emit(4, 'test.gone')
    expect(await seat.ledger(channel)).toMatchObject({ queued: 0, dropped: { purged: 3 }, bindings: [] })
    expect(await seat.ask((seq) => command.subscribe(seq, id))).toMatchObject({ status: status.NO_SUCH_ID })
    await seat.setChannel(channel)
    expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 3 })
  })

  it('ends when it comes back from the store, should the rule be there and the end be lost', async () => {
    const channel = await seat.defChannel()
    await seat.follow('test.gone', channel)
    const stats = await seat.collect('producer.stats')
    await seat.ok((seq) => command.subscribe(seq, stats, channel))
    producer.emit(1, 'test.gone')
    const { journal } = producer.server.parts.producer
    for (const [number, object] of ['test.gone', 'producer.stats'].entries()) {
      const row = { number, role: 'operator', effect: 'deny', command: 'COLLECT', object, where: '{}' } as const
      journal.change({ put: 'rule', row })
    }
    await journal.whenStored()
    producer = await producer.crash()
    seat = await producer.seat('op')
    producer.emit(2, 'test.gone')
    producer.clock.advance(60_000)
    expect(await seat.ledger(channel)).toMatchObject({ queued: 0, dropped: { purged: 2 }, bindings: [] })
  })

  it('ends where it was BUFFERed too: what waited is reported in the sending order', async () => {
    const id = await seat.hoard('test.gone')
    for (const value of [1, 2]) producer.emit(value, 'test.gone')
    await deny('test.gone')
    expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 2, metric: id })
    expect(balance(await seat.ledger())).toBe(0)
  })

  it('is not polled any more', async () => {
    const id = await seat.collect('slow.value')
    await seat.ok((seq) => command.subscribe(seq, id))
    const timers = producer.clock.timers
    await deny('slow.*')
    expect(await seat.notice()).toMatchObject({ code: WITHDRAWN })
    expect(producer.clock.timers).toBeLessThan(timers)
  })

  it('of events ends as well', async () => {
    const id = await seat.collect('events.thing')
    await seat.ok((seq) => command.subscribe(seq, id))
    producer.things.happen(1, 1)
    expect(numberOf(await seat.value())).toBe(1)
    await deny('events.*')
    expect(await seat.notice()).toMatchObject({ code: WITHDRAWN })
    producer.things.happen(2, 2)
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  })

  it('concerns the users of that role alone', async () => {
    const other = await producer.seat('tester')
    await other.follow('test.a')
    await root.follow('test.a')
    await deny('test.a')
    producer.emit(1)
    for (const one of [other, root]) expect(numberOf(await one.value())).toBe(1)
  })

  it('also ends an id that is bound nowhere', async () => {
    const id = await seat.collect('test.a')
    await deny('test.a')
    expect(await seat.ask((seq) => command.subscribe(seq, id))).toMatchObject({ status: status.NO_SUCH_ID })
  })
})

describe('a pattern', () => {
  it('loses what is forbidden and keeps the rest; what is allowed again comes back', async () => {
    const channel = await seat.defChannel()
    const id = await seat.collect('test.*')
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    push('test.a', 1, 'h1')
    push('test.a', 2, 'h2')
    const rule = await deny('test.*', 'host=h2')
    push('test.a', 3, 'h1')
    push('test.a', 4, 'h2')
    expect(await seat.ledger(channel)).toMatchObject({ accepted: 3, queued: 1, dropped: { purged: 2 } })
    await done(root, 'role.forget', { rule })
    push('test.a', 5, 'h2')
    await seat.setChannel(channel)
    expect((await seat.values(2)).map((value) => decoded(value))).toEqual([
      { name: 'test.a', host: 'h1', value: 3 },
      { name: 'test.a', host: 'h2', value: 5 },
    ])
    expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 2, metric: id })
  })

  it('that loses nothing keeps what is queued', async () => {
    const channel = await seat.defChannel()
    const id = await seat.collect('test.*')
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    push('test.a', 1, 'h1')
    await deny('test.b')
    expect(await seat.ledger(channel)).toMatchObject({ queued: 1, dropped: { purged: 0 } })
  })
})

describe('a new role', () => {
  it('is in force on open connections, both ways', async () => {
    const feed = new PushSensor(producer.server.parts.hub, 'north.', { tenant: 'north' })
    const emit = (value: number) => feed.push('north.a', { type: 2, value }, value)
    await done(root, 'user.role', { user: 'op', role: 'admin' })
    await seat.follow('north.a')
    const pattern = await seat.collect('*.a')
    await seat.ok((seq) => command.subscribe(seq, pattern))
    emit(1)
    await seat.values(2)
    await done(root, 'user.role', { user: 'op', role: 'consumer' })
    expect(await seat.notice()).toMatchObject({ code: WITHDRAWN, channel: seat.channel })
    emit(2)
    producer.emit(3)
    expect(decoded(await seat.value())).toEqual({ name: 'test.a', host: 'h1', value: 3 })
    expect(await seat.ask((seq) => command.collect(seq, 'north.a'))).toMatchObject({ status: status.NO_SUCH_METRIC })
    await done(root, 'user.role', { user: 'op', role: 'admin' })
    emit(4)
    expect(decoded(await seat.value())).toEqual({ name: 'north.a', host: 'h1', value: 4 })
  })

  it('survives a crash', async () => {
    await done(root, 'user.role', { user: 'op', role: 'consumer' })
    producer = await producer.crash()
    expect(producer.server.parts.producer.accounts.find('default', 'op')?.role).toBe('consumer')
  })
})

describe('a token', () => {
  it('that is revoked ends its sessions within a second, and no others', async () => {
    const { token, hash } = newToken()
    const id = await done(root, 'token.add', { user: 'op', hash })
    const session = await tokenSeat(producer, token)
    await done(root, 'token.revoke', { token: id })
    producer.clock.advance(1000)
    expect(await session.notice()).toMatchObject({ code: WITHDRAWN })
    await session.closed()
    await expect(tokenSeat(producer, token)).rejects.toThrow('status 2')
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
  })

  it('goes with its user, who may come back without it', async () => {
    const { token, hash } = newToken()
    await done(root, 'token.add', { user: 'op', hash })
    await done(root, 'user.remove', { user: 'op' })
    await seat.closed()
    await run(root, 'user.add', { user: 'op' })
    await expect(tokenSeat(producer, token)).rejects.toThrow('status 2')
    expect(await done(root, 'token.list')).toEqual([])
    producer = await producer.crash()
    await expect(tokenSeat(producer, token)).rejects.toThrow('status 2')
  })
})

/** Polled metrics `come.*`, which come and go. */
class ComingSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'come.'
  readonly owner = { tenant: 'default' }
  readonly personal = false
  readonly names = new Set(['come.a', 'come.b'])

  metrics(): Iterable<Metric> {
    return [...this.names].map(comingMetric)
  }

  metric(name: string): Metric | undefined {
    return this.names.has(name) ? comingMetric(name) : undefined
  }

  labels({ name }: Metric): Labels {
    return { name }
  }

  check(): void {}

  measure(): Measurement {
    return { value: { type: 2, value: 7 }, time: EPOCH }
  }
}

function comingMetric(name: string): Metric {
  return { name, kind: 'continuous', type: BasicType.UINT32, unit: '', description: '', parameters: [] }
}

describe('what has gone of its own accord', () => {
  let coming: ComingSensor
  beforeEach(() => {
    coming = new ComingSensor()
    producer.server.parts.hub.add(coming)
  })

  /** Binds it where nobody takes the values; returns its id, and the channel with one value of each metric that it selects. */
  async function wait(metric: string): Promise<{ channel: number; id: number }> {
    const channel = await seat.defChannel()
    const id = await seat.collect(metric)
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    return { channel, id }
  }

  it.each([
    ['come.a', 1],
    ['come.*', 2],
  ])('%s: keeps its binding and its values when a rule changes that does not forbid it', async (metric, count) => {
    const { channel, id } = await wait(metric)
    coming.names.delete('come.a')
    const rule = { role: 'operator', command: 'COLLECT', object: 'come.*' }
    await done(root, 'role.deny', { ...rule, where: 'host=elsewhere' })
    const bindings = [{ metric: id, name: metric }]
    expect(await seat.ledger(channel)).toMatchObject({ queued: count, dropped: { purged: 0 }, bindings })
    coming.names.add('come.a')
    await done(root, 'user.role', { user: 'op', role: 'consumer' })
    expect(await seat.ledger(channel)).toMatchObject({ queued: count + 1, dropped: { purged: 0 }, bindings })
  })

  it.each(['come.a', 'come.*'])('%s: is purged when a rule forbids it, and the log says how many', async (metric) => {
    const { channel } = await wait(metric)
    coming.names.delete('come.b')
    await deny('come.a')
    expect(await seat.ledger(channel)).toMatchObject({ queued: 0 })
    const lines = producer.logged.filter((line) => line.includes('values that waited in a channel were dropped'))
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', tenant: 'default', user: 'op', channel, metric, cause: 'right withdrawn' },
    ])
  })

  it('a pushed series that dies, or whose sensor is fenced, while rights are judged is no loss of a right', async () => {
    const channel = await seat.defChannel()
    const id = await seat.collect('test.*')
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    push('test.a', 1, 'h1')
    push('test.b', 2, 'h1')
    const { hub, instances } = producer.server.parts.producer
    const [instance] = [...instances.all()].filter((one) => one.id === id)
    if (instance === undefined) throw new Error('it is not there')
    const steps = hub.rematch(instance)
    steps.next()
    producer.push.die('test.a')
    producer.push.die('test.b')
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    expect(step.value).toBeUndefined()
  })
})
