/** The sensor of a family with open labels: births, bounds, repeated samples, ends. */
import { beforeEach, describe, expect, test } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { type Quota, Quotas } from '../../../server/kernel/accounts/quotas.ts'
import { Hub } from '../../../server/kernel/metrics/hub.ts'
import { LabelledFamily, type LabelledSensor } from '../../../server/kit/labelled-sensor.ts'
import { LabelledSeries } from '../../../server/kit/labelled-series.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { Kept, Metrics, text } from '../kernel/metrics/fixture.ts'

const KEPT_MS = 300_000
const NO_LIMIT = {
  connections: 0,
  channels: 0,
  queuedBytes: 0,
  instances: 0,
  valuesPerSecond: 0,
  controlsPerMinute: 0,
  auditBytesPerDay: 0,
  dialsPerMinute: 0,
  historyBytes: 0,
  historySeries: 0,
  rules: 0,
  notifiers: 0,
  ruleSecondsPerHour: 0,
  series: 3,
} satisfies Quota

let clock: FakeClock
let hub: Hub
let family: LabelledFamily
let sensor: LabelledSensor
beforeEach(() => {
  clock = new FakeClock()
  hub = new Hub(clock)
  const quotas = new Quotas(() => NO_LIMIT, clock)
  family = new LabelledFamily({
    family: 'otlp.',
    kind: 'otlp',
    from: 'a test',
    hub,
    quotas,
    clock,
    keptMs: () => KEPT_MS,
  })
  sensor = family.of('default')
})

const double = (value: number): Value => ({ type: BasicType.DOUBLE, value })

function of(name: string, labels: Readonly<Record<string, string>>): LabelledSeries {
  const found = sensor.of(name, Object.entries(labels))
  if (!(found instanceof LabelledSeries)) throw new Error(found.detail)
  return found
}

const counters = () => sensor.status().counters

