/** A server that consumes another one: names, values, and what is asked for there. Both run here, connected in memory. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as pathOf } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { args, command, frame, join, str, type, u32, u64 } from '../../../support/bytes.ts'
import { CommonTime } from '../../../support/common-time.ts'
import { eventually } from '../../../support/eventually.ts'
import { joinedPair, networkOf } from '../../../support/memory-network.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { separateStore } from '../../../support/separate-store.ts'
import { PushSensor } from '../../../support/test-sensor.ts'

const PASSWORD = 'the-password-of-the-main-monitor'

let directory: string
let lower: TestProducer
let upper: TestProducer
let top: TestProducer | undefined
let time: CommonTime
let seat: Seat
/** A login at each look would take longer than all else. */
let looker: { readonly at: TestProducer; readonly seat: Seat } | undefined
/** What another one says to whoever connects to it. */
let say: (far: Duplex) => void

/** By the names of their hosts. */
const connect = networkOf({
  lower: () => lower.accept(),
  upper: () => upper.accept(),
  top: () => top?.accept(),
  bad: () => {
    const [near, far] = joinedPair()
    far.on('error', () => {})
    setImmediate(() => say(far))
    return near
  },
})

const startLower = async (generation = 'first') =>
  TestProducer.start({ clock: time.clock, store: await separateStore(generation) })

const table = (more: object = {}) => ({
  name: 'east',
  url: 'tcp://lower',
  where: 'tcp://lower',
  listen: undefined,
  tenant: 'default',
  metrics: ['*'],
  controls: [],
  user: 'main',
  tokenFile: undefined,
  secretFile: pathOf(directory, 'secret'),
  ca: undefined,
  cert: undefined,
  key: undefined,
  serverName: undefined,
  intervalMs: 60_000,
  maxSeries: 1000,
  valuesPerSecond: 0,
  ...more,
})

beforeEach(async () => {
  directory = mkdtempSync(pathOf(tmpdir(), 'cinnabar-upstream-'))
  writeFileSync(pathOf(directory, 'secret'), `${PASSWORD}\n`)
  time = new CommonTime()
  lower = await startLower()
  await lower.addUser('main', { role: 'consumer', password: PASSWORD })
  upper = await TestProducer.start({ clock: time.clock, config: { upstream: [table()] } as never, connect })
  await until(async () => expect(await upstream()).toMatchObject({ state: 'listening' }))
  seat = await upper.seat('watcher')
})
afterEach(async () => {
  await upper.stop()
  await lower.stop()
  time.end()
  rmSync(directory, { recursive: true })
})

const until = (holds: () => void | Promise<void>) => time.until(holds)

/** What `producer.sensors` says of it. */
async function upstream(): Promise<Json | undefined> {
  if (looker?.at !== upper) looker = { at: upper, seat: await upper.seat('looker') }
  const sensors = decoded(await looker.seat.query('producer.sensors')) as Json[]
  return sensors.find((sensor) => sensor.name === 'upstream/east')
}

/** The ids that are bound at the lower server, but for the changes of its catalogue: one that is collected may not be bound yet. */
function boundBelow(): number {
  const bound = [...lower.server.parts.producer.instances.all()].filter(({ boundOn }) => boundOn.size > 0)
  return bound.filter(({ selection }) => selection.name !== 'producer.catalogue').length
}

const of = (producer: string, ...more: readonly (readonly [string, number, Uint8Array])[]) =>
  args(['producer', type.string, str(producer)], ...more)
const h1 = ['host', type.string, str('h1')] as const

