import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish, type Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { ListeningSensor, Series } from '../../../../server/kernel/metrics/metric.ts'
import type { StreamTaker } from '../../../../server/kit/io/pacer.ts'
import { times } from '../../../support/long.ts'
import { DEFINE_A, FakeHub, makeSensor, RESYNC, stream } from './fixture.ts'

const A = 'smon.aaaa@192.0.2.7:1'

function open(config = {}, hub = new FakeHub()) {
  const made = makeSensor(hub, config)
  const feed = made.sensor.open('192.0.2.7', 1)!
  return { ...made, feed, counters: () => made.sensor.status().counters }
}

/** A hub that keeps nothing of the values. */
class CountingHub extends FakeHub {
  values = 0

  override emitEncoded(): void {
    this.values++
  }
}

/** Each series has many subscriptions from its birth on. */
class ManySubscriptions extends FakeHub {
  /** The values of each run. */
  readonly runs: number[] = []

  override born(sensor: ListeningSensor, series: Series): undefined {
    super.born(sensor, series)
    const sink = { append: () => {} }
    for (let at = 0; at < 8; at++) series.subscriptions.push({ framePrefix: new Uint8Array(0), sink, at })
  }

  override emitRun(series: Series, tails: readonly Uint8Array[]): void {
    this.runs.push(tails.length)
    super.emitRun(series, tails)
  }
}

/** Gives a stream all bytes, as many at once as it takes. */
function pushAll(feed: StreamTaker, bytes: Uint8Array): void {
  for (let taken = 0; taken < bytes.length; ) taken += feed.push(bytes.subarray(taken)) ?? bytes.length
}

const finishAll = (steps: Steps<void> | undefined) => steps && finish(steps)

const NOTHING = { tokens: 0, tokenBytes: 0, textBytes: 0, indexes: 0 }

/** Parts of streams that fit together often enough: definitions of both types, long and short texts, indexes, numbers. */
const PIECES = [
  stream('f0 00 04', "'smsg'", '01 03', "'abc'"),
  stream('f0 00 04', "'umsg'", '01 05'),
  stream('f0 00 04', "'umsg'", '02 05'),
  stream('f0 00 04', "'smsg'", '02 02', "'ab'"),
  stream('f0 00 fd 01 01 00'),
  stream('f0 00 fd fa 01 01 01 02'),
  stream('f0 01 e0 20', `'${'x'.repeat(256)}'`),
  stream('f0 01 f0 00'),
  stream('f0 02 f0 00'),
  stream('00 01', "'y'"),
  stream('f0 02 07'),
  stream('fa 00'),
  stream('fb 01'),
  stream('fd'),
  RESYNC,
]

const only = <T>(items: Iterable<T>): T => {
  const [item, ...others] = items
  expect(others).toEqual([])
  return item as T
}

