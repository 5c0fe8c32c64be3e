/** OTLP in JSON as programs are known to send it: what the JSON mapping of protocol buffers allows, and what the Collector takes. */
import { describe, expect, it } from 'vitest'
import { textOfAny } from '../../../protocol/otlp/attributes.ts'
import { metricsFromJson } from '../../../protocol/otlp/json.ts'
import {
  MAX_ANY_DEPTH,
  MAX_POINT_ELEMENTS,
  type NumberPoint,
  type OtlpMetric,
  POINT_TOO_LARGE,
  VALUE_TOO_DEEP,
} from '../../../protocol/otlp/metrics.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'

const metricsOf = (metrics: readonly unknown[]): readonly OtlpMetric[] => {
  const text = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
  return finish(metricsFromJson(text, { elements: 10_000 }))[0]?.scopes[0]?.metrics ?? []
}
const metricOf = (metric: unknown): OtlpMetric => metricsOf([metric])[0] as OtlpMetric
const pointOf = (point: unknown): NumberPoint =>
  metricOf({ name: 'm', gauge: { dataPoints: [point] } }).data?.points[0] as NumberPoint
const labelOf = (value: unknown): string | undefined => {
  const [attribute] = pointOf({ asInt: 1, attributes: [{ key: 'a', value }] }).attributes
  return attribute && textOfAny(attribute.value)
}

describe('null', () => {
  it('is nothing in a choice of values (opentelemetry-rust#3677, ai#6546)', () => {
    expect(pointOf({ asInt: null, asDouble: 1.5 }).value).toBe(1.5)
    expect(pointOf({ asDouble: null, asInt: '5' }).value).toBe(5n)
  })

  it.each(['stringValue', 'boolValue', 'intValue', 'doubleValue', 'arrayValue', 'kvlistValue', 'bytesValue'])(
    'is nothing as %s of an attribute, and leaves the place to another',
    (key) => {
      expect(labelOf({ [key]: null })).toBe('')
      expect(labelOf({ [key]: null, ...(key === 'intValue' ? { doubleValue: 5 } : { intValue: '5' }) })).toBe('5')
    },
  )

  it('is nothing in lists, and the empty value in one of values', () => {
    expect(metricsOf([null, { name: 'good' }]).map(({ name }) => name)).toEqual(['good'])
    expect(metricOf({ name: 'm', gauge: { dataPoints: [null, { asInt: 1 }] } }).data?.points).toHaveLength(1)
    expect(labelOf({ arrayValue: { values: [null, { intValue: '1' }] } })).toBe('[null,1]')
  })
})

describe('integers', () => {
  it('may be texts, those of 32 bits too, and have an exponent or zeros behind the point', () => {
    const exponential = {
      dataPoints: [{ count: '1e1', scale: '3', positive: { offset: '-1', bucketCounts: ['2.0'] } }],
    }
    expect(metricOf({ name: 'm', exponentialHistogram: exponential }).data?.points[0]).toMatchObject({
      count: 10n,
      scale: 3,
      positive: { offset: -1, counts: [2n] },
    })
    expect(pointOf({ asInt: '1e3', flags: '1' })).toMatchObject({ value: 1_000n, isEnd: true })
    expect(pointOf({ asInt: '10.0', flags: '0' })).toMatchObject({ value: 10n, isEnd: false })
  })

  it.each([
    ['9007199254740993.0', 9_007_199_254_740_993n],
    ['9007199254740993e0', 9_007_199_254_740_993n],
    ['-900719925474099.3E1', -9_007_199_254_740_993n],
    ['922337203685477580.70e+1', 9_223_372_036_854_775_807n],
    ['92233720368547758070e-1', 9_223_372_036_854_775_807n],
    ['0.0e999', 0n],
    ['-0', 0n],
  ])('as texts are exact: %s', (asInt, value) => {
    expect(pointOf({ asInt }).value).toBe(value)
  })

  it.each([
    { asInt: '9007199254740992.5' },
    { asInt: '9007199254740993e-1' },
    { asInt: '1e-999' },
    { asInt: '9223372036854775807.9' },
    { asInt: '9223372036854775807e1' },
    { asInt: '9223372036854775808' },
    { asInt: '-9223372036854775809' },
    { asInt: 1e300 },
    { asInt: '1e300' },
    { asInt: '1.5' },
    { asInt: 1, flags: '4294967296' },
    { asInt: 1, flags: 'x' },
  ])('beyond their type cost their point: %j', (point) => {
    const { data, unread } = metricOf({ name: 'm', gauge: { dataPoints: [{ asInt: 1 }, point, { asInt: 3 }] } })
    expect(data?.points.map((each) => (each as NumberPoint).value)).toEqual([1n, 3n])
    expect(unread).toEqual({ points: 1, problem: expect.stringMatching(/^(asInt|flags): an integer/) })
  })
})