describe('QUERY with `producer`', () => {
  it('asks the upstream, and nobody else', async () => {
    upper.emit(1)
    lower.emit(2)
    expect(decoded(await seat.query('test.a', args(h1)))).toBe(1)
    expect(decoded(await seat.query('test.a', of('east', h1)))).toBe(2)
  })

  it('gives the list of a name that came since the catalogue was read', async () => {
    lower.emit(2, 'test.new')
    expect(decoded(await seat.query('test.new', of('east')))).toMatchObject([{ host: 'h1', value: 2 }])
    expect(decoded(await seat.query('test.new', of('east', h1)))).toBe(2)
  })

  it('gives the records of a pattern with their producers, this one among them', async () => {
    upper.emit(1)
    lower.emit(2)
    lower.emit(3, 'test.b')
    expect(decoded(await seat.query('test.*', of('east')))).toMatchObject([
      { name: 'test.a', host: 'h1', value: 2 },
      { name: 'test.b', host: 'h1', value: 3 },
    ])
    expect(decoded(await seat.query('test.*', of('*')))).toMatchObject([
      { name: 'test.a', producer: 'east', host: 'h1', value: 2 },
      { name: 'test.b', producer: 'east', host: 'h1', value: 3 },
      { name: 'test.a', producer: 'n1', host: 'h1', value: 1 },
    ])
  })
})

describe('SUBSCRIBE with `producer`', () => {
  it('follows what the upstream gets', async () => {
    const id = await seat.collect('test.*', of('*'))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    await until(() => expect(boundBelow()).toBe(1))
    lower.emit(5)
    upper.emit(6)
    await until(() => {})
    const values = [await seat.value(), await seat.value()].map((value) => decoded(value))
    expect(values).toContainEqual({ name: 'test.a', producer: 'east', host: 'h1', value: 5 })
    expect(values).toContainEqual({ name: 'test.a', producer: 'n1', host: 'h1', value: 6 })
  })
})

