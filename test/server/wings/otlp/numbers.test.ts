/** Numbers of any kind in every kind of data of OTLP: each is taken as it came or refused, and whoever reads can write it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OtlpDoor } from '../../../../server/wings/otlp/door.ts'
import { times } from '../../../support/long.ts'
import { doubles, integers } from '../../../support/odd-numbers.ts'
import { lastOf } from '../../../support/readers.ts'
import { publishing } from '../publishing.ts'

const JSON_TYPE = 'application/json'
const RUNS = { numRuns: times({ short: 20, long: 80 }) }

const feed = () => publishing('otlp', (publication, { clock }) => new OtlpDoor({ publication, clock }))

/** JSON writes a double as a number, or as a text; a number beyond what a double can be is one too. */
const jsonDouble = fc.oneof(
  doubles.map((one) => (Number.isFinite(one) ? one : String(one))),
  fc.constantFrom('1e999'),
)
/** A number, or a text, as senders write integers of 64 bits. */
const jsonInteger = fc.oneof(integers.map(String), fc.integer(), doubles.filter(Number.isFinite))
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })
const shared = {
  startTimeUnixNano: optional(jsonInteger),
  timeUnixNano: fc.constantFrom('1700000000000000000', '1700000000000001000', '0'),
}
const distribution = {
  ...shared,
  count: jsonInteger,
  sum: optional(jsonDouble),
  min: optional(jsonDouble),
  max: optional(jsonDouble),
}
const buckets = fc.record({ offset: jsonInteger, bucketCounts: fc.array(jsonInteger, { maxLength: 4 }) })
const pointsOf = <T>(point: fc.Arbitrary<T>, more: object = {}) =>
  fc.array(point, { minLength: 1, maxLength: 3 }).map((dataPoints) => ({ dataPoints, ...more }))
const cumulative = { aggregationTemporality: 2 }
const number = fc.oneof(fc.record({ ...shared, asDouble: jsonDouble }), fc.record({ ...shared, asInt: jsonInteger }))
const data = fc.oneof(
  pointsOf(number).map((gauge) => ({ gauge })),
  pointsOf(number, { ...cumulative, isMonotonic: true }).map((sum) => ({ sum })),
  pointsOf(
    fc.record({
      ...distribution,
      explicitBounds: fc.array(jsonDouble, { maxLength: 4 }),
      bucketCounts: fc.array(jsonInteger, { maxLength: 5 }),
    }),
    cumulative,
  ).map((histogram) => ({ histogram })),
  pointsOf(
    fc.record({
      ...distribution,
      scale: jsonInteger,
      zeroCount: jsonInteger,
      zeroThreshold: jsonDouble,
      positive: buckets,
      negative: buckets,
    }),
    cumulative,
  ).map((exponentialHistogram) => ({ exponentialHistogram })),
  pointsOf(
    fc.record({
      ...distribution,
      quantileValues: fc.array(fc.record({ quantile: jsonDouble, value: jsonDouble }), { maxLength: 4 }),
    }),
  ).map((summary) => ({ summary })),
)
const text = (metrics: readonly object[]): string =>
  JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }).replaceAll('"1e999"', '1e999')

it('are taken as they are, or cost their point, and no other of the same request', () =>
  fc.assert(
    fc.asyncProperty(fc.array(data, { minLength: 1, maxLength: 4 }), async (given) => {
      const { readers, post } = feed()
      const good = { name: 'good', gauge: { dataPoints: [{ asDouble: 7 }] } }
      const answer = await post(text([...given.map((one, at) => ({ name: `m${at}`, ...one })), good]), JSON_TYPE)
      expect(answer.status, String(answer.body)).toBe(200)
      expect(lastOf(await readers.read(), 'otlp.good')).toBe(7)
    }),
    RUNS,
  ))
