/** Section 8.1, Orphans: channels that nobody finds again cost no measurements, and no loss goes unreported. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Measurement, Metric, PolledSensor } from '../../../server/kernel/metrics/metric.ts'
import { defaultConfig, type ReloadableConfig } from '../../../server/start/config.ts'
import { args, command, status, str, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { balance } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

type Setting = readonly [string, number, Uint8Array]
const AFTER_MS = 60_000
const paused = 'GAP 8, 0'

/** `count.value`: how often it was measured. */
class CountingSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'count.'
  readonly owner = 'producer'
  readonly personal = false
  asked = 0
  readonly #metric: Metric = {
    name: 'count.value',
    kind: 'continuous',
    type: BasicType.UINT32,
    unit: '1',
    description: 'counts its measurements',
    parameters: [],
  }

  metrics(): Iterable<Metric> {
    return [this.#metric]
  }

  metric(name: string): Metric | undefined {
    return name === this.#metric.name ? this.#metric : undefined
  }

  labels({ name }: Metric) {
    return { name }
  }

  check(): void {}

  measure(): Measurement {
    this.asked++
    return { value: { type: BasicType.UINT32, value: this.asked }, time: EPOCH + this.asked }
  }
}

let sensor: CountingSensor
let producer: TestProducer
beforeEach(async () => {
  producer = await start()
})
afterEach(() => producer.stop())

function start(orphanAfterMs = AFTER_MS, reloadable?: ReloadableConfig): Promise<TestProducer> {
  sensor = new CountingSensor()
  const config = { channels: { orphanAfterMs } }
  return TestProducer.start({ config, sensors: (hub) => hub.add(sensor), ...(reloadable && { reloadable }) })
}

async function subscribe(seat: Seat, metric = 'count.value', channel = 0): Promise<void> {
  const id = await seat.collect(metric)
  await seat.ok((seq) => command.subscribe(seq, id, channel))
}

async function leave(seat: Seat): Promise<void> {
  seat.peer.destroy()
  await producer.settle()
}

async function pass(ms: number): Promise<void> {
  producer.clock.advance(ms)
  await producer.settle()
}

/** A connection that has taken a channel, and what has come on it. */
async function take(channel: number): Promise<{ seat: Seat; came: () => Promise<(string | number)[]> }> {
  const seat = await producer.seat()
  await seat.setChannel(channel)
  const came = async (): Promise<(string | number)[]> => {
    await producer.settle()
    return seat.rest().flatMap((message): (string | number)[] => {
      if (message.kind === 'gap') return [`GAP ${message.reason}, ${message.count}`]
      return message.kind === 'value' ? [message.bytes.readUInt32BE(message.bytes.length - 4)] : []
    })
  }
  return { seat, came }
}

/** The channel of a consumer that has subscribed a metric and is gone. */
async function abandoned(metric?: string): Promise<number> {
  const seat = await producer.seat()
  await subscribe(seat, metric)
  await leave(seat)
  return seat.channel
}

async function stateOf(channel: number): Promise<unknown> {
  const watcher = await producer.seat()
  const { state } = await watcher.ledger(channel)
  await leave(watcher)
  return state
}

const upTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at)

