/** Requests of OTLP, made by OpenTelemetry's own serializer; its exporters are tried with a server in sources/otlp/door.test.ts. */
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  AggregationType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { beforeAll, describe, expect, test } from 'vitest'
import { ProtocolError } from '../../../protocol/errors.ts'
import { textOfAny } from '../../../protocol/otlp/attributes.ts'
import { answerAsJson, metricsFromJson } from '../../../protocol/otlp/json.ts'
import {
  MAX_ANY_DEPTH,
  MAX_POINT_ELEMENTS,
  POINT_TOO_LARGE,
  type ResourceMetrics,
  VALUE_TOO_DEEP,
} from '../../../protocol/otlp/metrics.ts'
import { decodeMetrics, encodeAnswer } from '../../../protocol/otlp/protobuf.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

const LIMITS = { elements: 100_000 }
const decode = (bytes: Uint8Array, limits = LIMITS): ResourceMetrics[] => finish(decodeMetrics(bytes, limits))
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'))

let request: Uint8Array
beforeAll(async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 })
  const resource = resourceFromAttributes({ text: 'é', flag: true, whole: 5, half: 0.5, many: ['a', 'b'] })
  const aggregation = { type: AggregationType.EXPONENTIAL_HISTOGRAM, options: { maxSize: 8 } } as const
  const provider = new MeterProvider({ resource, readers: [reader], views: [{ instrumentName: 'sizes', aggregation }] })
  const meter = provider.getMeter('scope', '1.0')
  meter.createCounter('count', { unit: 'By', description: 'Bytes.' }).add(7, { to: 'x' })
  meter.createGauge('level').record(-1.5)
  const latency = meter.createHistogram('latency', { advice: { explicitBucketBoundaries: [1, 2] } })
  for (const value of [0.5, 1.5, 9]) latency.record(value)
  const sizes = meter.createHistogram('sizes')
  for (const value of [0, 1, 8]) sizes.record(value)
  await provider.forceFlush()
  const [metrics] = exporter.getMetrics()
  request = ProtobufMetricsSerializer.serializeRequest(metrics as never) as Uint8Array
  await provider.shutdown()
})

describe('a request of OpenTelemetry', () => {
  test('has its resource, scope, metrics and points', () => {
    const [{ attributes, scopes }] = decode(request) as [ResourceMetrics]
    expect(attributes).toEqual([
      { key: 'text', value: 'é' },
      { key: 'flag', value: true },
      { key: 'whole', value: 5n },
      { key: 'half', value: 0.5 },
      { key: 'many', value: ['a', 'b'] },
    ])
    const [{ name, version, metrics }] = scopes as [ResourceMetrics['scopes'][number]]
    expect([name, version]).toEqual(['scope', '1.0'])
    const [count, level, latency, sizes] = ['count', 'level', 'latency', 'sizes'].map((wanted) =>
      metrics.find((metric) => metric.name === wanted),
    )
    expect(count).toMatchObject({
      name: 'count',
      unit: 'By',
      description: 'Bytes.',
      data: {
        kind: 'sum',
        temporality: 2,
        isMonotonic: true,
        points: [{ value: 7, isEnd: false, attributes: [{ key: 'to', value: 'x' }] }],
      },
    })
    expect(level?.data).toMatchObject({ kind: 'gauge', points: [{ value: -1.5 }] })
    expect(latency?.data).toMatchObject({
      kind: 'histogram',
      points: [{ count: 3n, sum: 11, min: 0.5, max: 9, bounds: [1, 2], counts: [1n, 1n, 1n] }],
    })
    expect(sizes?.data).toMatchObject({
      kind: 'exponential-histogram',
      points: [{ count: 3n, sum: 9, min: 0, max: 8, zeroCount: 1n, negative: { counts: [] } }],
    })
    const time = count?.data?.points[0]?.time ?? 0
    expect(Math.abs(Date.now() * 1_000 - time)).toBeLessThan(600_000_000)
  })
})