/** A value of an attribute that nests so deep. */
function deepIn(kind: 'arrayValue' | 'kvlistValue', depth: number): object {
  if (depth === 1) return { stringValue: 'x' }
  const inner = deepIn(kind, depth - 1)
  return { [kind]: { values: [kind === 'arrayValue' ? inner : { key: 'k', value: inner }] } }
}
const attributed = (value: object) => ({ asInt: 1, attributes: [{ key: 'a', value }] })

it('a value of an attribute may nest as deep as the limit', () => {
  for (const kind of ['arrayValue', 'kvlistValue'] as const) {
    const point = attributed(deepIn(kind, MAX_ANY_DEPTH))
    expect(metricOf({ name: 'm', gauge: { dataPoints: [point] } })).toMatchObject({ data: { points: [{ value: 1n }] } })
  }
})

describe('what is wrong in a point', () => {
  it.each([
    [attributed(deepIn('arrayValue', MAX_ANY_DEPTH + 1)), VALUE_TOO_DEEP],
    [attributed(deepIn('kvlistValue', MAX_ANY_DEPTH + 1)), VALUE_TOO_DEEP],
    [{ asDouble: 'x' }, 'asDouble: a number was expected'],
    [{ asInt: 1, timeUnixNano: '-1' }, 'timeUnixNano: an integer of 64 bits from 0 on was expected'],
    [{ asInt: 1, attributes: [{ key: 'a', value: { bytesValue: 'Y*' } }] }, 'bytesValue: base64 was expected'],
    [{ asInt: 1, attributes: [{ key: 5 }] }, 'key: a text was expected'],
  ])('costs that point, and no other: %j', (point, problem) => {
    const { data, unread } = metricOf({ name: 'm', gauge: { dataPoints: [point, { asInt: 2 }, point] } })
    expect(data?.points).toHaveLength(1)
    expect(unread).toEqual({ points: 2, problem })
  })

  it.each(['histogram', 'exponentialHistogram', 'summary'])('of a %s too', (kind) => {
    const { data, unread } = metricOf({ name: 'm', [kind]: { dataPoints: [{ count: '-1' }, { count: '3' }] } })
    expect(data?.points).toMatchObject([{ count: 3n }])
    expect(unread?.points).toBe(1)
  })

  it.each(['1e999', '-1e999', '"1e999"'])('is a number beyond all doubles: %s', (written) => {
    const metric = `{"name":"m","gauge":{"dataPoints":[{"asDouble":${written}},{"asDouble":"-Infinity"}]}}`
    const text = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[${metric}]}]}]}`
    const [read] = finish(metricsFromJson(text, { elements: 100 }))[0]?.scopes[0]?.metrics ?? []
    expect(read?.data?.points).toMatchObject([{ value: Number.NEGATIVE_INFINITY }])
    expect(read?.unread).toEqual({ points: 1, problem: 'asDouble: a number was expected' })
  })

  it.each([
    ['resource', { intValue: '9223372036854775808' }, 'intValue: an integer of 64 bits was expected'],
    ['scope', { intValue: '9223372036854775808' }, 'intValue: an integer of 64 bits was expected'],
    ['resource', deepIn('kvlistValue', MAX_ANY_DEPTH + 1), VALUE_TOO_DEEP],
    ['scope', deepIn('arrayValue', MAX_ANY_DEPTH + 1), VALUE_TOO_DEEP],
  ])('of a %s costs its points: %j', (where, value, problem) => {
    const bad = { attributes: [{ key: 'a', value }] }
    const metrics = [{ name: 'm', gauge: { dataPoints: [{ asInt: 1 }, { asInt: 'x' }] } }]
    const part = (given: object) => {
      const [resource, scope] = where === 'resource' ? [given, {}] : [{}, given]
      return { resource, scopeMetrics: [{ scope, metrics }] }
    }
    const text = JSON.stringify({ resourceMetrics: [part(bad), part({})] })
    const [lost, kept] = finish(metricsFromJson(text, { elements: 1_000 })).map(({ scopes }) => scopes[0]?.metrics[0])
    expect(lost).toMatchObject({
      data: undefined,
      unread: { points: 2, problem },
    })
    expect(kept).toMatchObject({ data: { points: [{ value: 1n }] }, unread: { points: 1 } })
  })

  it('may be no object, which nobody can have meant: that costs the request', () => {
    expect(() => metricOf({ name: 'm', gauge: { dataPoints: [1] } })).toThrow('metric m: dataPoints: a list of objects')
  })
})

it('bytes may be base64 of either alphabet, with padding or without', () => {
  expect(labelOf({ bytesValue: 'YQ' })).toBe('YQ==')
  expect(labelOf({ bytesValue: '-_-_' })).toBe('+/+/')
})

it('names of enumerations are their numbers (opentelemetry-collector#6338)', () => {
  const sum = (aggregationTemporality: unknown) => metricOf({ name: 'm', sum: { aggregationTemporality } }).data
  expect(sum('AGGREGATION_TEMPORALITY_CUMULATIVE')).toMatchObject({ temporality: 2 })
  expect(sum('AGGREGATION_TEMPORALITY_DELTA')).toMatchObject({ temporality: 1 })
  expect(sum('2')).toMatchObject({ temporality: 2 })
  expect(() => sum('AGGREGATION_TEMPORALITY_OTHER')).toThrow('metric m: aggregationTemporality')
})

it('a point with too many elements is left out, and counts', () => {
  const most = new Array(MAX_POINT_ELEMENTS).fill(1)
  const values = { values: most.map(() => ({ intValue: 1 })) }
  const points = {
    histogram: [{ bucketCounts: [...most, 1] }, { bucketCounts: most }, { bucketCounts: most, explicitBounds: [1] }],
    exponentialHistogram: [{ positive: { bucketCounts: most }, negative: { bucketCounts: [1] } }, {}],
    gauge: [{ attributes: [{ key: 'a', value: { arrayValue: values } }] }, { asInt: 1 }],
  }
  for (const [kind, dataPoints] of Object.entries(points)) {
    const text = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics: [{ [kind]: { dataPoints } }] }] }] })
    const [resource] = finish(metricsFromJson(text, { elements: 20_000 }))
    const { data, unread } = resource?.scopes[0]?.metrics[0] ?? {}
    expect([data?.points.length, unread]).toEqual([1, { points: dataPoints.length - 1, problem: POINT_TOO_LARGE }])
  }
})

it('keys may be in snake_case (opentelemetry-collector#8974)', () => {
  const metrics = [{ name: 'm', gauge: { data_points: [{ as_int: '7', time_unix_nano: '2000' }] } }]
  const text = JSON.stringify({ resource_metrics: [{ scope_metrics: [{ metrics }] }] })
  const [resource] = finish(metricsFromJson(text, { elements: 100 }))
  expect(resource?.scopes[0]?.metrics[0]?.data?.points[0]).toMatchObject({ value: 7n, time: 2 })
})

it('half of a pair costs no more than what it belongs to (opentelemetry-collector#11449)', () => {
  const point = { asInt: 1, attributes: [{ key: 'a', value: { stringValue: 'x\ud83d' } }] }
  expect(pointOf(point).attributes).toEqual([{ key: 'a', value: 'x\ud83d' }])
})
