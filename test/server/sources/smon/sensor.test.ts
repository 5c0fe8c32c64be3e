import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { DEFINE_A, FakeHub, makeSensor, RESYNC, stream } from './fixture.ts'

const A = 'smon.aaaa@192.0.2.7:1'

function open(config = {}) {
  const made = makeSensor(new FakeHub(), config)
  const feed = made.sensor.open('192.0.2.7', 1)!
  return { ...made, feed, counters: () => made.sensor.status().counters }
}

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

  test('from where nothing is taken, or one too many, is refused and counted', () => {
    const { sensor } = makeSensor(new FakeHub(), { maxSources: 1 })
    expect(sensor.open('198.51.100.1', 1)).toBeUndefined()
    expect(sensor.open('192.0.2.1', 1)).toBeDefined()
    expect(sensor.open('192.0.2.1', 2)).toBeUndefined()
    sensor.datagram(DEFINE_A, '192.0.2.1', 3)
    expect(sensor.status().counters).toMatchObject({ refusedSource: 1, sourcesFull: 2, sources: 1, values: 0 })
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
})