describe('a stream', () => {
  test('gives a value for each pair; numbers are UINT64, also above 2^53', () => {
    const { sensor, hub, feed } = open()
    feed.push(DEFINE_A)
    feed.push(stream('00 05 00 f7 ff ff ff ff ff ff ff ff 00 f0 07'))
    expect(hub.news()).toEqual([`born ${A}`, `${A} = 100`, `${A} = 105`, `${A} = 18446744073709551615`, `${A} = 7`])
    const series = only(sensor.series('smon.aaaa'))
    expect(sensor.last(series)).toEqual({ value: { type: BasicType.UINT64, value: 7n }, time: 1_700_000_000_000_000 })
    expect(sensor.metric('smon.aaaa')).toMatchObject({ type: BasicType.UINT64, kind: 'continuous' })
  })

  test('gives text as STRING, also where it is no UTF-8', () => {
    const { sensor, hub, feed } = open()
    feed.push(stream('00 04', "'smsg'", '01 03', "'abc'", '00 03', "'def'", '00 f0 02 c3 28'))
    const name = 'smon.msg@192.0.2.7:1'
    expect(hub.news()).toEqual([`born ${name}`, `${name} = "abc"`, `${name} = "abcdef"`, `${name} = "\u00c3("`])
    expect(sensor.metric('smon.msg')?.type).toBe(BasicType.STRING)
    expect(sensor.last(only(sensor.series('smon.msg')))?.value).toEqual({
      type: BasicType.STRING,
      value: Uint8Array.of(0xc3, 0x28),
    })
  })

  test('gives a series of its own for every index', () => {
    const { sensor, hub, feed } = open()
    feed.push(stream('00 08', "'udisk.io'", 'fa03 fa00 01 0a fc08 fb00 00 0f 00 01 fd 00 01'))
    const name = 'smon.disk.io@192.0.2.7:1'
    expect(hub.news()).toEqual([
      `born ${name}[3,0]`,
      `${name}[3,0] = 10`,
      `born ${name}[8,0]`,
      `${name}[8,0] = 25`,
      `${name}[8,0] = 26`,
      `born ${name}`,
      `${name} = 27`,
    ])
    const [first] = sensor.series('smon.disk.io')
    expect(first?.matches('index', (text) => text === '3,0')).toBe(true)
    expect(first?.matches('host', () => true)).toBe(false)
  })

  test('gives the same to series with many subscriptions, whose values are handed over in runs', () => {
    const bytes = stream(
      ...['00 08', "'udisk.io'", 'fa03 fa00 01 0a 00 01 00 01 fc08 fb00 00 0f 00 01 00 02', 'fd 00 01 00 01 00 01'],
      ...['fe 01', 'ff'.repeat(17), 'fe'],
      ...['00 04', "'smsg'", '01 03', "'abc'", '00 03', "'def'", '00 f0 02 c3 28'],
    )
    const values = (hub: FakeHub, pieces: number): string[] => {
      const { feed, counters } = open({}, hub)
      for (let at = 0; at < bytes.length; at += pieces) pushAll(feed, bytes.subarray(at, at + pieces))
      const news = hub.news()
      feed.end()
      return [...news, ...hub.news(), JSON.stringify(counters())]
    }
    for (const pieces of [bytes.length, 5, 1]) {
      expect(values(new ManySubscriptions(), pieces)).toEqual(values(new FakeHub(), pieces))
    }
    const whole = new ManySubscriptions()
    values(whole, bytes.length)
    expect(whole.runs).toEqual([3, 3, 3, 3])
  })

  test('takes its series along when it ends', () => {
    const { sensor, hub, feed, counters } = open()
    feed.push(DEFINE_A)
    hub.news()
    feed.end()
    feed.end()
    expect(hub.news()).toEqual([`died ${A}`])
    expect([...sensor.metrics()]).toEqual([])
    expect(counters()).toMatchObject({ streams: 1, openStreams: 0, sources: 0, metrics: 0, values: 1, cutOff: 0 })
  })

  test('that ends in the middle of something is counted', () => {
    const { feed, counters } = open()
    feed.push(DEFINE_A.subarray(0, 4))
    feed.end()
    expect(counters()).toMatchObject({ cutOff: 1 })
  })

  test('that turns invalid costs only itself, until it resynchronises, and keeps its series', () => {
    const { sensor, hub, feed, counters } = open()
    const other = sensor.open('192.0.2.8', 2)!
    feed.push(DEFINE_A)
    other.push(DEFINE_A)
    hub.news()
    feed.push(stream('fe 01 02 03'))
    other.push(stream('00 01'))
    expect(hub.news()).toEqual(['smon.aaaa@192.0.2.8:2 = 101'])
    expect(counters()).toMatchObject({ invalid: 1, skippedBytes: 3 })
    expect(sensor.status().detail).toMatch(/1 streams are invalid now; last error: 192\.0\.2\.7:1: /)
    feed.push(RESYNC)
    feed.push(DEFINE_A)
    expect(hub.news()).toEqual([`${A} = 100`])
    expect(counters()).toMatchObject({ resets: 1, metrics: 2 })
  })

  test('names a metric again after a resynchronisation, also as another type', () => {
    const { sensor, hub, feed } = open()
    feed.push(DEFINE_A)
    feed.push(RESYNC)
    feed.push(stream('00 05', "'saaaa'", '01 01', "'x'"))
    expect(hub.news().slice(2)).toEqual([`${A} = "x"`])
    expect(sensor.metric('smon.aaaa')?.type).toBe(BasicType.STRING)
    feed.push(RESYNC)
    feed.push(DEFINE_A)
    expect(hub.news()).toEqual([`${A} = 100`])
  })

  test('gives back the room of a text when a number follows', () => {
    const { sensor, feed, counters } = open()
    feed.push(stream('00 05', "'saaaa'", '01 09', "'nine char'"))
    expect(counters()).toMatchObject({ textBytes: 8 + 12 })
    feed.push(RESYNC)
    feed.push(DEFINE_A)
    expect(counters()).toMatchObject({ textBytes: 0 })
    expect(sensor.last(only(sensor.series('smon.aaaa')))?.value).toEqual({ type: BasicType.UINT64, value: 100n })
  })
})

