/** Metrics of OpenTelemetry as series of the family `otlp.`: names, labels and values (docs/sources/otlp.md). */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, type Value, VOID } from '../../../protocol/monitor/value.ts'
import { textOfAny } from '../../../protocol/otlp/attributes.ts'
import {
  type Attribute,
  type Buckets,
  type MetricData,
  type OtlpMetric,
  type ResourceMetrics,
  type ScopeMetrics,
  Temporality,
} from '../../../protocol/otlp/metrics.ts'
import type { ColumnWriter, SeriesLabel } from '../../kit/columns.ts'
import type { MetricMetadata } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'

export const OTLP_FAMILY = 'otlp.'

const { ARRAY, BOOLEAN, DOUBLE, INT32, INT64, REC, UINT64 } = BasicType

/** What is written in one step, in labels: each point costs some, and each element of a histogram. */
const LABELS_PER_STEP = 512
const POINT_COST = 8

/** JSON has no NaN and no infinities, and some exporters write null for them. */
const NO_VALUE = 'a point has no value'

type Points = MetricData['points'][number]

/** Writes the series of a request, a point each. `now`: the time of points without one, microseconds since 1970. */
export function* writeSeries(columns: ColumnWriter, resources: readonly ResourceMetrics[], now: number): Steps<void> {
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
          const value = point.isEnd ? VOID : measuredOf(data, point)
          if (value === undefined) {
            columns.reject(metric.name, 1, NO_VALUE)
            continue
          }
          columns.begin(metric.name, merged(outer, point.attributes), metadata)
          columns.value(value, point.time === 0 ? now : point.time)
          // A histogram may have very many buckets.
          sinceStep += POINT_COST + outer.length + point.attributes.length
          if (value.type !== BasicType.REC && sinceStep < LABELS_PER_STEP) continue
          sinceStep = 0
          yield
        }
      }
    }
  }
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
  const [first] = data.points
  const type = first && measuredOf(data, first)?.type
  return { type, unit, description, isCounter: isCounter(data) }
}

/** A monotonic sum of differences does not grow. */
function isCounter(data: MetricData): boolean | undefined {
  if (data.kind === 'gauge') return false
  if (data.kind !== 'sum') return undefined
  return data.isMonotonic && data.temporality === Temporality.CUMULATIVE
}

/** Undefined if the point has none. */
function measuredOf(data: MetricData, point: Points): Value | undefined {
  if (data.kind === 'gauge' || data.kind === 'sum') return numberOf((point as { value?: number | bigint }).value)
  const temporality = data.kind === 'summary' ? [] : [temporalityField(data.temporality)]
  return { type: REC, value: [...temporality, startField(point.start), ...distributionOf(data, point)] }
}

function numberOf(value: number | bigint | undefined): Value | undefined {
  if (value === undefined) return undefined
  return typeof value === 'bigint' ? { type: INT64, value: BigInt.asIntN(64, value) } : { type: DOUBLE, value }
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

function distributionOf(data: MetricData, point: Points): Field[] {
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
