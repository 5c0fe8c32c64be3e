/** Requests of OTLP as columns: what a decoder remembers of earlier ones changes nothing of what it says. */
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { beforeAll, describe, expect, test } from 'vitest'
import { ProtocolError } from '../../../../protocol/errors.ts'
import type { Point, ReadAttributes } from '../../../../protocol/otlp/metrics.ts'
import { decodeMetrics } from '../../../../protocol/otlp/protobuf.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { textsIn } from '../../../../server/kit/columns.ts'
import { SeriesMemory } from '../../../../server/kit/series-memory.ts'
import { decodeOtlp } from '../../../../server/wings/otlp/decoder.ts'
import { times } from '../../../support/long.ts'
import { Random } from '../../../support/random.ts'

const OPTIONS = { isJson: false, now: 5 }
type Memory = SeriesMemory<ReadAttributes>

/** The columns of a request without the numbers that the memory has for series; the error's code if there are none. */
function decoded(bytes: Uint8Array, memory?: Memory): unknown {
  try {
    const { numbering: _numbering, remembered: _remembered, ...columns } = finish(decodeOtlp(bytes, OPTIONS, memory))
    return columns
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return error.code
  }
}

function seriesIn(bytes: Uint8Array, memory?: Memory): string[] {
  const { series } = finish(decodeOtlp(bytes, OPTIONS, memory))
  const keyAt = textsIn(series)
  return Array.from(series.ends, (_, place) => keyAt(place))
}

/** A field with a length. */
function field(number: number, ...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)))
  return Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content])
}

const attribute = (number: number, key: string, text: string) => field(number, field(1, key), field(2, field(1, text)))
/** 1.0, as field 4 of a point. */
const ONE = Buffer.from('21000000000000f03f', 'hex')
const point = (...attributes: readonly Uint8Array[]) => field(1, ONE, ...attributes)
const gauge = (...points: readonly Uint8Array[]) => field(5, ...points)
const metric = (name: string, ...points: readonly Uint8Array[]) => field(2, field(1, name), gauge(...points))
const scope = (name: string) => field(1, field(1, name))
const resource = (text: string) => field(1, attribute(1, 'service', text))
const request = (...parts: readonly Uint8Array[]) => field(1, ...parts)

const X = attribute(7, 'to', 'x')
const Y = attribute(7, 'from', 'y')

