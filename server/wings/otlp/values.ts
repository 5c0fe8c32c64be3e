/** Metrics of OpenTelemetry as series of the family `otlp.`: names, labels and values (docs/sources/otlp.md). */
import type { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, type Value, VOID } from '../../../protocol/monitor/value.ts'
import { textOfAny } from '../../../protocol/otlp/attributes.ts'
import {
  type Attribute,
  type Buckets,
  type MetricData,
  type NumberPoint,
  type OtlpMetric,
  type ReadAttributes,
  type ResourceMetrics,
  type ScopeMetrics,
  Temporality,
} from '../../../protocol/otlp/metrics.ts'
import { UsualHistogram } from '../../../protocol/otlp/usual-points.ts'
import type { ColumnKey, ColumnWriter, SeriesLabel } from '../../kit/columns.ts'
import type { MetricMetadata } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import type { SeriesMemory } from '../../kit/series-memory.ts'

export const OTLP_FAMILY = 'otlp.'

const { ARRAY, BOOLEAN, DOUBLE, INT32, INT64, REC, UINT64 } = BasicType

/** What is written in one step, in labels: each point costs some, and each element of a histogram. */
const LABELS_PER_STEP = 512
const POINT_COST = 8

/** JSON has no NaN and no infinities, and some exporters write null for them. */
const NO_VALUE = 'a point has no value'

type Points = MetricData['points'][number]

/** Writes the series of a request, a point each. `now`: the time of points without one, microseconds since 1970. */
export function* writeSeries(
  columns: ColumnWriter,
  resources: readonly ResourceMetrics[],
  now: number,
  memory: SeriesMemory<ReadAttributes>,
): Steps<void> {
  let sinceStep = 0
  for (const resource of resources) {
    const ofResource = resource.attributes.map(labelOf)
    for (const scope of resource.scopes) {
      const outer = [...ofResource, ...labelsOfScope(scope)]
      for (const metric of scope.metrics) {
        const { data, unread } = metric
        if (unread !== undefined) columns.reject(metric.name, unread.points, unread.problem)
        if (data === undefined) continue
        const metadata = metadataOf(metric, data)
        for (const point of data.points) {
          if (isWithoutValue(data, point)) {
            columns.reject(metric.name, 1, NO_VALUE)
            continue
          }
          const { attributes, shared } = point
          const make = (): ColumnKey => columns.keyOf(metric.name, merged(outer, attributes))
          columns.begin(metric.name, shared === undefined ? make() : memory.keyOf(shared, make), metadata)
          writeValue(columns, data, point, point.time === 0 ? now : point.time)
          // A histogram may have very many buckets.
          sinceStep += POINT_COST + outer.length + attributes.length
          if ((isNumber(data) || point.isEnd) && sinceStep < LABELS_PER_STEP) continue
          sinceStep = 0
          yield
        }
      }
    }
  }
}

function isNumber({ kind }: MetricData): boolean {
  return kind === 'gauge' || kind === 'sum'
}

function isWithoutValue(data: MetricData, point: Points): boolean {
  return isNumber(data) && !point.isEnd && (point as NumberPoint).value === undefined
}

function writeValue(columns: ColumnWriter, data: MetricData, point: Points, time: number): void {
  if (point.isEnd) columns.value(VOID, time)
  else if (data.kind === 'gauge' || data.kind === 'sum') {
    const { value } = point as NumberPoint
    if (typeof value === 'number') columns.double(value, time)
    else columns.value(integer(value as bigint), time)
  } else if (point instanceof UsualHistogram && data.kind === 'histogram') {
    writeHistogram(columns.beginEncoded(time), data.temporality, point)
    columns.endEncoded()
  } else columns.value(distributionOf(data, point), time)
}

function labelOf({ key, value }: Attribute): SeriesLabel {
  return [key, textOfAny(value)]
}

function labelsOfScope({ name, version, attributes }: ScopeMetrics): SeriesLabel[] {
  const labels: SeriesLabel[] = attributes.map(({ key, value }) => [`otel.scope.${key}`, textOfAny(value)])
  if (name !== '') labels.push(['otel.scope.name', name])
  if (version !== '') labels.push(['otel.scope.version', version])
  return labels
}

/** An attribute of the point keeps its name; one of the resource with the same name becomes `resource.<name>`. */
function merged(outer: readonly SeriesLabel[], attributes: readonly Attribute[]): SeriesLabel[] {
  const own = attributes.map(labelOf)
  const names = new Set(own.map(([name]) => name))
  const others = outer.map(([name, text]): SeriesLabel => (names.has(name) ? [`resource.${name}`, text] : [name, text]))
  return [...others, ...own]
}

function metadataOf({ unit, description }: OtlpMetric, data: MetricData): MetricMetadata {
  return { type: typeOf(data), unit, description, isCounter: isCounter(data) }
}

