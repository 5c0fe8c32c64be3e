/**
 * Random metrics as the SDK of OpenTelemetry has them, written by its own serializers in both encodings: whoever consumes gets the
 * numbers, times, names and attributes of the SDK.
 *
 * TEST_SEED=n runs one seed.
 */
import { JsonMetricsSerializer, ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AggregationTemporality, DataPointType, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { command } from '../../../support/bytes.ts'
import { seeds } from '../../../support/long.ts'
import { PublishingProducer } from '../../../support/publisher.ts'
import { Random } from '../../../support/random.ts'
import { decoded } from '../../../support/records.ts'

type Attributes = Record<string, string | number | boolean | string[]>
type Metric = ResourceMetrics['scopeMetrics'][number]['metrics'][number]

const SECONDS = 1_700_000_000
const KEYS = ['a', 'A', 'http.route', 'größe', 'le', 'quantile', 'host', 'name', 'time', 'service.name', '_', 'x y']
const TEXTS = ['', 'x', ' ', '\n', '\0', '\\', '"', '\u{1f600}', '\ufeff', '\u2028', '{}', 'e\u0301', 'l'.repeat(1_000)]
const NUMBERS = [
  0,
  1,
  -1,
  0.1,
  1 / 3,
  1e21,
  5e-324,
  2.2250738585072014e-308,
  Number.MAX_VALUE,
  2 ** 53,
  2 ** 64,
  -(2 ** 63),
]
/** JSON has no numbers for these. */
const NO_JSON = [-0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
const INTEGERS = [0, 1, -1, 42, 2 ** 31, 2 ** 53, -(2 ** 53), 2 ** 62, -(2 ** 63)]

function attributesOf(random: Random, keys: readonly string[]): Attributes {
  const value = () => {
    const plain = random.pick([random.pick(TEXTS), random.pick(INTEGERS.slice(0, 5)), 0.5, true, false])
    return random.below(5) === 0 ? ['x', random.pick(TEXTS)] : plain
  }
  return Object.fromEntries(Array.from({ length: random.below(4) }, () => [random.pick(keys), value()]))
}

/** One metric with one point, and the value that it has here. */
function metricOf(
  random: Random,
  name: string,
  isJson: boolean,
): { metric: Metric; value: unknown; labels: Attributes } {
  const attributes = attributesOf(random, KEYS)
  const double = () => random.pick(isJson ? NUMBERS : [...NUMBERS, ...NO_JSON])
  const times = { startTime: [SECONDS, 0] as [number, number], endTime: [SECONDS + 1, 2_000] as [number, number] }
  const about = { name, description: 'What it is.', unit: 's', type: 'GAUGE', valueType: random.below(2), advice: {} }
  const aggregationTemporality = random.pick([AggregationTemporality.DELTA, AggregationTemporality.CUMULATIVE])
  const made = (dataPointType: DataPointType, point: unknown, more: object = {}) =>
    ({
      descriptor: about,
      aggregationTemporality,
      dataPointType,
      dataPoints: [{ ...times, attributes, value: point }],
      ...more,
    }) as unknown as Metric
  const delta = aggregationTemporality === AggregationTemporality.DELTA
  const start = SECONDS * 1_000_000
  if (random.below(3) > 0) {
    const number = about.valueType === 0 ? random.pick(INTEGERS) : double()
    const [type, more] = random.pick([
      [DataPointType.GAUGE, {}],
      [DataPointType.SUM, { isMonotonic: random.below(2) === 0 }],
    ] as const)
    return { metric: made(type, number, more), value: number, labels: attributes }
  }
  const sums = { sum: double(), min: double(), max: double() }
  const counts = Array.from({ length: 3 }, () => random.pick([0, 1, 7, 2 ** 53]))
  const count = counts.reduce((sum, one) => sum + one, 0)
  if (random.below(2) === 0) {
    const bounds = [-1, 0.5]
    const point = { buckets: { boundaries: bounds, counts }, count, ...sums, hasMinMax: true }
    const value = { delta, start, count, ...sums, bounds, counts }
    return { metric: made(DataPointType.HISTOGRAM, point), value, labels: attributes }
  }
  const [scale, zeroCount] = [random.pick([-10, 0, 20]), random.pick([0, 3])]
  const sides = { positive: { offset: -3, bucketCounts: counts }, negative: { offset: 7, bucketCounts: [] } }
  const point = { count, ...sums, scale, zeroCount, ...sides, hasMinMax: true }
  const value = {
    ...{ delta, start, count, ...sums, scale, zero_count: zeroCount, zero_threshold: 0 },
    ...{ positive_offset: -3, positive_counts: counts, negative_offset: 7, negative_counts: [] },
  }
  return { metric: made(DataPointType.EXPONENTIAL_HISTOGRAM, point), value, labels: attributes }
}

/** "Attribute", non-string values: JSON. */
function textOf(value: Attributes[string]): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Numbers as texts, since those of 64 bits come as texts where a double does not have them. */
function shown(value: unknown): unknown {
  if (typeof value === 'number' || /^-?\d+$/.test(String(value))) {
    return Number.isInteger(Number(value)) && !Object.is(value, -0)
      ? String(BigInt(value as number))
      : shownDouble(value)
  }
  if (Array.isArray(value)) return value.map(shown)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shown(one)]))
}

function shownDouble(value: unknown): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

let server: PublishingProducer
beforeEach(async () => {
  server = await PublishingProducer.start()
})
afterEach(() => server.stop())

it.each(seeds({ short: 4, long: 40 }))('seed %i', async (seed) => {
  const random = new Random(seed)
  const isJson = random.below(2) === 0
  const resource = attributesOf(random, ['service.name', 'host', 'a'])
  const metrics = Array.from({ length: 30 }, (_, at) => metricOf(random, `m${at}.größe x`, isJson))
  const seat = await server.producer.seat()
  const id = await seat.collect('otlp.*')
  await seat.ok((seq) => command.subscribe(seq, id))
  const request: ResourceMetrics = {
    resource: resourceFromAttributes(resource),
    scopeMetrics: [{ scope: { name: 'lib', version: '1.2' }, metrics: metrics.map(({ metric }) => metric) }],
  }
  const serializer = isJson ? JsonMetricsSerializer : ProtobufMetricsSerializer
  const headers = { 'content-type': isJson ? 'application/json' : 'application/x-protobuf' }
  const answer = await server.post('/v1/metrics', serializer.serializeRequest(request) ?? '', headers)
  expect([answer.status, isJson && (await answer.text())]).toEqual([200, isJson && '{}'])
  const got = (await seat.values(metrics.length)).map((message) => {
    const { name, value, ...labels } = decoded(message)
    return { name, value: shown(value), labels, time: message.time }
  })
  const expected = metrics.map(({ metric, value, labels: own }) => {
    const outer = Object.entries(resource).map(([key, text]) => [key in own ? `resource.${key}` : key, text] as const)
    // The empty text is that of a label that is not there.
    const all = [...outer, ...Object.entries(own)]
      .filter(([, text]) => text !== '')
      .map(([key, text]) => [key, textOf(text)] as const)
    const labels = Object.fromEntries(
      all.map(([key, text]) => [/^(name|time)$/.test(key) ? `exported_${key}` : key, text]),
    )
    return {
      name: `otlp.${metric.descriptor.name}`,
      value: shown(value),
      labels: { ...labels, 'otel.scope.name': 'lib', 'otel.scope.version': '1.2' },
      time: (SECONDS + 1) * 1_000_000 + 2,
    }
  })
  expect(got).toEqual(expected)
})
