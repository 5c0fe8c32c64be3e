/** Histograms and summaries as Prometheus has them: several samples, those of buckets with the label `le`. */
import type { SampleLabel } from './labels.ts'

/** Buckets are not cumulative here: `counts` has one more than `bounds`, those above the last. The bounds ascend and are finite. */
export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly bigint[]
  readonly count: bigint
  readonly sum: number | undefined
}

export interface Summary {
  readonly quantiles: readonly number[]
  readonly values: readonly number[]
  readonly count: bigint
  readonly sum: number | undefined
}

export type DistributionType = 'histogram' | 'summary'

/** What a TYPE line names; undefined if it is no distribution. */
export function distributionNamed(type: string): DistributionType | undefined {
  return type === 'histogram' || type === 'summary' ? type : undefined
}

/** The same of MetricType, the numbers of remote write. */
export function distributionNumbered(type: number): DistributionType | undefined {
  return type === 3 ? 'histogram' : type === 5 ? 'summary' : undefined
}

/** The label that tells the samples of a distribution apart. */
export const OWN_LABEL = { histogram: 'le', summary: 'quantile' } as const

/** The names of all samples of a distribution. */
export function distributionNames(name: string, type: DistributionType): string[] {
  const suffixes = type === 'histogram' ? ['', '_bucket', '_count', '_sum'] : ['', '_count', '_sum']
  return suffixes.map((suffix) => name + suffix)
}

/** Cumulative buckets, the last up to infinity, and the count: no bucket has more, whatever the source says. */
export function cumulative({ bounds, counts, count }: Histogram): {
  readonly buckets: bigint[]
  readonly count: bigint
} {
  const buckets: bigint[] = []
  let below = 0n
  for (const place of bounds.keys()) {
    below += counts[place] ?? 0n
    buckets.push(below)
  }
  const all = count > below ? count : below
  return { buckets: [...buckets, all], count: all }
}

/** A number as Prometheus writes it: `NaN`, `+Inf` and `-Inf` are numbers, and zero has a sign. */
export function prometheusNumber(value: number | bigint | boolean): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

/** One sample of a distribution that came sample by sample. */
export interface DistributionPart {
  /** `_bucket`, `_count`, `_sum`, or empty: a quantile. */
  readonly suffix: string
  readonly labels: readonly SampleLabel[]
  readonly value: number | bigint | boolean
  readonly time: number | undefined
}

const SUFFIXES = { histogram: /_(?:bucket|count|sum)$/, summary: /_(?:count|sum)$/ } as const

/** The suffix of a sample of a distribution; undefined if it can be none, as without the label that it needs. */
export function suffixOf(name: string, labels: readonly SampleLabel[], type: DistributionType): string | undefined {
  const isOne = labels.some(([label]) => label === OWN_LABEL[type])
  if (type === 'summary' && isOne) return ''
  const [suffix] = SUFFIXES[type].exec(name) ?? []
  if (suffix === undefined || suffix.length === name.length) return undefined
  return (suffix === '_bucket') === isOne ? suffix : undefined
}

/** The samples with the same labels, `le` and `quantile` apart, in the order of a text; undefined if they are no distribution. */
export function distributionInOrder(
  parts: readonly DistributionPart[],
  type: DistributionType,
): DistributionPart[] | undefined {
  const own = OWN_LABEL[type]
  const measured: { readonly part: DistributionPart; readonly bound: number }[] = []
  const rest: DistributionPart[] = []
  for (const part of parts) {
    const text = part.labels.find(([label]) => label === own)?.[1]
    if (text === undefined) rest.push(part)
    else measured.push({ part, bound: boundOf(text) })
  }
  measured.sort((one, other) => one.bound - other.bound)
  if (measured.some(({ bound }, at) => !(bound > (measured[at - 1]?.bound ?? Number.NEGATIVE_INFINITY))))
    return undefined
  if (type === 'histogram' && !areCumulative(measured)) return undefined
  if (type === 'summary' && measured.some(({ bound }) => !(bound >= 0 && bound <= 1))) return undefined
  if (rest.some(({ suffix, value }) => suffix === '_count' && !(Number(value) >= 0))) return undefined
  if (new Set(rest.map(({ suffix }) => suffix)).size < rest.length) return undefined
  rest.sort((one, other) => (one.suffix < other.suffix ? -1 : 1))
  return [...measured.map(({ part }) => part), ...rest]
}

function areCumulative(buckets: readonly { readonly part: DistributionPart; readonly bound: number }[]): boolean {
  if (buckets.at(-1)?.bound !== Number.POSITIVE_INFINITY) return false
  return buckets.every(({ part }, at) => Number(part.value) >= Number(buckets[at - 1]?.part.value ?? 0))
}

/** NaN if it is none. */
function boundOf(text: string): number {
  if (/^\+?Inf$/.test(text)) return Number.POSITIVE_INFINITY
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : Number.NaN
}