/** The type of the first value. */
function typeOf(data: MetricData): BasicType | undefined {
  const [first] = data.points
  if (first === undefined || !isNumber(data)) return first && REC
  const { value } = first as NumberPoint
  if (value === undefined) return undefined
  return typeof value === 'bigint' ? INT64 : DOUBLE
}

/** A monotonic sum of differences does not grow. */
function isCounter(data: MetricData): boolean | undefined {
  if (data.kind === 'gauge') return false
  if (data.kind !== 'sum') return undefined
  return data.isMonotonic && data.temporality === Temporality.CUMULATIVE
}

function integer(value: bigint): Value {
  return { type: INT64, value: BigInt.asIntN(64, value) }
}

function distributionOf(data: MetricData, point: Points): Value {
  const temporality = 'temporality' in data ? [temporalityField(data.temporality)] : []
  return { type: REC, value: [...temporality, startField(point.start), ...numbersOf(data, point)] }
}

/** Writes what `distributionOf` gives for a histogram, from where its numbers stand. */
function writeHistogram(writer: XdrWriter, temporality: number, point: UsualHistogram): void {
  const { view, start, countAt, sumAt, minAt, maxAt, boundsAt, boundsLength, countsAt, countsLength } = point
  const optional = Number(sumAt >= 0) + Number(minAt >= 0) + Number(maxAt >= 0)
  writer.uint32(REC).uint32(5 + optional)
  writer
    .string('delta')
    .uint32(BOOLEAN)
    .boolean(temporality === Temporality.DELTA)
  writer.string('start').uint32(UINT64).uint53(Math.max(0, start))
  writer.string('count').uint32(UINT64)
  if (countAt < 0) writer.uint53(0)
  else writer.swapped(view, countAt, 1)
  if (sumAt >= 0) writer.string('sum').uint32(DOUBLE).swapped(view, sumAt, 1)
  if (minAt >= 0) writer.string('min').uint32(DOUBLE).swapped(view, minAt, 1)
  if (maxAt >= 0) writer.string('max').uint32(DOUBLE).swapped(view, maxAt, 1)
  writer.string('bounds').uint32(ARRAY).uint32(DOUBLE).uint32(boundsLength).swapped(view, boundsAt, boundsLength)
  writer.string('counts').uint32(ARRAY).uint32(UINT64).uint32(countsLength).swapped(view, countsAt, countsLength)
}

function temporalityField(temporality: number): Field {
  return { name: 'delta', type: BOOLEAN, value: temporality === Temporality.DELTA }
}

function startField(start: number): Field {
  return { name: 'start', type: UINT64, value: BigInt(Math.max(0, start)) }
}

function uint64(name: string, value: bigint): Field {
  return { name, type: UINT64, value: BigInt.asUintN(64, value) }
}

function double(name: string, value: number | undefined): readonly Field[] {
  return value === undefined ? [] : [{ name, type: DOUBLE, value }]
}

function array(name: string, element: BasicType, items: readonly Value['value'][]): Field {
  return { name, type: ARRAY, value: { element, items } } as Field
}

function numbersOf(data: MetricData, point: Points): Field[] {
  switch (data.kind) {
    case 'histogram': {
      const { count, sum, min, max, bounds, counts } = point as Extract<Points, { bounds: unknown }>
      return [
        uint64('count', count),
        ...double('sum', sum),
        ...double('min', min),
        ...double('max', max),
        array('bounds', DOUBLE, bounds),
        array('counts', UINT64, counts),
      ]
    }
    case 'exponential-histogram': {
      const exponential = point as Extract<Points, { scale: unknown }>
      const { count, sum, min, max, scale, zeroCount, zeroThreshold, positive, negative } = exponential
      return [
        uint64('count', count),
        ...double('sum', sum),
        ...double('min', min),
        ...double('max', max),
        { name: 'scale', type: INT32, value: scale },
        uint64('zero_count', zeroCount),
        ...double('zero_threshold', zeroThreshold),
        ...buckets('positive', positive),
        ...buckets('negative', negative),
      ]
    }
    case 'summary': {
      const { count, sum, quantiles } = point as Extract<Points, { quantiles: unknown }>
      return [
        uint64('count', count),
        ...double('sum', sum),
        array(
          'quantiles',
          DOUBLE,
          quantiles.map(({ quantile }) => quantile),
        ),
        array(
          'values',
          DOUBLE,
          quantiles.map(({ value }) => value),
        ),
      ]
    }
    default:
      return []
  }
}

function buckets(name: string, { offset, counts }: Buckets): Field[] {
  return [{ name: `${name}_offset`, type: INT32, value: offset }, array(`${name}_counts`, UINT64, counts)]
}
