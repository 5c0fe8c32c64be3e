/** Quantiles of numbers, between two of them where one falls between. */

/** Sorts the numbers; NaN is the smallest. */
export function quantileOf(quantile: number, numbers: Float64Array): number {
  if (numbers.length === 0 || Number.isNaN(quantile)) return Number.NaN
  if (quantile < 0) return Number.NEGATIVE_INFINITY
  if (quantile > 1) return Number.POSITIVE_INFINITY
  sortWithNaNFirst(numbers)
  const rank = quantile * (numbers.length - 1)
  const lower = Math.max(0, Math.floor(rank))
  const upper = Math.min(numbers.length - 1, lower + 1)
  const weight = rank - Math.floor(rank)
  return (numbers[lower] ?? 0) * (1 - weight) + (numbers[upper] ?? 0) * weight
}

export function isQuantile(quantile: number): boolean {
  return quantile >= 0 && quantile <= 1
}

/** A column sorts NaN to its end. */
function sortWithNaNFirst(numbers: Float64Array): void {
  numbers.sort()
  let end = numbers.length
  while (end > 0 && Number.isNaN(numbers[end - 1])) end--
  if (end === numbers.length) return
  numbers.copyWithin(numbers.length - end, 0, end)
  numbers.fill(Number.NaN, 0, numbers.length - end)
}
