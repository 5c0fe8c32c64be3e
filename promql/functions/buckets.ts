/**
 * Classic histograms: cumulative counts by the upper bound of their bucket. Within a bucket values are taken to be spread evenly.
 */

export interface Bucket {
  readonly upperBound: number
  count: number
}

/** Where cumulative counts went down, and were taken to stay as they were. */
export interface Correction {
  readonly from: number
  readonly to: number
  readonly difference: number
}

/** Counts that differ by less, in proportion, are the same but for rounding. */
const TOLERANCE = 1e-12
/** The smallest number of full precision. */
const MIN_NORMAL = 2 ** -1022

/** `histogram_quantile` of some buckets in any order; NaN where it is not defined. The buckets are changed. */
export function quantileOfBuckets(
  quantile: number,
  unsorted: readonly Bucket[],
  corrected: (correction: Correction) => void,
): number {
  if (Number.isNaN(quantile)) return Number.NaN
  if (quantile < 0) return Number.NEGATIVE_INFINITY
  if (quantile > 1) return Number.POSITIVE_INFINITY
  const buckets = sorted(unsorted)
  if (buckets.at(-1)?.upperBound !== Number.POSITIVE_INFINITY) return Number.NaN
  const correction = madeMonotonic(buckets)
  if (correction !== undefined) corrected(correction)
  const observations = buckets.at(-1)?.count ?? 0
  if (buckets.length < 2 || observations === 0) return Number.NaN
  let rank = quantile * observations
  const found = buckets.slice(0, -1).findIndex(({ count }) => count >= rank)
  // Also where counts are NaN: the second-highest bound is all that is known.
  if (found < 0) return buckets.at(-2)?.upperBound ?? Number.NaN
  const { upperBound, count } = buckets[found] ?? { upperBound: Number.NaN, count: 0 }
  if (found === 0 && upperBound <= 0) return upperBound
  const below = buckets[found - 1]
  const start = below?.upperBound ?? 0
  rank -= below?.count ?? 0
  return start + (upperBound - start) * (rank / (count - (below?.count ?? 0)))
}

/** `histogram_fraction`: the part of the observations that is between two numbers. */
export function fractionOfBuckets(lower: number, upper: number, unsorted: readonly Bucket[]): number {
  const buckets = sorted(unsorted)
  if (buckets.at(-1)?.upperBound !== Number.POSITIVE_INFINITY) return Number.NaN
  const count = buckets.at(-1)?.count ?? 0
  if (count === 0 || Number.isNaN(lower) || Number.isNaN(upper)) return Number.NaN
  if (lower >= upper) return 0
  return (rankOf(upper, buckets) - rankOf(lower, buckets)) / count
}

/** How many observations are below a number. */
function rankOf(value: number, buckets: readonly Bucket[]): number {
  const all = buckets.at(-1)?.count ?? 0
  let rank = 0
  // Positive bounds alone: nothing is below zero.
  let lowerBound = (buckets[0]?.upperBound ?? 0) <= 0 ? Number.NEGATIVE_INFINITY : 0
  for (const { upperBound, count } of buckets) {
    if (lowerBound >= value) return Math.min(rank, all)
    if (upperBound > value) {
      const inside =
        lowerBound === Number.NEGATIVE_INFINITY
          ? count
          : rank + ((count - rank) * (value - lowerBound)) / (upperBound - lowerBound)
      return Math.min(inside, all)
    }
    rank = count
    lowerBound = upperBound
  }
  return all
}

/** By bound, those with the same bound as one. */
function sorted(buckets: readonly Bucket[]): Bucket[] {
  const result: Bucket[] = []
  for (const bucket of buckets.toSorted((left, right) => compare(left.upperBound, right.upperBound))) {
    const last = result.at(-1)
    if (last?.upperBound === bucket.upperBound) last.count += bucket.count
    else result.push({ ...bucket })
  }
  return result
}

function compare(left: number, right: number): number {
  return left < right ? -1 : left > right ? 1 : 0
}

function madeMonotonic(buckets: readonly Bucket[]): Correction | undefined {
  let [from, to, difference] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0]
  let before = buckets[0]?.count ?? 0
  for (const bucket of buckets.slice(1)) {
    const { upperBound, count } = bucket
    if (count === before) continue
    if (isAlmostEqual(before, count)) {
      bucket.count = before
    } else if (count < before) {
      bucket.count = before
      from = Math.min(from, upperBound)
      to = Math.max(to, upperBound)
      difference = Math.max(difference, before - count)
    } else before = count
  }
  return to === Number.NEGATIVE_INFINITY && from === Number.POSITIVE_INFINITY ? undefined : { from, to, difference }
}

function isAlmostEqual(left: number, right: number): boolean {
  if (Number.isNaN(left) && Number.isNaN(right)) return true
  const sum = Math.abs(left) + Math.abs(right)
  const difference = Math.abs(left - right)
  if (left === 0 || right === 0 || sum < MIN_NORMAL) return difference < TOLERANCE * MIN_NORMAL
  return difference / Math.min(sum, Number.MAX_VALUE) < TOLERANCE
}