describe('a source', () => {
  test('has the name that the configuration gives its address and port, else its address, else none', () => {
    const { sensor, hub } = makeSensor(new FakeHub())
    for (const [address, port] of [
      ['192.0.2.9', 77],
      ['192.0.2.9', 78],
      ['::ffff:192.0.2.7', 1],
      ['2001:db8::1', 5],
    ] as const) {
      sensor.open(address, port)?.push(DEFINE_A)
    }
    const names = hub.news().filter((line) => line.startsWith('born'))
    expect(names.map((line) => line.replace('born smon.aaaa@', ''))).toEqual([
      'db2',
      'db1',
      '192.0.2.7:1',
      '[2001:db8::1]:5',
    ])
  })

  test('of two streams is gone with the second', () => {
    const { sensor, hub } = makeSensor(new FakeHub())
    const [first, second] = [sensor.open('192.0.2.9', 1)!, sensor.open('192.0.2.9', 2)!]
    first.push(DEFINE_A)
    second.push(DEFINE_A)
    first.end()
    expect(hub.news()).toEqual(['born smon.aaaa@db1', 'smon.aaaa@db1 = 100', 'smon.aaaa@db1 = 100'])
    second.end()
    expect(hub.news()).toEqual(['died smon.aaaa@db1'])
  })

  test('of many series ends in steps', () => {
    const { sensor, hub } = makeSensor(new FakeHub())
    const feed = sensor.open('192.0.2.9', 1)!
    feed.push(stream('00 05', "'uaaaa'", '01 64 fa00 00 01 fb01 00 01'))
    hub.news()
    hub.stepsAtOnce = 1
    feed.end()
    expect(hub.news()).toEqual(['died smon.aaaa@db1'])
    expect(sensor.status().counters).toMatchObject({ sources: 1, metrics: 2 })
    while (hub.step());
    expect(hub.news()).toEqual(['died smon.aaaa@db1[0]', 'died smon.aaaa@db1[1]'])
    expect(sensor.status().counters).toMatchObject({ sources: 0, metrics: 0 })
  })

  test('that comes back while it ends keeps the series that are left, until it ends again', () => {
    const { sensor, hub } = makeSensor(new FakeHub())
    const feed = sensor.open('192.0.2.9', 1)!
    feed.push(stream('00 05', "'uaaaa'", '01 64 fa00 00 01 fb01 00 01'))
    hub.news()
    hub.stepsAtOnce = 1
    feed.end()
    const again = sensor.open('192.0.2.9', 2)!
    while (hub.step());
    expect(sensor.status().counters).toMatchObject({ sources: 1, metrics: 2 })
    again.push(stream('00 05', "'uaaaa'", '01 64 fa01 00 01'))
    const name = 'smon.aaaa@db1'
    expect(hub.news()).toEqual([`died ${name}`, `born ${name}`, `${name} = 100`, `${name}[1] = 101`])
    hub.stepsAtOnce = 0
    again.end()
    const third = sensor.open('192.0.2.9', 3)!
    third.end()
    let steps = 1
    while (hub.step()) steps++
    // One for each series, and one that finds no other.
    expect(steps).toBe(4)
    expect(hub.news()).toEqual([`died ${name}[0]`, `died ${name}[1]`, `died ${name}`])
    expect(sensor.status().counters).toMatchObject({ sources: 0, metrics: 0 })
  })

  test('from where nothing is taken, or one too many, is refused and counted', () => {
    const { sensor } = makeSensor(new FakeHub(), { maxSources: 1 })
    expect(sensor.open('198.51.100.1', 1)).toBeUndefined()
    expect(sensor.open('192.0.2.1', 1)).toBeDefined()
    expect(sensor.open('192.0.2.1', 2)).toBeUndefined()
    sensor.datagram(DEFINE_A, '192.0.2.1', 3)
    expect(sensor.status().counters).toMatchObject({ refusedSource: 1, sourcesFull: 2, sources: 1, values: 0 })
  })

  test('counts once for each of its streams', () => {
    const { sensor } = makeSensor(new FakeHub(), { maxSources: 3 })
    const [first] = [1, 2].map((port) => sensor.open('192.0.2.9', port))
    sensor.datagram(DEFINE_A, '192.0.2.9', 3)
    sensor.datagram(DEFINE_A, '192.0.2.9', 4)
    expect(sensor.open('192.0.2.9', 5)).toBeUndefined()
    expect(sensor.status().counters).toMatchObject({ sourcesFull: 1, sources: 1, openStreams: 2, datagrams: 2 })
    first?.end()
    expect(sensor.open('192.0.2.9', 5)).toBeDefined()
  })
})