describe('by hand, from the definitions', () => {
  /** A metric in a scope in a resource. */
  const wrapped = (metric: string): Uint8Array => {
    const inner = bytes(metric)
    const around = (content: Uint8Array): Uint8Array => Uint8Array.from([0x12, content.length, ...content])
    const resource = around(around(inner))
    return Uint8Array.from([0x0a, resource.length, ...resource])
  }
  const metricOf = (hex: string) => decode(wrapped(hex))[0]?.scopes[0]?.metrics[0]

  test('times are exact in microseconds, up to the last', () => {
    // Gauge with a point of 2^64 - 1 ns and as_int -1.
    const gauge = metricOf('2a 14  0a 12  19 ffffffffffffffff  31 ffffffffffffffff')
    expect(gauge?.data).toMatchObject({ points: [{ time: Number((2n ** 64n - 1n) / 1000n), value: -1n }] })
    // 1,700,000,000,123,456,789 ns
    const exact = metricOf(
      '2a 0b  0a 09  19 15cd3c7b4e9a9717'.replace('15cd3c7b4e9a9717', le(1_700_000_000_123_456_789n)),
    )
    expect(exact?.data).toMatchObject({ points: [{ time: 1_700_000_000_123_456 }] })
  })

  test('NO_RECORDED_VALUE, a summary, and kinds that are not known', () => {
    expect(metricOf('2a 04  0a 02  40 01')?.data).toMatchObject({ points: [{ isEnd: true, value: undefined }] })
    // count 2, sum 3.0, quantile 0.5 = 1.5
    const summary = metricOf(`5a 28  0a 26  21 ${le(2n)}  29 0000000000000840
      32 12  09 000000000000e03f  11 000000000000f83f`)
    expect(summary?.data).toMatchObject({
      kind: 'summary',
      points: [{ count: 2n, sum: 3, quantiles: [{ quantile: 0.5, value: 1.5 }] }],
    })
    expect(metricOf('0a 01 61  7a 02 0a 00')).toMatchObject({ name: 'a', data: undefined })
  })

  test('attributes of all kinds as texts', () => {
    expect(textOfAny({ entries: [{ key: 'a"', value: [1n, Number.NaN, undefined, new Uint8Array([1])] }] })).toBe(
      '{"a\\"":[1,"NaN",null,"AQ=="]}',
    )
    expect([textOfAny(undefined), textOfAny(0.1), textOfAny(2n ** 63n), textOfAny(new Uint8Array([255]))]).toEqual([
      '',
      '0.1',
      '9223372036854775808',
      '/w==',
    ])
  })

  test('elements beyond the limit are refused', () => {
    expect(() => decode(request, { elements: 20 })).toThrow('too many elements in one request')
  })

  /** An AnyValue that nests so deep, in lists or in maps. */
  const deepIn = (kind: 'arrays' | 'maps', depth: number): Uint8Array => {
    let value = bytes('0a 01 78')
    for (let level = 1; level < depth; level++) {
      value = kind === 'arrays' ? nested(5, nested(1, value)) : nested(6, nested(1, nested(2, value)))
    }
    return value
  }
  /** A gauge `m` with one point for each of these values of an attribute. */
  const gaugeOf = (...values: readonly Uint8Array[]): Uint8Array =>
    nested(
      2,
      Uint8Array.from([
        ...bytes('0a 01 6d'),
        ...nested(5, ...values.map((value) => nested(1, nested(7, nested(2, value))))),
      ]),
    )
  const plain = bytes('0a 01 78')

  test.each(['arrays', 'maps'] as const)(
    'an attribute that nests too deep in %s costs its points, and nothing else',
    (kind) => {
      const [deepest, deeper] = [deepIn(kind, MAX_ANY_DEPTH), deepIn(kind, MAX_ANY_DEPTH + 1)]
      const ofPoints = decode(nested(1, nested(2, gaugeOf(plain, deeper, deepest, deeper), gaugeOf(plain))))
      expect(ofPoints[0]?.scopes[0]?.metrics).toMatchObject([
        { data: { points: [{}, {}] }, unread: { points: 2, problem: VALUE_TOO_DEEP } },
        { data: { points: [{}] }, unread: undefined },
      ])
      const scope = (value: Uint8Array) => nested(1, nested(3, nested(2, value)))
      const ofScope = decode(
        nested(1, nested(2, scope(deeper), gaugeOf(plain, deeper)), nested(2, scope(deepest), gaugeOf(plain))),
      )
      expect(ofScope[0]?.scopes.map(({ metrics }) => metrics)).toMatchObject([
        [{ data: undefined, unread: { points: 2, problem: VALUE_TOO_DEEP } }],
        [{ data: { points: [{}] }, unread: undefined }],
      ])
      const resource = (value: Uint8Array) => nested(1, nested(1, nested(2, value)))
      const ofResource = decode(
        Uint8Array.from([
          ...nested(1, resource(deeper), resource(deeper), nested(2, gaugeOf(plain))),
          ...nested(1, nested(2, gaugeOf(plain)), resource(deepest)),
        ]),
      )
      expect(ofResource.map(({ scopes }) => scopes[0]?.metrics)).toMatchObject([
        [{ data: undefined, unread: { points: 1, problem: VALUE_TOO_DEEP } }],
        [{ data: { points: [{}] }, unread: undefined }],
      ])
    },
  )

  test('a point with too many elements is passed over, and the next one is read', () => {
    // Of an exponential histogram (field 10): positive buckets (field 8) with so many counts of a byte each.
    const point = (counts: number) => nested(1, nested(8, nested(2, new Uint8Array(counts).fill(1))))
    // A gauge (field 5): a point with an attribute (field 7) that is a list of as many empty values.
    const list = (values: number) => nested(1, nested(7, nested(2, nested(5, repeatedly(bytes('0a 00'), values)))))
    for (const [kind, points] of [
      [10, [point(MAX_POINT_ELEMENTS), point(7)]],
      [5, [list(MAX_POINT_ELEMENTS), list(1)]],
    ] as const) {
      const metric = nested(2, Uint8Array.from([...bytes('0a 01 6d'), ...nested(kind, ...points)]))
      const [resource] = decode(nested(1, nested(2, metric)))
      expect(resource?.scopes[0]?.metrics[0]).toMatchObject({
        data: { points: [{ isEnd: false }] },
        unread: { points: 1, problem: POINT_TOO_LARGE },
      })
    }
    const metric = nested(2, nested(10, point(MAX_POINT_ELEMENTS - 10)))
    expect(decode(nested(1, nested(2, metric)))[0]?.scopes[0]?.metrics[0]?.data?.points).toHaveLength(1)
    expect(() => decode(nested(1, nested(2, metric)), { elements: 8_000 })).toThrow('too many elements in one request')
  })

  test('the answer', () => {
    expect(encodeAnswer(0, '')).toHaveLength(0)
    // partial_success { rejected_data_points: 300, error_message: "no" }
    expect(encodeAnswer(300, 'no')).toEqual(bytes('0a 07  08 ac02  12 02 6e6f'))
    expect(answerAsJson(300, 'no')).toBe('{"partialSuccess":{"rejectedDataPoints":"300","errorMessage":"no"}}')
  })
})

