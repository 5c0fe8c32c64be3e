/** The functions `…_over_time`, `changes` and `resets`: what the samples of a window come to. */
import type { SampleWindow, WindowFunction, WindowResult } from '../evaluate/windows.ts'
import { quantileOf } from './quantile.ts'
import { CompensatedSum, RunningMean, sumOfValues } from './sums.ts'

/** Of a sample among others, in elements of columns. */
const WORK_TO_SORT = 8

/** A function whose result is a number that all samples of the window are looked at for. */
function ofAll(result: (window: SampleWindow) => number, workPerSample = 1): WindowFunction {
  const apply: WindowResult = (window, into, step) => into.set(step, result(window))
  return { workPerSample, forSeries: () => apply }
}

/** A function whose result is a number that the ends of the window are enough for. */
function ofEnds(result: (window: SampleWindow) => number, keepsName = false): WindowFunction {
  const apply: WindowResult = (window, into, step) => into.set(step, result(window))
  return { keepsName, forSeries: () => apply }
}

export const OVER_TIME: Readonly<Record<string, WindowFunction>> = {
  avg_over_time: ofAll(mean),
  // What is left of it is where no series has a sample, which is known when all of them were seen.
  absent_over_time: ofEnds(() => 1),
  changes: ofAll(changes),
  count_over_time: ofEnds(({ from, to }) => to - from),
  first_over_time: ofEnds(({ values, from }) => values[from] ?? 0, true),
  last_over_time: ofEnds(({ values, to }) => values[to - 1] ?? 0, true),
  max_over_time: { forSeries: (values) => extremes(values, (value, other) => value > other) },
  min_over_time: { forSeries: (values) => extremes(values, (value, other) => value < other) },
  present_over_time: ofEnds(() => 1),
  quantile_over_time: ofAll(
    ({ values, from, to, parameter }) => quantileOf(parameter, values.slice(from, to)),
    WORK_TO_SORT,
  ),
  resets: ofAll(resets),
  stddev_over_time: ofAll((window) => Math.sqrt(variance(window))),
  stdvar_over_time: ofAll(variance),
  sum_over_time: ofAll(({ values, from, to }) => sumOfValues(values, from, to)),
}

function mean({ values, from, to }: SampleWindow): number {
  const running = new RunningMean()
  for (let index = from; index < to; index++) running.add(values[index] ?? 0)
  return running.value
}

/**
 * The largest or smallest number of each window; NaN where there is nothing else. As windows move on, what came before a number
 * that beats it is never the extreme again, so only those that are beaten by none after them are kept, the best in front: each
 * sample is looked at about twice, however long the windows are.
 */
function extremes(values: Float64Array, beats: (value: number, other: number) => boolean): WindowResult {
  const kept = new Int32Array(values.length)
  let [first, end, next] = [0, 0, 0]
  return ({ from, to }, into, step) => {
    for (; next < to; next++) {
      const value = values[next] ?? 0
      if (Number.isNaN(value)) continue
      while (end > first && !beats(values[kept[end - 1] ?? 0] ?? 0, value)) end--
      kept[end++] = next
    }
    while (first < end && (kept[first] ?? 0) < from) first++
    into.set(step, first < end ? (values[kept[first] ?? 0] ?? 0) : Number.NaN)
  }
}

function changes({ values, from, to }: SampleWindow): number {
  let count = 0
  for (let index = from + 1; index < to; index++) {
    const [before = 0, value = 0] = [values[index - 1], values[index]]
    if (value !== before && !(Number.isNaN(value) && Number.isNaN(before))) count++
  }
  return count
}

function resets({ values, from, to }: SampleWindow): number {
  let count = 0
  for (let index = from + 1; index < to; index++) if ((values[index] ?? 0) < (values[index - 1] ?? 0)) count++
  return count
}

/** Welford's, with compensated sums. */
function variance({ values, from, to }: SampleWindow): number {
  const average = new CompensatedSum()
  const squares = new CompensatedSum()
  for (let index = from; index < to; index++) {
    const value = values[index] ?? 0
    const difference = value - average.value
    average.add(difference / (index - from + 1))
    squares.add(difference * (value - average.value))
  }
  return squares.value / (to - from)
}