describe('a datagram', () => {
  test('is a stream of its own; its source goes after four minutes of silence', () => {
    const { sensor, hub, clock } = makeSensor(new FakeHub())
    const send = () => sensor.datagram(DEFINE_A, '192.0.2.7', 1)
    send()
    send()
    expect(hub.news()).toEqual([`born ${A}`, `${A} = 100`, `${A} = 100`])
    clock.advance(240_000)
    sensor.sweep()
    send()
    clock.advance(240_000)
    sensor.sweep()
    expect(hub.news()).toEqual([`${A} = 100`])
    clock.advance(1)
    sensor.sweep()
    expect(hub.news()).toEqual([`died ${A}`])
  })

  test('counts as a source until its sender is silent', () => {
    const { sensor, clock } = makeSensor(new FakeHub(), { maxSources: 1 })
    sensor.datagram(DEFINE_A, '192.0.2.7', 1)
    expect(sensor.open('192.0.2.7', 2)).toBeUndefined()
    clock.advance(240_001)
    sensor.sweep()
    expect(sensor.open('192.0.2.7', 2)).toBeDefined()
  })

  test('that asks for much is taken in steps, and holds nothing in the end', () => {
    const { sensor, hub } = makeSensor(new FakeHub())
    const text = 'x'.repeat(0x6000)
    const repeats = 1_000
    const steps = sensor.datagram(
      stream('00 04', "'smsg'", '01 f2 006000', `'${text}'`, '0000'.repeat(repeats)),
      '192.0.2.7',
      1,
    )
    const values = () => hub.news().filter((line) => line.includes(' = ')).length
    // A text of 24 KiB counts for 97 values, of which 2,048 are taken at once.
    const atOnce = Math.ceil(2_048 / 97)
    let taken = values()
    expect(taken).toBeLessThanOrEqual(atOnce)
    while (steps?.next().done === false) {
      const more = values()
      expect(more).toBeLessThanOrEqual(atOnce)
      taken += more
    }
    expect(taken + values()).toBe(1 + repeats)
    expect(sensor.status().counters).toMatchObject({ tokens: 0, tokenBytes: 0, cutOff: 0 })
  })

  test('that takes longer than the silence after which its source ends is taken to its end', () => {
    const { sensor, hub, clock } = makeSensor(new FakeHub())
    const many = stream('00 05', "'uaaaa'", '01 64', '0001'.repeat(3_000))
    const steps = sensor.datagram(many, '192.0.2.7', 1)!
    hub.news()
    clock.advance(240_001)
    sensor.sweep()
    expect(sensor.status().counters).toMatchObject({ sources: 1 })
    finish(steps)
    expect(hub.news().slice(-2)).toEqual([`${A} = 3100`, `died ${A}`])
    expect(sensor.status().counters).toMatchObject({ sources: 0, metrics: 0, tokens: 0, values: 3_001 })
  })

  test('that is cut or wrong is counted and harms no other', () => {
    const { sensor, hub } = makeSensor(new FakeHub())
    sensor.datagram(DEFINE_A.subarray(0, 5), '192.0.2.7', 1)
    sensor.datagram(stream('fe 00'), '192.0.2.7', 1)
    sensor.datagram(DEFINE_A, '192.0.2.7', 1)
    expect(hub.news()).toEqual([`born ${A}`, `${A} = 100`])
    expect(sensor.status().counters).toMatchObject({ datagrams: 3, cutOff: 1, invalid: 1, skippedBytes: 1, values: 1 })
  })
})

