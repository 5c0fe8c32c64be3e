/**
 * Functions over ranges. A window is two indices into the columns of a series, which move on from step to step; a function looks at
 * what is between them, and the part that goes over the steps stops often enough.
 */
import type { Stream } from '../series-source.ts'
import { type Evaluation, type Grid, type SpareSeries, type StepSeries, timeAt } from './grid.ts'
import type { RangeSamples, SelectorTimes } from './select.ts'

/** What a function sees; the same object at each step. */
export interface SampleWindow {
  readonly times: Float64Array
  readonly values: Float64Array
  /** The samples from `from` up to `to`, which is excluded; there is at least one. */
  from: number
  to: number
  /** The range of time, open on the left. */
  startMs: number
  endMs: number
  /** The time of the step, which `@` and `offset` do not move. */
  stepMs: number
  /** The scalar argument at this step, if the function has one. */
  parameter: number
  /** The samples that are smaller than those before them: where a counter began again. */
  readonly resets: readonly number[]
}

export interface WindowFunction {
  /** Whether results keep the name of the metric. */
  readonly keepsName?: boolean
  /** Whether the function asks for `resets`. */
  readonly isOfCounters?: boolean
  /** How many samples there have to be; 1 if it does not say. */
  readonly least?: number
  /** What each sample of a window costs, in elements of columns, if it looks at all of them and not at a few. */
  readonly workPerSample?: number
  /** What is done at each step of a series, made for the series where it has to remember something. */
  forSeries(values: Float64Array): WindowResult
}

export type WindowResult = (window: SampleWindow, into: StepSeries, step: number) => void

export interface WindowRange {
  readonly lookup: SelectorTimes
  readonly rangeMs: number
}

/** Applies a function to each series at each step. */
export function* overWindows(
  { columns: samples, ...range }: WindowRange & { readonly columns: Stream<RangeSamples> },
  windowFunction: WindowFunction,
  grid: Grid,
  parameters: Float64Array | undefined,
  { budget, spares }: Evaluation,
): Stream<StepSeries> {
  for (const columns of samples) {
    if (columns === undefined) {
      yield undefined
      continue
    }
    budget.takePoints(grid.count)
    const run = new WindowRun(columns, windowFunction, range, grid, parameters, spares)
    for (;;) {
      const work = run.go(budget.workLeft)
      if (budget.isStepOver(work)) yield undefined
      if (run.isOver) break
    }
    if (run.result.isEmpty) spares.give(run.result)
    else yield run.result
  }
}

class WindowRun {
  readonly result: StepSeries
  readonly #function: WindowFunction
  readonly #apply: WindowResult
  readonly #range: WindowRange
  readonly #grid: Grid
  readonly #parameters: Float64Array | undefined
  readonly #window: SampleWindow
  #step = 0

  constructor(
    { labels, dropsName, times, values }: RangeSamples,
    windowFunction: WindowFunction,
    range: WindowRange,
    grid: Grid,
    parameters: Float64Array | undefined,
    spares: SpareSeries,
  ) {
    this.result = spares.take(labels, dropsName || windowFunction.keepsName !== true, grid.count)
    this.#function = windowFunction
    this.#apply = windowFunction.forSeries(values)
    this.#range = range
    this.#grid = grid
    this.#parameters = parameters
    const resets = windowFunction.isOfCounters === true ? resetsOf(values) : []
    this.#window = { times, values, from: 0, to: 0, startMs: 0, endMs: 0, stepMs: 0, parameter: 0, resets }
  }

  get isOver(): boolean {
    return this.#step === this.#grid.count
  }

  /** Goes on until about so much is done; returns how much was. */
  go(most: number): number {
    const window = this.#window
    const { times } = window
    const { length } = times
    const { lookup, rangeMs } = this.#range
    const { least = 1, workPerSample } = this.#function
    let { from, to } = window
    let done = 0
    let step = this.#step
    for (; step < this.#grid.count && done < most; step++) {
      const endMs = lookup.ms(step)
      const startMs = endMs - rangeMs
      while (to < length && (times[to] ?? 0) <= endMs) to++
      while (from < to && (times[from] ?? 0) <= startMs) from++
      done += workPerSample === undefined ? to - window.to + 1 : (to - from) * workPerSample + 1
      window.from = from
      window.to = to
      if (to - from < least) continue
      window.startMs = startMs
      window.endMs = endMs
      window.stepMs = timeAt(this.#grid, step)
      window.parameter = this.#parameters?.[step] ?? 0
      this.#apply(window, this.result, step)
    }
    this.#step = step
    return done
  }
}

function resetsOf(values: Float64Array): number[] {
  const resets: number[] = []
  let before = Number.NEGATIVE_INFINITY
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0
    if (value < before) resets.push(index)
    before = value
  }
  return resets
}