/** A field with bytes. */
function nested(field: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts)
  const length: number[] = []
  for (let left = content.length; ; left >>>= 7) {
    length.push(left > 0x7f ? (left & 0x7f) | 0x80 : left)
    if (left <= 0x7f) break
  }
  return Buffer.concat([Uint8Array.from([(field << 3) | 2, ...length]), content])
}

function repeatedly(bytes: Uint8Array, times: number): Uint8Array {
  return Buffer.alloc(bytes.length * times, bytes)
}

function le(value: bigint): string {
  const buffer = Buffer.alloc(8)
  buffer.writeBigUInt64LE(value)
  return buffer.toString('hex')
}

describe('whatever comes', () => {
  const attempt = (read: () => unknown): void => {
    try {
      read()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
    }
  }

  test('a request that is cut off anywhere is refused', () => {
    for (let length = 1; length < request.length; length++) {
      expect(() => decode(request.subarray(0, length)), String(length)).toThrow(ProtocolError)
    }
  })

  test('random bytes and changed ones give a request or a ProtocolError', () => {
    const random = new Random(11)
    for (let round = 0; round < times({ short: 1_000, long: 5_000 }); round++) {
      attempt(() => decode(Uint8Array.from({ length: random.below(64) }, () => random.below(256))))
      const changed = Uint8Array.from(request)
      for (let count = 1 + random.below(4); count > 0; count--)
        changed[random.below(changed.length)] = random.below(256)
      attempt(() => decode(changed))
    }
  })

  const point = (kind: string, point: object): string => {
    const metric = { name: 'm', [kind]: { dataPoints: [point] } }
    // JSON.stringify has no number that is too large.
    const text = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics: [metric] }] }] })
    return text.replace('"endless"', '1e999')
  }

  test.each([
    ['gauge', { asInt: '9223372036854775808' }],
    ['gauge', { asInt: '-9223372036854775809' }],
    ['gauge', { asDouble: 1, timeUnixNano: '-1' }],
    ['gauge', { asDouble: 1, timeUnixNano: 'endless' }],
    ['gauge', { asDouble: 1, flags: -1 }],
    ['histogram', { startTimeUnixNano: 'endless' }],
    ['histogram', { startTimeUnixNano: 1e300 }],
    ['histogram', { count: '-1' }],
    ['histogram', { count: '18446744073709551616' }],
    ['histogram', { bucketCounts: ['-1'] }],
    ['histogram', { bucketCounts: [1e300] }],
    ['exponentialHistogram', { zeroCount: '-1' }],
    ['exponentialHistogram', { scale: 2 ** 31 }],
    ['exponentialHistogram', { positive: { offset: -(2 ** 31) - 1 } }],
    ['exponentialHistogram', { negative: { bucketCounts: ['18446744073709551616'] } }],
  ])('JSON with an integer beyond its type has no such point: %s %j', (kind, given) => {
    const [resource] = finish(metricsFromJson(point(kind, given), LIMITS))
    expect(resource?.scopes[0]?.metrics[0]).toMatchObject({ data: { points: [] }, unread: { points: 1 } })
  })

  test('JSON has integers up to the bounds of their types', () => {
    const read = (kind: string, given: object) =>
      finish(metricsFromJson(point(kind, given), LIMITS))[0]?.scopes[0]?.metrics[0]?.data?.points[0]
    expect(read('gauge', { asInt: '-9223372036854775808' })).toMatchObject({ value: -(2n ** 63n) })
    expect(read('histogram', { count: '18446744073709551615' })).toMatchObject({ count: 2n ** 64n - 1n })
    expect(read('exponentialHistogram', { scale: -(2 ** 31) })).toMatchObject({ scale: -(2 ** 31) })
    expect(read('gauge', { asInt: 1, timeUnixNano: 1.7e18 })).toMatchObject({ time: 1.7e15 })
  })

  test('JSON of other shapes gives a request or a ProtocolError', () => {
    const random = new Random(12)
    const odd = [null, 0, -1, 1.5, '', 'x', [], {}, [[]], [null], true, '1'.repeat(30), { values: [{}] }]
    const keys = [
      'resourceMetrics',
      'scopeMetrics',
      'metrics',
      'gauge',
      'sum',
      'histogram',
      'exponentialHistogram',
      'summary',
      'dataPoints',
      'attributes',
      'asInt',
      'asDouble',
      'timeUnixNano',
      'count',
      'bucketCounts',
      'explicitBounds',
      'value',
      'key',
      'stringValue',
      'arrayValue',
      'kvlistValue',
      'values',
      'positive',
      'quantileValues',
      'resource',
      'scope',
      'flags',
      'name',
    ]
    const make = (depth: number): unknown => {
      if (depth === 0 || random.below(5) === 0) return random.pick(odd)
      const made = Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [random.pick(keys), make(depth - 1)]),
      )
      return random.below(2) === 0 ? made : [made]
    }
    for (let round = 0; round < times({ short: 1_000, long: 5_000 }); round++) {
      const metrics = [{ name: 'a', [random.pick(keys)]: { dataPoints: [make(3)], ...(make(2) as object) } }]
      const text = JSON.stringify(
        random.below(4) === 0 ? make(6) : { resourceMetrics: [{ scopeMetrics: [{ metrics, scope: make(2) }] }] },
      )
      attempt(() => finish(metricsFromJson(text, LIMITS)))
    }
  })
})