describe('limits', () => {
  test('a metric too many is refused and counted per value, and taken when there is room', () => {
    const { sensor, hub, feed } = open({ maxMetrics: 1 })
    const other = sensor.open('192.0.2.8', 2)!
    other.push(DEFINE_A)
    hub.news()
    feed.push(DEFINE_A)
    feed.push(stream('00 01'))
    expect(hub.news()).toEqual([])
    expect(sensor.status().counters).toMatchObject({ metricsFull: 2, metrics: 1, values: 1 })
    other.end()
    feed.push(stream('00 01'))
    expect(hub.news()).toEqual(['died smon.aaaa@192.0.2.8:2', `born ${A}`, `${A} = 102`])
  })

  test('a name that cannot be one is refused and counted; its stream goes on', () => {
    const { sensor, hub, feed } = open()
    feed.push(stream('00 05 75', "'a'", '01', "'bc'", '01 64 f0 00 05', "'ubbbb'", '02 01'))
    expect(hub.news()).toEqual(['born smon.bbbb@192.0.2.7:1', 'smon.bbbb@192.0.2.7:1 = 1'])
    expect(sensor.status().counters).toMatchObject({ badName: 1, values: 1 })
  })

  test('tokens of all streams together are bounded; a stream that defines one more is invalid, and holds none', () => {
    const { sensor, feed, counters } = open({ maxMetrics: 2, maxTokens: 2 })
    const other = sensor.open('192.0.2.8', 2)!
    const two = stream('00 04', "'uaaa'", '01 00 f0 00 04', "'ubbb'", '02 00')
    feed.push(two)
    other.push(two)
    expect(counters()).toMatchObject({ tokens: 4, tokensFull: 0, invalid: 0 })
    const third = sensor.open('192.0.2.6', 3)!
    third.push(DEFINE_A)
    expect(counters()).toMatchObject({ tokens: 4, tokensFull: 1, invalid: 1 })
    expect(sensor.status().detail).toMatch(/192\.0\.2\.6:3: more than 4 tokens of all streams together/)
    feed.push(stream('fe'))
    expect(counters()).toMatchObject({ tokens: 2, invalid: 2 })
    third.push(RESYNC)
    third.push(DEFINE_A)
    expect(counters()).toMatchObject({ tokens: 3, tokensFull: 1 })
    for (const each of [feed, other, third]) each.end()
    expect(counters()).toMatchObject({ tokens: 0, tokenBytes: 0 })
  })

  test('indexes that are kept are bounded; values beyond them are taken all the same', () => {
    const { hub, feed, counters } = open({ maxMetrics: 4 })
    feed.push(stream('00 04', "'uaaa'", '01 00'))
    // Four tokens of one name with each of three indexes.
    for (const step of ['01', '02', '03']) feed.push(stream('f0 00 fd 01', step, '00'))
    for (const index of ['00', '01', '02']) {
      feed.push(stream('fd fa', index, 'f0 01 01 01 01 01 01 01 01'))
    }
    hub.news()
    expect(counters()).toMatchObject({ metrics: 4, indexes: 8, indexesFull: 4 })
    feed.push(stream('f0 04 07'))
    expect(hub.news()).toEqual(['smon.aaa@192.0.2.7:1[2] = 10'])
    expect(counters()).toMatchObject({ indexes: 8, indexesFull: 5 })
    feed.push(stream('fe'))
    expect(counters()).toMatchObject({ metrics: 4, indexes: 0 })
  })

  test('texts that are kept for GET are bounded, for each source and together; values beyond them are passed on', () => {
    const { sensor, hub } = makeSensor(new CountingHub(), { maxMetrics: 10_000 })
    const KIB_64 = 65_536 + 8
    const ofSource = Math.floor((16 << 20) / KIB_64)
    const feeds = [1, 2, 3, 4, 5].map((port) => sensor.open('192.0.2.7', port)!)
    const counters = () => sensor.status().counters
    const send = (feed: StreamTaker) => {
      pushAll(feed, stream('00 04', "'smsg'", '01 f2 010000', `'${'x'.repeat(65_536)}'`, 'fa00'))
      for (let index = 1; index < ofSource + 10; index++) {
        pushAll(feed, stream('fb f1', index.toString(16).padStart(4, '0'), '00 00'))
      }
    }
    send(feeds[0]!)
    expect(counters()).toMatchObject({ textBytes: ofSource * KIB_64, textBytesFull: 10, values: ofSource + 10 })
    const [kept, unkept] = ['1', String(ofSource + 9)].map((index) => {
      return only([...sensor.series('smon.msg')].filter(({ labels }) => labels.index === index))
    })
    expect([sensor.last(kept!)?.value.type, sensor.last(unkept!)]).toEqual([BasicType.STRING, undefined])
    for (const feed of feeds.slice(1)) send(feed)
    const together = Math.floor((64 << 20) / KIB_64)
    expect(counters()).toMatchObject({ textBytes: together * KIB_64, values: 5 * (ofSource + 10) })
    expect(hub.values).toBe(5 * (ofSource + 10))
    // A shorter text gives room to others.
    pushAll(feeds[0]!, stream('fb 01 00 f0 00'))
    expect(counters()['textBytes']).toBe((together - 1) * KIB_64 + 8)
    for (const feed of feeds) feed.end()
    expect(counters()).toMatchObject({ textBytes: 0, tokenBytes: 0, indexes: 0, metrics: 0 })
  })

  test('hold nothing when all streams have ended, whatever came', () => {
    const pieces = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...PIECES) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 12 }) },
    )
    const actions = fc.array(
      fc.tuple(fc.constantFrom('push', 'push', 'push', 'push', 'datagram', 'end', 'step', 'sweep'), fc.nat(4), pieces),
      { maxLength: 80 },
    )
    fc.assert(
      fc.property(actions, (all) => {
        const { sensor, hub, clock } = makeSensor(new FakeHub(), { maxMetrics: 4, maxTokens: 6, maxSources: 4 })
        hub.stepsAtOnce = 1
        const feeds = new Map<number, StreamTaker>()
        for (const [action, which, bytes] of all) {
          const feed = feeds.get(which) ?? sensor.open('192.0.2.9', which < 2 ? 77 : which)
          if (feed !== undefined) feeds.set(which, feed)
          if (action === 'push' && feed !== undefined) pushAll(feed, bytes)
          else if (action === 'datagram') finishAll(sensor.datagram(bytes, '192.0.2.7', which))
          else if (action === 'step') hub.step()
          else if (action === 'sweep') {
            clock.advance(120_001)
            sensor.sweep()
          } else if (action === 'end') {
            feed?.end()
            feeds.delete(which)
          }
        }
        for (const feed of feeds.values()) feed.end()
        clock.advance(240_001)
        sensor.sweep()
        while (hub.step());
        expect(sensor.status().counters).toMatchObject({ ...NOTHING, sources: 0, openStreams: 0, metrics: 0 })
      }),
      { numRuns: times({ short: 300, long: 2_000 }) },
    )
  })
})
