/**
 * Metrics of OpenTelemetry as they are sent (opentelemetry-proto 1.x, metrics/v1), read from either encoding. Times are
 * microseconds since 1970, 0 where none was given; counts are bigints.
 */

/** A value of an attribute (common/v1 AnyValue); undefined is the empty value. */
export type AnyValue = string | boolean | bigint | number | Uint8Array | readonly AnyValue[] | Attributes | undefined

export interface Attributes {
  readonly entries: readonly Attribute[]
}

export interface Attribute {
  readonly key: string
  readonly value: AnyValue
}

/** Attributes of a point as they were read. */
export interface ReadAttributes {
  readonly attributes: readonly Attribute[]
  /** As which they count. */
  readonly elements: number
}

export interface Point {
  readonly attributes: readonly Attribute[]
  /** All of its attributes: the same object as earlier in this metric of this resource and scope, if their bytes are remembered. */
  readonly shared?: ReadAttributes | undefined
  readonly start: number
  readonly time: number
  /** NO_RECORDED_VALUE: the series has ended. */
  readonly isEnd: boolean
}

export interface NumberPoint extends Point {
  /** A bigint if it was sent as an integer; undefined if there is none. */
  readonly value: number | bigint | undefined
}

interface Distribution extends Point {
  readonly count: bigint
  readonly sum: number | undefined
  readonly min: number | undefined
  readonly max: number | undefined
}

export interface HistogramPoint extends Distribution {
  readonly counts: readonly bigint[]
  readonly bounds: readonly number[]
}

export interface Buckets {
  readonly offset: number
  readonly counts: readonly bigint[]
}

export interface ExponentialPoint extends Distribution {
  readonly scale: number
  readonly zeroCount: bigint
  readonly zeroThreshold: number
  readonly positive: Buckets
  readonly negative: Buckets
}

export interface SummaryPoint extends Point {
  readonly count: bigint
  readonly sum: number
  readonly quantiles: readonly { readonly quantile: number; readonly value: number }[]
}

/** Aggregation temporality, by the numbers of metrics/v1. */
export const Temporality = { UNSPECIFIED: 0, DELTA: 1, CUMULATIVE: 2 } as const

export type MetricData =
  | { readonly kind: 'gauge'; readonly points: readonly NumberPoint[] }
  | {
      readonly kind: 'sum'
      readonly temporality: number
      readonly isMonotonic: boolean
      readonly points: readonly NumberPoint[]
    }
  | { readonly kind: 'histogram'; readonly temporality: number; readonly points: readonly HistogramPoint[] }
  | {
      readonly kind: 'exponential-histogram'
      readonly temporality: number
      readonly points: readonly ExponentialPoint[]
    }
  | { readonly kind: 'summary'; readonly points: readonly SummaryPoint[] }

export interface OtlpMetric {
  readonly name: string
  readonly unit: string
  readonly description: string
  /** Undefined if it has none, or one of a kind that is not known here. */
  readonly data: MetricData | undefined
  /** Points that are not in `data`, as something in them is not what it has to be, or as they have too many elements. */
  readonly unread?: Unread | undefined
}

export interface Unread {
  readonly points: number
  /** What is wrong with the first of them, for people. */
  readonly problem: string
}

export interface ScopeMetrics {
  readonly name: string
  readonly version: string
  readonly attributes: readonly Attribute[]
  readonly metrics: readonly OtlpMetric[]
}

export interface ResourceMetrics {
  readonly attributes: readonly Attribute[]
  readonly scopes: readonly ScopeMetrics[]
}

/** What a point costs without its fields, in fields: an empty one of two bytes becomes an object with many. */
export const pointWeights: Readonly<Record<MetricData['kind'], number>> = {
  gauge: 2,
  sum: 2,
  histogram: 10,
  'exponential-histogram': 20,
  summary: 8,
}

/** What a request may be turned into. */
export interface OtlpLimits {
  /** Fields, packed numbers and the weights of points together. */
  readonly elements: number
}

/**
 * Fields and numbers of one point, with those of its attributes: a point is read, written and kept as one, and others wait for
 * that. SDKs make histograms of some hundred buckets at most.
 */
export const MAX_POINT_ELEMENTS = 8_192
export const POINT_TOO_LARGE = `a point has at most ${MAX_POINT_ELEMENTS} fields and numbers`

/** Values of attributes nest at most this deep; a deeper one costs the points that would have the attribute. */
export const MAX_ANY_DEPTH = 8
export const VALUE_TOO_DEEP = `values of attributes nest at most ${MAX_ANY_DEPTH} deep`
/** The bit of `flags` that says NO_RECORDED_VALUE. */
export const NO_RECORDED_VALUE = 1

/** Metrics whose points cannot have the attributes of their resource or scope, since there is a problem with these. */
export function withoutPoints(metrics: readonly OtlpMetric[], problem: string | undefined): readonly OtlpMetric[] {
  if (problem === undefined) return metrics
  return metrics.map(({ data, unread, ...about }) => {
    const points = (data?.points.length ?? 0) + (unread?.points ?? 0)
    return { ...about, data: undefined, unread: { points, problem } }
  })
}