describe('what a decoder remembers', () => {
  test('is of one metric of one scope of one resource', () => {
    const memory: Memory = new SeriesMemory()
    const requests = [
      request(resource('a'), field(2, scope('s'), metric('m', point(X)))),
      request(resource('b'), field(2, scope('s'), metric('m', point(X)))),
      request(resource('a'), field(2, scope('t'), metric('m', point(X)))),
      request(resource('a'), field(2, scope('s'), metric('n', point(X)))),
      request(resource('a'), field(2, metric('m', point(X)))),
      request(field(2, scope('s'), metric('m', point(X)))),
    ]
    const found = requests.map((each) => seriesIn(each, memory))
    expect(new Set(found.flat()).size).toBe(requests.length)
    for (const [at, each] of requests.entries()) {
      expect(found[at]).toEqual(seriesIn(each))
      expect(seriesIn(each, memory)).toEqual(found[at])
    }
  })

  test('the same attributes are the same object in a later request', () => {
    const { labels } = new SeriesMemory<ReadAttributes>()
    const given = request(resource('a'), field(2, scope('s'), metric('m', point(X, Y), point(X))))
    const pointsIn = () =>
      finish(decodeMetrics(given, { elements: 1_000 }, labels)).flatMap(({ scopes }) =>
        scopes.flatMap(({ metrics }) => metrics.flatMap(({ data }): readonly Point[] => data?.points ?? [])),
      )
    const [first, again] = [pointsIn(), pointsIn()]
    expect(first.map(({ attributes }) => attributes.length)).toEqual([2, 1])
    for (const [at, { shared }] of again.entries()) {
      expect(shared).toBeDefined()
      expect(shared).toBe(first[at]?.shared)
    }
  })

  test.each<readonly [string, Uint8Array]>([
    ['the resource after the metrics', request(field(2, scope('s'), metric('m', point(X))), resource('b'))],
    [
      'a resource in two parts',
      request(resource('a'), field(2, metric('m', point(X))), field(1, attribute(1, 'z', 'z'))),
    ],
    ['the scope after the metrics', request(resource('a'), field(2, metric('m', point(X)), scope('s')))],
    [
      'the name after the points',
      request(resource('a'), field(2, scope('s'), field(2, gauge(point(X)), field(1, 'n')))),
    ],
    [
      'two names',
      request(resource('a'), field(2, scope('s'), field(2, field(1, 'm'), gauge(point(X)), field(1, 'n')))),
    ],
    ['attributes on both sides of a number', request(field(2, metric('m', field(1, X, ONE, Y))))],
    ['an attribute that is longer than its point', request(field(2, metric('m', field(1, Uint8Array.of(0x3a, 9)))))],
    [
      'an attribute whose tag is longer than it has to be',
      request(field(2, metric('m', point(Buffer.from('ba00', 'hex'))))),
    ],
    ['an attribute that is no message', request(field(2, metric('m', point(Buffer.from('3a01ff', 'hex')))))],
    ['no attributes', request(field(2, metric('m', point())))],
  ])('%s: read as without it', (_, given) => {
    const usual = [
      request(resource('a'), field(2, scope('s'), metric('m', point(X), point(X, Y)))),
      request(resource('a'), field(2, metric('m', point(X)))),
      request(field(2, scope('s'), metric('m', point(X)))),
    ]
    for (const order of [
      [...usual, given],
      [given, ...usual],
    ]) {
      const memory: Memory = new SeriesMemory()
      for (const each of [...order, ...order]) expect(decoded(each, memory)).toEqual(decoded(each))
    }
  })

  test('a number is that of one key', () => {
    const memory: Memory = new SeriesMemory()
    const of = (name: string, ...texts: readonly string[]) =>
      request(field(2, metric(name, ...texts.map((text) => point(attribute(7, 'to', text))))))
    const keys = new Map<number, string>()
    for (let round = 0; round < 4; round++) {
      for (const given of [of('m', 'x', 'y'), of('n', 'x', 'y'), of('m', 'y'), of('n', 'z', 'x')]) {
        const { series, remembered, numbering } = finish(decodeOtlp(given, OPTIONS, memory))
        const keyAt = textsIn(series)
        expect(numbering).toBe(memory.numbering())
        for (const [place, number] of remembered.entries()) {
          if (round > 1) expect(number).toBeGreaterThan(0)
          if (number > 0) expect(keys.get(number) ?? keyAt(place)).toBe(keyAt(place))
          if (number > 0) keys.set(number, keyAt(place))
        }
      }
    }
    expect(new Set(keys.values()).size).toBe(5)
    expect(keys.size).toBe(5)
  })

  test('known attributes count as they did', () => {
    const given = request(field(2, metric('m', point(X, Y), point(X, Y))))
    const { labels } = new SeriesMemory<ReadAttributes>()
    const fits = (elements: number, memory?: typeof labels): boolean => {
      try {
        finish(decodeMetrics(given, { elements }, memory))
        return true
      } catch {
        return false
      }
    }
    const least = Array.from({ length: 100 }, (_, elements) => elements).find((elements) => fits(elements)) as number
    for (const _ of [1, 2]) {
      expect(fits(least, labels)).toBe(true)
      expect(fits(least - 1, labels)).toBe(false)
    }
  })
})

describe('requests of OpenTelemetry', () => {
  let given: Uint8Array
  beforeAll(async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const readers = [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 })]
    const provider = new MeterProvider({ resource: resourceFromAttributes({ 'service.name': 'shop' }), readers })
    const meter = provider.getMeter('scope', '1.0')
    for (const to of ['x', 'y', 'z']) {
      meter.createCounter('count').add(7, { to, code: 200 })
      meter.createUpDownCounter('open').add(-0.5, { to })
      meter.createHistogram('latency', { advice: { explicitBucketBoundaries: [1, 2] } }).record(1.5, { to })
    }
    await provider.forceFlush()
    given = ProtobufMetricsSerializer.serializeRequest(exporter.getMetrics()[0] as never) as Uint8Array
    await provider.shutdown()
  })

  test('cut off anywhere, and with any bytes changed, they say the same with a memory as without', () => {
    const random = new Random(12)
    const memory: Memory = new SeriesMemory()
    expect(decoded(given, memory)).toEqual(decoded(given))
    for (let round = 0; round < times({ short: 300, long: 3_000 }); round++) {
      const changed = given.slice()
      for (let count = random.below(4); count > 0; count--) changed[random.below(changed.length)] = random.below(256)
      const cut = random.below(3) === 0 ? changed.subarray(0, random.below(changed.length)) : changed
      expect(decoded(cut, memory)).toEqual(decoded(cut))
    }
  })
})