describe('series', () => {
  test('are the same for the same labels in whatever order; an empty text is no label', () => {
    const series = of('otlp.a', { x: '1', y: '2' })
    expect(of('otlp.a', { y: '2', x: '1', z: '' })).toBe(series)
    expect({ ...series.labels }).toEqual({ x: '1', y: '2', name: 'otlp.a' })
    expect(of('otlp.b', { x: '1', y: '2' })).not.toBe(series)
  })

  test('that have a label are counted, so that nobody who asks for another one walks them', async () => {
    const [series] = [of('otlp.a', { job: 'x', zone: 'b' }), of('otlp.b', { job: 'x', empty: '' })]
    expect(['job', 'zone', 'empty', 'host'].map((label) => sensor.hasLabel(label))).toEqual([true, true, false, false])
    const walked = (name: string, label: string, value: string) => {
      const selection = new Metrics()
      selection.hub.add(sensor)
      return [...selection.select(name, [text(label, value)]).series(sensor)].flatMap((one) => one?.name ?? [])
    }
    expect(walked('otlp.*', 'host', 'h*')).toEqual([])
    // Those without the label have the empty text.
    expect(walked('otlp.*', 'host', '*')).toEqual(['otlp.a', 'otlp.b'])
    expect(walked('otlp.*', 'zone', 'b')).toEqual(['otlp.a', 'otlp.b'])
    sensor.end(series)
    expect(walked('otlp.*', 'zone', 'b')).toEqual([])
    expect(walked('otlp.*', 'job', 'x')).toEqual(['otlp.b'])
  })

  test('of one that takes requests: what a decoder has forgotten counts, and what is looked up again', () => {
    expect(counters()).not.toHaveProperty('forgottenLabels')
    const options = { family: 'x.', kind: 'x', from: 'a test', hub, clock, keptMs: () => KEPT_MS }
    const published = new LabelledFamily({ ...options, quotas: new Quotas(() => NO_LIMIT, clock), isPublished: true })
    const own = published.of('default')
    own.decoderForgot({ forgotten: 3, renumbered: 0 })
    own.decoderForgot({ forgotten: 1, renumbered: 1 })
    for (const numbering of ['a', 'b', 'c']) own.known.numberedBy(numbering)
    expect(own.status().counters).toMatchObject({ forgottenLabels: 4, renumbered: 1, lookedUpAgain: 1 })
  })

  test('are told apart whatever their texts hold', () => {
    const one = of('otlp.a', { a: 'x\0b\x001\0y' })
    expect(of('otlp.a', { a: 'x', b: 'y' })).not.toBe(one)
  })

  test('beyond the bounds, of other names, or beyond the quota are refused and counted', () => {
    expect(sensor.of('otlp.a', [['l', 'x'.repeat(1025)]])).toEqual({
      refused: 'labels',
      detail: 'label l: more than 1024 bytes',
    })
    expect(sensor.of('host.a', [])).toEqual({ refused: 'labels', detail: 'not a name of otlp.*' })
    for (const job of ['1', '2', '3']) of('otlp.a', { job })
    expect(sensor.of('otlp.a', [['job', '4']])).toEqual({
      refused: 'quota',
      detail: 'the tenant has 3 series and may have 3',
    })
    expect(counters()).toMatchObject({ series: 3, refusedLabels: 2, refusedSeries: 1 })
  })

  test('end when nothing came for long, with VOID for who follows them, and give their room back', () => {
    const [old, young] = [of('otlp.a', { job: 'old' }), of('otlp.a', { job: 'young' })]
    for (const series of [old, young]) sensor.take(series, double(1), 1)
    clock.advance(KEPT_MS)
    sensor.take(young, double(2), 2)
    clock.advance(1)
    family.sweep()
    expect(counters()).toMatchObject({ series: 1 })
    expect(of('otlp.a', { job: 'young' })).toBe(young)
    expect(of('otlp.a', { job: 'old' })).not.toBe(old)
  })

  test('end with their tenant, whose name another one may get', async () => {
    const other = family.of('other')
    const [ours, theirs] = [of('otlp.a', { job: 'x' }), other.of('otlp.a', [['job', 'x']]) as LabelledSeries]
    sensor.take(ours, double(1), 1)
    other.take(theirs, double(2), 1)
    await hub.endSeries('other')
    expect([[...sensor.series()], [...other.series()]]).toEqual([[ours], []])
    expect(other.of('otlp.a', [['job', 'x']])).not.toBe(theirs)
  })

  test('all are looked at in time, however many there are', () => {
    const many = new LabelledFamily({
      family: 'many.',
      kind: 'many',
      from: 'a test',
      hub,
      quotas: new Quotas(() => ({ ...NO_LIMIT, series: 0 }), clock),
      clock,
      keptMs: () => KEPT_MS,
    })
    for (let job = 0; job < 20_000; job++) many.of('default').of('many.a', [['job', String(job)]])
    clock.advance(KEPT_MS + 1)
    for (let second = 0; second < 32; second++) many.sweep()
    expect(many.of('default').status().counters).toMatchObject({ series: 0 })
  })
})