describe('a durable channel', () => {
  /** The ledger of the channel at the upstream that brings its values. */
  const below = async (): Promise<Json | undefined> => {
    const main = await lower.seat('main')
    const channels = decoded(await main.query('producer.channels')) as Json[]
    main.peer.destroy()
    return channels.find(({ name }) => String(name).startsWith('upstream:'))
  }
  const follow = async (metric = 'test.a', list = of('east', h1)): Promise<number> => {
    const id = await seat.collect(metric, list)
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    return id
  }
  const uint32 = (value: number) => new Uint8Array(new Uint32Array([value]).buffer).reverse()
  const numbers = (values: readonly { readonly value: unknown }[]) => values.map((value) => decoded(value as never))

  it('has its values from a durable channel there, which is emptied when they are on the disk here', async () => {
    await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    lower.emit(1)
    await seat.values(1)
    await until(async () => expect(await below()).toMatchObject({ committed: 1 }))
    upper.store.manual = true
    for (let value = 2; value <= 5; value++) lower.emit(value)
    await until(async () => expect(await below()).toMatchObject({ accepted: 5, committed: 1, in_flight: 4 }))
    await until(async () => expect(await upstream()).toMatchObject({ counters: { values: 5 } }))
    // After a crash they would come again, with other ids.
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
    upper.store.manual = false
    upper.store.complete()
    expect(numbers(await seat.values(4))).toEqual([2, 3, 4, 5])
    await until(async () => expect(await below()).toMatchObject({ accepted: 5, committed: 5, in_flight: 0 }))
  })

  it('is bound there at once, without a look at the clock', async () => {
    await follow()
    await eventually(() => expect(boundBelow()).toBe(1))
  })

  it('gets what the upstream kept while this server was away, once and in order', async () => {
    const { channel } = seat
    await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    lower.emit(1)
    await seat.values(1)
    upper.store.manual = true
    lower.emit(2)
    await until(async () => expect(await upstream()).toMatchObject({ counters: { values: 2 } }))
    upper = await upper.crash()
    lower.emit(3)
    seat = await upper.seat('watcher')
    await seat.setChannel(channel)
    await until(async () => expect(await below()).toMatchObject({ accepted: 3, committed: 3 }))
    const values = await seat.values(3)
    expect(numbers(values)).toEqual([1, 2, 3])
    expect(await seat.ledger()).toMatchObject({ accepted: 3 })
  })

  it('stays bound there while this server is stopped', async () => {
    await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    const { bindings } = await below()
    upper = await time.over(upper.restart())
    await until(async () => expect(await upstream()).toMatchObject({ state: 'listening' }))
    // Another id would be another binding, and what came between the two would be lost.
    expect((await below()).bindings).toEqual(bindings)
  })

  it('goes on when the upstream is back', async () => {
    await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    lower.emit(1)
    await seat.values(1)
    lower = await time.over(lower.restart())
    lower.emit(2)
    await until(async () => expect(await upstream()).toMatchObject({ state: 'listening' }))
    lower.emit(3)
    expect(numbers(await seat.values(2))).toEqual([2, 3])
    await until(async () => expect(await below()).toMatchObject({ queued: 0, in_flight: 0, bound: 1 }))
    expect(await seat.ledger()).toMatchObject({ accepted: 3 })
  })

  it('begins with the last value, also if others have followed it before', async () => {
    await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    lower.emit(1)
    await seat.values(1)
    await follow()
    expect(numbers(await seat.values(1))).toEqual([1])
  })

  it('stops there what nobody wants here any more', async () => {
    const id = await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    await seat.ok((seq) => command.stop(seq, id, 0))
    await until(async () => expect(await below()).toMatchObject({ bound: 0 }))
  })

  it('reports what the upstream has lost, with its reason and with the id here', async () => {
    const id = await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    const { channel } = (await below()) as { channel: number }
    lower.emit(1)
    await seat.values(1)
    upper.store.manual = true
    const main = await lower.seat('main')
    await main.execute(
      'channel.configure',
      ['channel', type.uint32, uint32(channel)],
      ['window', type.uint32, uint32(1)],
    )
    for (let value = 2; value <= 5; value++) lower.emit(value)
    await until(async () => expect(await below()).toMatchObject({ queued: 3 }))
    await main.execute('channel.purge', ['channel', type.uint32, uint32(channel)])
    upper.store.manual = false
    upper.store.complete()
    expect(await seat.gap()).toMatchObject({ metric: id, reason: 4 })
    main.peer.destroy()
  })

  it('reports that the upstream is another one than before', async () => {
    const id = await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    lower.emit(1)
    await seat.values(1)
    await time.over(lower.stop())
    lower = await startLower('another')
    await lower.addUser('main', { role: 'consumer', password: PASSWORD })
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    expect(await seat.gap()).toMatchObject({ metric: id, reason: 9, count: 0 })
    lower.emit(2)
    expect(numbers(await seat.values(1))).toEqual([2])
  })

  it('that is durable no more is fed by the other connection, and back', async () => {
    await follow()
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    const configure = (durable: boolean) =>
      seat.execute(
        'channel.configure',
        ['channel', type.uint32, uint32(0)],
        ['durable', type.boolean, uint32(Number(durable))],
      )
    await configure(false)
    await until(async () => expect(await below()).toMatchObject({ bound: 0 }))
    await until(() => expect(boundBelow()).toBe(1))
    lower.emit(1)
    expect(await seat.value()).toMatchObject({ transaction: 0 })
    await configure(true)
    await until(async () => expect(await below()).toMatchObject({ bound: 1 }))
    lower.emit(2)
    expect((await seat.value()).transaction).toBeGreaterThan(0)
  })
})

