/**
 * What is done with all series at once, in steps: those that have the same labels become one, if they have values at different
 * times, and results are put in order.
 */
import { executionError, type PromqlError } from '../errors.ts'
import type { Budget } from './budget.ts'
import type { StepSeries } from './grid.ts'

/** As many are sorted in one go. */
const SORTED_AT_ONCE = 2_000

/** The series in their order, each with what others with its labels have. */
export function* mergedSeries(all: StepSeries[], budget: Budget): Generator<undefined, StepSeries[], void> {
  const byLabels = new Map<string, StepSeries>()
  for (const series of all) {
    const first = byLabels.get(series.labels.key)
    if (first === undefined) byLabels.set(series.labels.key, series)
    else mergeInto(first, series)
    if (budget.isStepOver(first === undefined ? 0 : series.present.length)) yield undefined
  }
  return byLabels.size === all.length ? all : [...byLabels.values()]
}

/** Adds the values of another series; throws PromqlError if both have one at one time. */
export function mergeInto(series: StepSeries, other: StepSeries): void {
  const { values, present } = other
  for (let step = 0; step < present.length; step++) {
    if (present[step] !== 1) continue
    if (series.present[step] === 1) throw sameLabels()
    series.set(step, values[step] ?? 0)
  }
}

export function sameLabels(): PromqlError {
  return executionError('vector cannot contain metrics with the same labelset')
}

/** The elements in order; those that are equal stay as they were. */
export function* ordered<Element>(
  elements: readonly Element[],
  compare: (left: Element, right: Element) => number,
): Generator<undefined, Element[], void> {
  if (elements.length <= SORTED_AT_ONCE) {
    const sorted = elements.toSorted(compare)
    yield undefined
    return sorted
  }
  const half = Math.ceil(elements.length / 2)
  const left = yield* ordered(elements.slice(0, half), compare)
  const right = yield* ordered(elements.slice(half), compare)
  const merged: Element[] = []
  let [fromLeft, fromRight] = [0, 0]
  while (merged.length < elements.length) {
    const [some, other] = [left[fromLeft], right[fromRight]]
    const isLeft = fromRight >= right.length || (some !== undefined && other !== undefined && compare(some, other) <= 0)
    const next = isLeft ? some : other
    if (isLeft) fromLeft++
    else fromRight++
    if (next !== undefined) merged.push(next)
    if (merged.length % SORTED_AT_ONCE === 0) yield undefined
  }
  return merged
}