describe('an orphan', () => {
  it('is a channel that nobody came back for in an hour', async () => {
    await producer.stop()
    producer = await start(defaultConfig().channels.orphanAfterMs)
    const channel = await abandoned()
    await pass(3_599_000)
    expect(await stateOf(channel)).toBe('waiting')
    await pass(3_000)
    expect(await stateOf(channel)).toBe('orphan')
  })

  it('has nothing measured, keeps what is pushed, and is measured for again when a connection takes it', async () => {
    const seat = await producer.seat()
    await subscribe(seat)
    await seat.follow('test.a')
    await leave(seat)
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    producer.emit(7_001)
    await pass(10 * AFTER_MS)
    producer.emit(7_002)
    expect(sensor.asked).toBe(asked)
    const { came, seat: later } = await take(seat.channel)
    expect(await came()).toEqual([...upTo(asked), paused, 7_001, 7_002, asked + 1])
    await pass(1_000)
    expect(await came()).toEqual([asked + 2])
    expect(await later.ledger()).toMatchObject({ state: 'connected' })
    expect(balance(await later.ledger())).toBe(0)
  })

  it('is not sent what is measured for somebody else', async () => {
    const channel = await abandoned()
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    const other = await take(await (await producer.seat()).defChannel())
    await subscribe(other.seat)
    await pass(5_000)
    expect(await other.came()).toEqual(upTo(asked + 6, asked + 1))
    const { came } = await take(channel)
    expect(await came()).toEqual([...upTo(asked), paused, asked + 7])
  })

  it('may bind a pattern that selects both what is polled and what is pushed', async () => {
    const channel = await abandoned('*.value')
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    expect(asked).toBeGreaterThan(1)
    producer.emit(7_001, 'test.value')
    await pass(AFTER_MS)
    expect(sensor.asked).toBe(asked)
    const { came } = await take(channel)
    expect(await came()).toEqual([...upTo(asked), paused, 7_001, asked + 1])
  })

  it('has no GAP if it binds only what is pushed', async () => {
    const channel = await abandoned('test.a')
    await pass(AFTER_MS + 2_000)
    expect(await stateOf(channel)).toBe('orphan')
    producer.emit(7_001)
    const { came } = await take(channel)
    expect(await came()).toEqual([7_001])
  })

  it('has polled metrics that others bind on it meanwhile wait for a connection too', async () => {
    const channel = await abandoned('test.a')
    await pass(AFTER_MS + 2_000)
    const other = await producer.seat()
    await subscribe(other, 'count.value', channel)
    await pass(5_000)
    expect(sensor.asked).toBe(0)
    const { came } = await take(channel)
    expect(await came()).toEqual([paused, 1])
  })

  it('may bind what only waits for GET', async () => {
    const first = await producer.seat()
    const id = await first.collect('count.value')
    await first.ok((seq) => command.buffer(seq, id))
    await leave(first)
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    await pass(AFTER_MS)
    expect(sensor.asked).toBe(asked)
    const { came, seat } = await take(first.channel)
    expect(await came()).toEqual([paused])
    expect(sensor.asked).toBe(asked + 1)
    await seat.ok((seq) => command.get(seq, id))
    expect(await came()).toEqual(expect.arrayContaining(upTo(asked + 1)))
  })

  it('is one no more when it is configured', async () => {
    const channel = await abandoned()
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    const other = await producer.seat()
    await other.execute('channel.configure', ['channel', type.uint32, u32(channel)])
    await pass(2_000)
    expect(await stateOf(channel)).toBe('waiting')
    expect(sensor.asked).toBeGreaterThan(asked)
  })

  it('is one no more when the operator wants none', async () => {
    await producer.stop()
    let orphanAfterMs = AFTER_MS
    const base = defaultConfig()
    const reloadable = {
      get config() {
        return { ...base, channels: { ...base.channels, orphanAfterMs } }
      },
    } as unknown as ReloadableConfig
    producer = await start(AFTER_MS, reloadable)
    const channel = await abandoned()
    await pass(AFTER_MS + 2_000)
    expect(await stateOf(channel)).toBe('orphan')
    const { asked } = sensor
    orphanAfterMs = 0
    await pass(10 * AFTER_MS)
    expect(await stateOf(channel)).toBe('waiting')
    expect(sensor.asked).toBeGreaterThan(asked + 500)
  })

  it('expires like every channel', async () => {
    const channel = await abandoned()
    await pass(AFTER_MS + 2_000)
    producer.clock.leap(7 * 86_400_000)
    await producer.settle()
    const later = await producer.seat()
    expect((await later.ask((seq) => command.setChannel(seq, channel))).status).toBe(status.NO_SUCH_CHANNEL)
  })
})

