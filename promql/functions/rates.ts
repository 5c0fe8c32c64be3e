/**
 * How fast something grows: `rate`, `increase`, `delta`, `irate`, `idelta`, and the straight line of `deriv` and `predict_linear`.
 * The samples of a window rarely reach its ends, so the growth between the first and the last is extrapolated: to an end that is
 * about as near as the next sample would be, else by half of the way between samples, and for a counter never below zero.
 */
import type { StepSeries } from '../evaluate/grid.ts'
import type { SampleWindow, WindowFunction, WindowResult } from '../evaluate/windows.ts'
import { CompensatedSum } from './sums.ts'

/** How much farther than the average distance of samples an end may be, to be reached. */
const NEAR = 1.1

/** Functions of at least two samples, each of which looks at a few samples, or at all of them. */
const ofTwo = (apply: WindowResult): WindowFunction => ({ least: 2, forSeries: () => apply })
const ofAll = (apply: WindowResult): WindowFunction => ({ ...ofTwo(apply), workPerSample: 1 })
const ofCounters = (apply: WindowResult): WindowFunction => ({ ...ofTwo(apply), isOfCounters: true })

export const RATES: Readonly<Record<string, WindowFunction>> = {
  delta: ofTwo((window, into, step) => extrapolated(window, into, step, false, 1)),
  deriv: ofAll(derivative),
  idelta: ofTwo((window, into, step) => lastTwo(window, into, step, false)),
  increase: ofCounters((window, into, step) => extrapolated(window, into, step, true, 1)),
  irate: ofTwo((window, into, step) => lastTwo(window, into, step, true)),
  predict_linear: ofAll(prediction),
  rate: ofCounters((window, into, step) =>
    extrapolated(window, into, step, true, (window.endMs - window.startMs) / 1000),
  ),
}

/** Prometheus says so of every other name. */
export function isNameOfCounter(name: string): boolean {
  return /_(?:total|sum|count|bucket)$/.test(name)
}

function extrapolated(window: SampleWindow, into: StepSeries, step: number, isCounter: boolean, seconds: number): void {
  const { times, values, from, to } = window
  const first = values[from] ?? 0
  let growth = (values[to - 1] ?? 0) - first
  if (isCounter && window.resets.length > 0) growth = withResets(growth, window)
  const grown = { first, firstMs: times[from] ?? 0, lastMs: times[to - 1] ?? 0, count: to - from }
  into.set(step, extrapolatedGrowth(growth, grown, window, isCounter, seconds))
}

/** The first and the last sample of a window, and how many there are. */
interface WindowEnds {
  readonly first: number
  readonly firstMs: number
  readonly lastMs: number
  readonly count: number
}

/** What something that has grown so much between two samples grows by in the whole window, per so many seconds. */
export function extrapolatedGrowth(
  growth: number,
  { first, firstMs, lastMs, count }: WindowEnds,
  { startMs, endMs }: Pick<SampleWindow, 'startMs' | 'endMs'>,
  isCounter: boolean,
  seconds: number,
): number {
  let beforeFirst = (firstMs - startMs) / 1000
  let afterLast = (endMs - lastMs) / 1000
  const sampled = (lastMs - firstMs) / 1000
  const distance = sampled / (count - 1)
  if (beforeFirst >= distance * NEAR) beforeFirst = distance / 2
  if (isCounter && growth > 0 && first >= 0) {
    const sinceZero = sampled * (first / growth)
    if (sinceZero < beforeFirst) beforeFirst = sinceZero
  }
  if (afterLast >= distance * NEAR) afterLast = distance / 2
  return growth * ((sampled + beforeFirst + afterLast) / sampled / seconds)
}

/** A counter that is smaller than before began again at zero, so what it had before belongs to its growth. */
function withResets(growth: number, { values, resets, from, to }: SampleWindow): number {
  let corrected = growth
  // The first reset after the first sample, by halving.
  let low = 0
  let high = resets.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((resets[middle] ?? 0) > from) high = middle
    else low = middle + 1
  }
  for (let index = low; index < resets.length; index++) {
    const reset = resets[index] ?? 0
    if (reset >= to) break
    corrected += values[reset - 1] ?? 0
  }
  return corrected
}

function lastTwo({ times, values, to }: SampleWindow, into: StepSeries, step: number, isRate: boolean): void {
  const [before = 0, last = 0] = [values[to - 2], values[to - 1]]
  const elapsed = ((times[to - 1] ?? 0) - (times[to - 2] ?? 0)) / 1000
  if (elapsed === 0) return
  const growth = isRate && last < before ? last : last - before
  into.set(step, isRate ? growth / elapsed : growth)
}

function derivative(window: SampleWindow, into: StepSeries, step: number): void {
  // A time nearby, so that no digits are lost to the large numbers that times are.
  into.set(step, line(window, window.times[window.from] ?? 0).slope)
}

function prediction(window: SampleWindow, into: StepSeries, step: number): void {
  const { slope, intercept } = line(window, window.stepMs)
  into.set(step, slope * window.parameter + intercept)
}

/** The line through the samples with the least squares, and its value at a time. */
function line({ times, values, from, to }: SampleWindow, atMs: number): { slope: number; intercept: number } {
  const [sumX, sumY, sumXY, sumXX] = [
    new CompensatedSum(),
    new CompensatedSum(),
    new CompensatedSum(),
    new CompensatedSum(),
  ]
  const count = to - from
  const first = values[from] ?? 0
  let isConstant = true
  for (let index = from; index < to; index++) {
    const value = values[index] ?? 0
    if (value !== first && index > from) isConstant = false
    const x = ((times[index] ?? 0) - atMs) / 1000
    sumX.add(x)
    sumY.add(value)
    sumXY.add(x * value)
    sumXX.add(x * x)
  }
  if (isConstant) {
    const isInfinite = first === Number.POSITIVE_INFINITY || first === Number.NEGATIVE_INFINITY
    return isInfinite ? { slope: Number.NaN, intercept: Number.NaN } : { slope: 0, intercept: first }
  }
  const covariance = sumXY.value - (sumX.value * sumY.value) / count
  const variance = sumXX.value - (sumX.value * sumX.value) / count
  const slope = covariance / variance
  return { slope, intercept: sumY.value / count - (slope * sumX.value) / count }
}