describe('values', () => {
  test('that come again with the same time are passed over while they are remembered', () => {
    const series = of('otlp.a', {})
    const take = (value: Value, time: number) => sensor.take(series, value, time)
    expect([take(double(1), 5), take(double(1), 5), take(double(2), 5), take(double(1), 6)]).toEqual([
      true,
      false,
      true,
      true,
    ])
    expect([take(double(Number.NaN), 7), take(double(Number.NaN), 7), take(double(0), 8), take(double(-0), 8)]).toEqual(
      [true, false, true, true],
    )
    expect(counters()).toMatchObject({ values: 6, repeated: 2 })
    // Late ones are taken, too.
    expect([take(double(1), 1), take(double(1), 1)]).toEqual([true, false])
  })

  test('of records and of integers beyond 2^53 are told apart', () => {
    const series = of('otlp.a', {})
    const record = (count: bigint): Value => ({
      type: BasicType.REC,
      value: [{ name: 'count', type: BasicType.UINT64, value: count }],
    })
    const long = (value: bigint): Value => ({ type: BasicType.INT64, value })
    const given = [record(1n), record(2n), record(1n), long(2n ** 62n), long(2n ** 62n + 1n), long(2n ** 62n)]
    expect(given.map((value) => sensor.take(series, value, 9))).toEqual([true, true, false, true, true, false])
  })

  test('of integers, of numbers around them, and VOID are told apart', () => {
    const series = of('otlp.a', {})
    const long = (value: bigint): Value => ({ type: BasicType.INT64, value })
    const given = [
      long(5n),
      long(-5n),
      double(5.5),
      double(5),
      { type: BasicType.VOID } as Value,
      long(2n ** 51n),
      long(5n),
    ]
    expect(given.map((value) => sensor.take(series, value, 9))).toEqual([true, true, true, true, true, true, false])
  })

  test('that were not stored are forgotten, so that they are taken when they come again', () => {
    const series = of('otlp.a', {})
    sensor.take(series, double(1), 5)
    series.forget()
    expect(sensor.take(series, double(1), 5)).toBe(true)
  })

  test.each([0, -0, 1.5, Number.NaN, Number.NEGATIVE_INFINITY, 5e-324])(
    'that are fetched, such as %d, are like others',
    (number) => {
      const [taken, fetched] = [of('otlp.a', { by: 'take' }), of('otlp.a', { by: 'number' })]
      const [expected, got] = [new Kept(), new Kept()]
      taken.subscriptions.push({ framePrefix: new Uint8Array(24), sink: expected, at: 0 })
      fetched.subscriptions.push({ framePrefix: new Uint8Array(24), sink: got, at: 0 })
      for (const [value, time] of [
        [number, 5],
        [7, 6],
        [number, 4],
      ] as const) {
        sensor.take(taken, double(value), time)
        sensor.takeNumber(fetched, value, time, clock)
        expect(sensor.last(fetched)).toEqual(sensor.last(taken))
      }
      expect(got.frames).toEqual(expected.frames)
      expect(sensor.last(fetched)).toEqual({ value: double(7), time: 6 })
      sensor.take(fetched, { type: BasicType.VOID, value: null }, 9)
      expect(sensor.last(fetched)).toBeUndefined()
      expect(counters()).toMatchObject({ values: 7, repeated: 0 })
    },
  )

  test('the last one by its time is the answer to a GET; VOID ends it', () => {
    const series = of('otlp.a', {})
    sensor.take(series, double(1), 5)
    sensor.take(series, double(2), 4)
    expect(sensor.last(series)).toEqual({ value: double(1), time: 5 })
    sensor.take(series, { type: BasicType.VOID, value: null }, 6)
    expect(sensor.last(series)).toBeUndefined()
  })
})

test('a name that may select a family makes the sensor of the tenant, and no other', () => {
  const before = hub.sensors.length
  hub.open('other', 'host.*')
  expect(hub.sensors).toHaveLength(before)
  hub.open('other', 'otlp.a')
  hub.open('other', '*')
  expect(hub.sensors).toHaveLength(before + 1)
  expect(hub.sensors.at(-1)).toMatchObject({ family: 'otlp.', owner: { tenant: 'other' } })
})

test('who follows a metric before its first value gets that', () => {
  const metrics = new Metrics()
  const quotas = new Quotas(() => NO_LIMIT, clock)
  const own = new LabelledFamily({
    family: 'otlp.',
    kind: 'otlp',
    from: 'a test',
    hub: metrics.hub,
    quotas,
    clock,
    keptMs: () => 1,
  })
  metrics.hub.open('default', 'otlp.a')
  const kept = new Kept()
  metrics.hub.bind(metrics.instance('otlp.a', [text('job', 'api')]), kept)
  const series = own.of('default').of('otlp.a', [['job', 'api']]) as LabelledSeries
  own.of('default').take(series, { type: BasicType.UINT32, value: 3 }, 1)
  expect(kept.numbers).toEqual([3])
})