describe('the GAP of a pause', () => {
  it('is there once, over restarts and crashes, and nothing is measured meanwhile', async () => {
    const channel = await abandoned()
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    producer = await producer.restart()
    await pass(AFTER_MS)
    producer = await producer.crash()
    await pass(AFTER_MS)
    producer = await producer.restart(AFTER_MS)
    await pass(2 * AFTER_MS)
    expect(sensor.asked).toBe(asked)
    const { came } = await take(channel)
    const gaps = (await came()).filter((entry) => typeof entry === 'string')
    expect(gaps).toEqual([paused])
  })

  it('is there once if a crash came before it was stored', async () => {
    const channel = await abandoned()
    producer.store.manual = true
    await pass(AFTER_MS + 2_000)
    producer = await producer.crash()
    await pass(2 * AFTER_MS)
    const { came } = await take(channel)
    expect((await came()).filter((entry) => entry === paused)).toEqual([paused])
  })

  it('comes again with the next pause, and only then', async () => {
    const channel = await abandoned()
    await pass(AFTER_MS + 2_000)
    for (let time = 1; time <= 3; time++) {
      const { came, seat } = await take(channel)
      expect((await came()).filter((entry) => entry === paused)).toHaveLength(time)
      await leave(seat)
      await pass(AFTER_MS + 2_000)
    }
  })
})

describe('no orphan is', () => {
  const window: Setting = ['window', type.uint32, u32(65_536)]

  it.each<[string, (seat: Seat) => Promise<number>]>([
    ['a channel with a name', (seat) => seat.defChannel(['name', type.string, str('billing')])],
    ['a channel that was defined with settings, even if they are the usual ones', (seat) => seat.defChannel(window)],
    [
      'a channel that was configured',
      async (seat) => {
        const channel = await seat.defChannel()
        await seat.execute('channel.configure', ['channel', type.uint32, u32(channel)], window)
        return channel
      },
    ],
  ])('%s', async (_, define) => {
    const seat = await producer.seat()
    const channel = await define(seat)
    await subscribe(seat, 'count.value', channel)
    await leave(seat)
    await pass(AFTER_MS + 2_000)
    const { asked } = sensor
    await pass(AFTER_MS)
    expect(await stateOf(channel)).toBe('waiting')
    expect(sensor.asked).toBe(asked + AFTER_MS / 1_000)
    producer = await producer.crash()
    await pass(AFTER_MS + 2_000)
    expect(await stateOf(channel)).toBe('waiting')
  })

  it('a channel with a URL', async () => {
    await producer.stop()
    producer = await TestProducer.start({
      config: { channels: { orphanAfterMs: AFTER_MS }, dial: { allow: ['tcp://127.0.0.1:9'] } },
    })
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    const secret = args(['secret', type.opaque, str('x'.repeat(32))])
    const channel = await boss.ok((seq) => command.defChannel(seq, 'tcp://127.0.0.1:9', secret))
    await pass(AFTER_MS + 2_000)
    expect((await boss.ledger(channel)).state).toBe('waiting')
  })

  it('a channel that DEF_CHANNEL made without anything: that is one', async () => {
    const seat = await producer.seat()
    const channel = await seat.defChannel()
    await pass(AFTER_MS + 2_000)
    expect(await seat.ledger(channel)).toMatchObject({ state: 'orphan' })
    expect(await seat.ledger()).toMatchObject({ state: 'connected' })
  })

  it('a channel whose consumer had no time to come back since the producer started', async () => {
    const channel = await abandoned()
    producer = await producer.restart(10 * AFTER_MS)
    const { asked } = sensor
    await pass(AFTER_MS - 2_000)
    expect(await stateOf(channel)).toBe('waiting')
    expect(sensor.asked).toBeGreaterThan(asked)
    await pass(4_000)
    expect(await stateOf(channel)).toBe('orphan')
  })
})

describe('`channel.delete` with `orphan`', () => {
  const orphan: Setting = ['orphan', type.boolean, u32(1)]

  it('deletes an orphan, and no channel that a connection has taken meanwhile', async () => {
    const [one, two] = [await abandoned(), await abandoned()]
    await pass(AFTER_MS + 2_000)
    const { seat } = await take(two)
    const other = await producer.seat()
    expect(await other.execute('channel.delete', ['channel', type.uint32, u32(one)], orphan)).toMatchObject({
      outcome: 'ok',
    })
    expect(await other.ledger(one)).toBeUndefined()
    const taken = args(['channel', type.uint32, u32(two)], orphan)
    const refused = await other.ask((seq) => command.execute(seq, 'channel.delete', taken))
    expect(refused).toMatchObject({ status: status.BUSY })
    expect(await seat.ledger()).toMatchObject({ channel: two, state: 'connected' })
  })
})
