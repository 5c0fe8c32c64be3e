/** The functions over ranges whose result follows from rollups: what their windows come to together. */
import type { RollupFunction, RollupWindow } from '../evaluate/rollups.ts'
import { extrapolatedGrowth } from './rates.ts'
import { sumOfValues } from './sums.ts'

export const OVER_ROLLUPS: Readonly<Record<string, RollupFunction>> = {
  avg_over_time: (window) => sum(window) / count(window),
  count_over_time: count,
  increase: (window) => growth(window, 1),
  max_over_time: ({ rollups, from, to }) => extreme(rollups.max, from, to, (value, other) => value > other),
  min_over_time: ({ rollups, from, to }) => extreme(rollups.min, from, to, (value, other) => value < other),
  rate: (window) => growth(window, (window.endMs - window.startMs) / 1000),
  sum_over_time: sum,
}

function sum({ rollups, from, to }: RollupWindow): number {
  return sumOfValues(rollups.sum, from, to)
}

function count({ rollups, from, to }: RollupWindow): number {
  return sumOfValues(rollups.count, from, to)
}

/** NaN only where there is nothing else. */
function extreme(
  column: Float64Array,
  from: number,
  to: number,
  beats: (value: number, other: number) => boolean,
): number {
  let best = Number.NaN
  for (let index = from; index < to; index++) {
    const value = column[index] ?? 0
    if (Number.isNaN(best) || beats(value, best)) best = value
  }
  return best
}

/** What a counter has grown by per so many seconds; undefined if there are not two samples. */
function growth(window: RollupWindow, seconds: number): number | undefined {
  const { rollups, from, to } = window
  const { first, last, firstTimes, lastTimes, resets } = rollups
  const samples = count(window)
  if (samples < 2) return undefined
  let grown = (last[to - 1] ?? 0) - (first[from] ?? 0)
  for (let index = from; index < to; index++) {
    grown += resets[index] ?? 0
    // It may have begun again between two windows, too.
    if (index > from && (first[index] ?? 0) < (last[index - 1] ?? 0)) grown += last[index - 1] ?? 0
  }
  const ends = { first: first[from] ?? 0, firstMs: firstTimes[from] ?? 0, lastMs: lastTimes[to - 1] ?? 0 }
  return extrapolatedGrowth(grown, { ...ends, count: samples }, window, true, seconds)
}