describe('rights', () => {
  it('are those of the tenant of the table: to others there is no such producer', async () => {
    lower.emit(1)
    await upper.addUser('abroad', { tenant: 'other' })
    const abroad = await upper.seat('abroad', 'other')
    const ask = (name: string, producer: string) => abroad.ask((seq) => command.query(seq, name, of(producer)))
    expect(await ask('test.a', 'east')).toMatchObject({ status: 7 })
    expect(await ask('test.a', 'nowhere')).toMatchObject({ status: 7 })
    expect(decoded(await abroad.query('test.*', of('*')))).toEqual([])
  })

  it('are judged for each series, with the producer among the arguments', async () => {
    await upper.addUser('root', { role: 'admin' })
    const root = await upper.seat('root')
    upper.emit(1)
    lower.emit(2)
    lower.emit(3, 'test.b')
    await upper.addUser('warden', { role: 'warden' })
    const warden = await upper.seat('warden')
    const rule = { role: 'warden', command: 'COLLECT', object: 'test.a', where: 'producer=east' }
    await done(root, 'role.deny', rule)
    expect(decoded(await warden.query('test.*', of('*')))).toMatchObject([
      { name: 'test.b', producer: 'east', value: 3 },
      { name: 'test.a', producer: 'n1', value: 1 },
    ])
    expect(decoded(await warden.query('test.a', of('east', h1)))).toBeNull()
  })
})

describe('what is known of an upstream', () => {
  const records = async (list = args()) => decoded(await seat.query('upstream.up', list)) as Json[]

  it('is whether it is connected, as a metric that begins with the last value', async () => {
    expect(await records()).toMatchObject([{ producer: 'east', value: true }])
    expect(await records(of('west'))).toEqual([])
    const id = await seat.collect('upstream.up', of('east'))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    expect(decoded(await seat.value())).toMatchObject({ value: true })
    await time.over(lower.stop())
    expect(decoded(await seat.value())).toMatchObject({ value: false })
    lower = await startLower()
    await lower.addUser('main', { role: 'consumer', password: PASSWORD })
    await until(async () => expect(await records()).toMatchObject([{ value: true }]))
  })
})

describe('the catalogue of an upstream', () => {
  it('is read again when it says that it has changed, and not after a minute', async () => {
    const metrics = async (of: Seat) =>
      (decoded(await of.query('producer.metrics', args(['match', type.string, str('fresh.*')]))) as Json[]).map(
        ({ name }) => name,
      )
    const told = await seat.collect('producer.catalogue')
    await seat.ok((seq) => command.subscribe(seq, told, 0))
    new PushSensor(lower.server.parts.hub, 'fresh.').push('fresh.a', { type: BasicType.UINT32, value: 1 }, 1)
    const begunMs = upper.clock.monotonicMs()
    await until(async () => expect(await metrics(seat)).toEqual(['fresh.a']))
    expect(upper.clock.monotonicMs() - begunMs).toBeLessThan(30_000)
    await until(() => expect(seat.rest().filter(({ kind }) => kind === 'value')).toHaveLength(1))
    upper.clock.advance(5_000)
    await upper.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  })
})

describe('an upstream that is none', () => {
  /** A frame of PRODUCER_CAPS with one method. */
  const greeting = frame(u32(0xfffffffe), u32(1), u32(1), u32(1), str('auth'), u32(7), str('scram-sha-256'))

  it.each([
    ['speaks HTTP', (far: Duplex) => far.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'violates the protocol'],
    ['sends a frame that is too long', (far: Duplex) => far.write(u32(0x7ffffffc)), 'violates the protocol'],
    [
      'sends values before the login',
      (far: Duplex) => far.write(join(greeting, frame(u32(7), u64(1), u64(1), u32(11)))),
      'before the login',
    ],
    ['closes at once', (far: Duplex) => far.destroy(), 'closed the connection'],
    [
      'is another one, without the secret',
      (far: Duplex) => {
        far.write(greeting)
        far.once('data', () => far.write(frame(u32(0xffffffff), u32(1), u32(0), u32(9))))
      },
      'without proving',
    ],
  ])('and %s costs itself alone', async (_, says, problem) => {
    say = says
    for (const source of upper.server.parts.sources) {
      source.reload?.({
        ...defaultConfig(),
        upstream: [table(), table({ name: 'bad', url: 'tcp://bad' })],
      })
    }
    await until(async () => {
      const sensors = decoded(await seat.query('producer.sensors')) as Json[]
      const bad = sensors.find(({ name }) => name === 'upstream/bad')
      expect(bad).toMatchObject({ state: 'failed', detail: expect.stringContaining(problem) })
    })
    lower.emit(9)
    expect(decoded(await seat.query('test.a', of('east', h1)))).toBe(9)
  })
})

