/** Values that programs of others take: numbers, and records that say how values are distributed (docs/sources/otlp.md). */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'

/** Times are exact up to here, in microseconds. */
const MAX_TIME = BigInt(Number.MAX_SAFE_INTEGER)
/** All counts of a histogram together fit the type of one. */
const MAX_COUNT = 2n ** 64n - 1n

interface Totals {
  readonly count: bigint
  readonly sum: number | undefined
  readonly min: number | undefined
  readonly max: number | undefined
  /** Since when it counts, microseconds since 1970. */
  readonly start: number
}

export interface HistogramValue extends Totals {
  readonly kind: 'histogram'
  /** Whether it counts since the value before. */
  readonly isDelta: boolean
  readonly bounds: readonly number[]
  readonly counts: readonly bigint[]
}

export interface SummaryValue extends Totals {
  readonly kind: 'summary'
  readonly quantiles: readonly number[]
  readonly values: readonly number[]
}

/** As ExponentialHistogramDataPoint of OpenTelemetry has it. */
export interface ExponentialValue extends Totals {
  readonly kind: 'exponential-histogram'
  readonly isDelta: boolean
  readonly scale: number
  readonly zeroCount: bigint
  readonly zeroThreshold: number
  readonly positive: ExponentialBuckets
  readonly negative: ExponentialBuckets
}

interface ExponentialBuckets {
  readonly offset: number
  readonly counts: readonly bigint[]
}

/** The number of a value, if it is one or a boolean. */
export function numberOf({ type, value }: Value): number | bigint | boolean | undefined {
  switch (type) {
    case BasicType.INT32:
    case BasicType.UINT32:
    case BasicType.DOUBLE:
    case BasicType.INT64:
    case BasicType.UINT64:
    case BasicType.BOOLEAN:
      return value as number | bigint | boolean
    default:
      return undefined
  }
}

/** A record as a histogram or summary, if it is one: others may have the same fields with numbers that make no sense in them. */
export function distributionOf(fields: readonly Field[]): HistogramValue | ExponentialValue | SummaryValue | undefined {
  const field = (name: string): Field | undefined => fields.find((one) => one.name === name)
  const count = field('count')
  if (count?.type !== BasicType.UINT64) return undefined
  const double = (name: string): number | undefined => {
    const found = field(name)
    return found?.type === BasicType.DOUBLE ? found.value : undefined
  }
  const [min, max, sum] = [double('min'), double('max'), double('sum')]
  const totals = { count: count.value, sum, min, max, start: startOf(field('start')) }
  const isDelta = field('delta')?.value === true
  const scale = field('scale')
  const [positive, negative] = [bucketsOf(field, 'positive'), bucketsOf(field, 'negative')]
  if (scale?.type === BasicType.INT32 && positive !== undefined && negative !== undefined) {
    const zeroCount = field('zero_count')?.value
    const zeros = {
      zeroCount: typeof zeroCount === 'bigint' ? zeroCount : 0n,
      zeroThreshold: double('zero_threshold') ?? 0,
    }
    return { kind: 'exponential-histogram', isDelta, scale: scale.value, ...zeros, positive, negative, ...totals }
  }
  const bounds = listOf(field('bounds'), BasicType.DOUBLE)
  const counts = listOf(field('counts'), BasicType.UINT64)
  if (bounds !== undefined && counts !== undefined) {
    const buckets = finiteBuckets(bounds as number[], counts as bigint[])
    return buckets && { kind: 'histogram', isDelta, ...buckets, ...totals }
  }
  const quantiles = listOf(field('quantiles'), BasicType.DOUBLE)
  const values = listOf(field('values'), BasicType.DOUBLE)
  if (quantiles === undefined || values === undefined || !areQuantiles(quantiles as number[])) return undefined
  return { kind: 'summary', quantiles: quantiles as number[], values: values as number[], ...totals }
}

/** 0, that it is unknown, for one that cannot be a time. */
function startOf(field: Field | undefined): number {
  return field?.type === BasicType.UINT64 && field.value <= MAX_TIME ? Number(field.value) : 0
}

/** The buckets without a last bound of infinity, which bounds nothing; undefined if the bounds do not ascend or the counts overflow. */
function finiteBuckets(
  bounds: readonly number[],
  counts: readonly bigint[],
): Pick<HistogramValue, 'bounds' | 'counts'> | undefined {
  for (let at = 0; at < bounds.length; at++) {
    if (!((bounds[at] as number) > (at === 0 ? Number.NEGATIVE_INFINITY : (bounds[at - 1] as number)))) return undefined
  }
  if (total(counts) > MAX_COUNT) return undefined
  if (bounds.at(-1) !== Number.POSITIVE_INFINITY) return { bounds, counts }
  const last = bounds.length - 1
  const above = total(counts.slice(last))
  return { bounds: bounds.slice(0, last), counts: [...counts.slice(0, last), above] }
}

function total(counts: readonly bigint[]): bigint {
  return counts.reduce((sum, count) => sum + count, 0n)
}

function areQuantiles(quantiles: readonly number[]): boolean {
  return new Set(quantiles).size === quantiles.length && quantiles.every((quantile) => quantile >= 0 && quantile <= 1)
}

function bucketsOf(field: (name: string) => Field | undefined, name: string): ExponentialBuckets | undefined {
  const offset = field(`${name}_offset`)
  const counts = listOf(field(`${name}_counts`), BasicType.UINT64)
  if (offset?.type !== BasicType.INT32 || counts === undefined) return undefined
  return { offset: offset.value, counts: counts as bigint[] }
}

function listOf(field: Field | undefined, element: BasicType): readonly Value['value'][] | undefined {
  return field?.type === BasicType.ARRAY && field.value.element === element ? field.value.items : undefined
}