describe('a reload', () => {
  it('that changes a table loses nothing, and repeats nothing', async () => {
    const id = await seat.collect('test.a', of('east', h1))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    const stored = () =>
      [...lower.server.parts.producer.registry.all()].find(({ row }) => row.name.startsWith('upstream:'))
    await until(() => expect(stored()?.bindings.size).toBe(1))
    lower.emit(1)
    await seat.value()
    const sources = upper.server.parts.sources
    for (const source of sources) source.reload?.({ ...defaultConfig(), upstream: [table({ maxSeries: 999 })] })
    lower.emit(2)
    await until(async () => expect(await upstream()).toMatchObject({ state: 'listening', counters: { values: 1 } }))
    lower.emit(3)
    expect([await seat.value(), await seat.value()].map((value) => decoded(value))).toEqual([2, 3])
    await until(async () => expect(await seat.ledger()).toMatchObject({ accepted: 3 }))
  })
})

it('is connected to over the network', async () => {
  const listen = { tcp: { host: '127.0.0.1', port: 0 } }
  const far = await TestProducer.start({ config: { listen } as never, store: await separateStore('far') })
  await far.addUser('main', { role: 'consumer', password: PASSWORD })
  const url = `tcp://127.0.0.1:${far.server.tcp?.port}`
  const near = await TestProducer.start({ config: { upstream: [table({ url })] } as never })
  try {
    far.emit(5)
    const watcher = await near.seat('watcher')
    await eventually(async () => expect(decoded(await watcher.query('test.a', of('east', h1)))).toBe(5))
  } finally {
    await near.stop()
    await far.stop()
  }
})

describe('a tree', () => {
  const startTop = async (url: string): Promise<TestProducer> => {
    const store = await separateStore('top')
    const config = { upstream: [table({ name: 'main', url })] } as never
    top = await TestProducer.start({ clock: time.clock, config, store, connect })
    return top
  }
  const problemOf = async (of: TestProducer): Promise<string> => {
    const watcher = await of.seat('looker')
    const sensors = decoded(await watcher.query('producer.sensors')) as Json[]
    watcher.peer.destroy()
    return sensors.find((sensor) => sensor.name === 'upstream/main')?.detail
  }
  afterEach(async () => {
    await top?.stop()
    top = undefined
  })

  it('has paths: what one below consumes is asked through it', async () => {
    await upper.addUser('main', { role: 'consumer', password: PASSWORD })
    const uppermost = await startTop('tcp://upper')
    lower.emit(7)
    seat = await uppermost.seat('watcher')
    await until(async () => {
      const answer = decoded(await seat.query('test.a', of('*/*', h1)))
      expect(answer).toMatchObject([{ producer: 'main/east', value: 7 }])
    })
    expect(decoded(await seat.query('test.a', of('main/east', h1)))).toBe(7)
    const id = await seat.collect('test.a', of('main/*', h1))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    await until(async () => {
      const channels = decoded(await (await lower.seat('main')).query('producer.channels')) as Json[]
      const name = expect.stringMatching(/^upstream:/)
      expect(channels).toContainEqual(expect.objectContaining({ name, bound: 1 }))
    })
    lower.emit(8)
    let value: Json
    void seat.value().then((message) => {
      value = decoded(message)
    })
    await until(async () => expect(value).toEqual({ producer: 'main/east', value: 8 }))
  })

  it('has no circles', async () => {
    const own = await startTop('tcp://top')
    await own.addUser('main', { role: 'consumer', password: PASSWORD })
    await until(async () => expect(await problemOf(own)).toContain('circle'))
  })
})
