/** Selectors: the value of each series at each time of a grid, and the samples that windows go over. */
import type { AtModifier, Selector } from '../expression.ts'
import { LabelSet } from '../label-set.ts'
import { type SeriesSource, type SourceSeries, StaleMarkers, type Stream } from '../series-source.ts'
import { type Evaluation, type Grid, type StepSeries, timeAt } from './grid.ts'

/** The samples of a series without stale markers; what functions over ranges are applied to. */
export interface RangeSamples {
  readonly labels: LabelSet
  readonly dropsName: boolean
  readonly times: Float64Array
  readonly values: Float64Array
}

/** The times of a query, which `@ start()` and `@ end()` mean, and how long a sample counts. */
export interface QueryTimes {
  readonly startMs: number
  readonly endMs: number
  readonly lookbackMs: number
}

interface Modifiers {
  readonly at: AtModifier | undefined
  readonly offsetMs: number
}

/** Where a selector looks when the grid is at a step: at one time for all steps if it has an `@`. */
export class SelectorTimes {
  readonly #grid: Grid
  readonly #offsetMs: number
  readonly #fixedMs: number | undefined

  constructor(grid: Grid, { at, offsetMs }: Modifiers, { startMs, endMs }: QueryTimes) {
    this.#grid = grid
    this.#offsetMs = offsetMs
    this.#fixedMs = at === 'start' ? startMs : at === 'end' ? endMs : at?.ms
  }

  get isFixed(): boolean {
    return this.#fixedMs !== undefined
  }

  ms(step: number): number {
    return (this.#fixedMs ?? timeAt(this.#grid, step)) - this.#offsetMs
  }

  get firstMs(): number {
    return this.ms(0)
  }

  get lastMs(): number {
    return this.ms(this.#grid.count - 1)
  }
}

/**
 * The latest sample of each series that is not older than the lookback, or still held, at each time; with `isOfTimes` its time in seconds instead
 * of its value. The range is open on the left.
 */
export function* selectSteps(
  source: SeriesSource,
  selector: Selector,
  grid: Grid,
  times: QueryTimes,
  evaluation: Evaluation,
  isOfTimes = false,
): Stream<StepSeries> {
  const { budget, annotations, spares } = evaluation
  if (grid.count === 0) return
  const lookup = new SelectorTimes(grid, selector, times)
  const fromMs = lookup.firstMs - times.lookbackMs + 1
  for (const series of source.select(selector.matchers, fromMs, lookup.lastMs, true)) {
    if (series === undefined) {
      yield undefined
      continue
    }
    budget.takeSeries(series.times.length)
    budget.takePoints(grid.count)
    if (series.thinnedMs !== undefined) annotations.thinned(selector.range)
    const steps = spares.take(LabelSet.of(series.labels), false, grid.count)
    lookBack(series, lookup, times.lookbackMs, steps, isOfTimes)
    if (steps.isEmpty) spares.give(steps)
    else yield steps
    if (budget.isStepOver(series.times.length + grid.count)) yield undefined
  }
}

function lookBack(
  { times, values, heldMs }: Pick<SourceSeries, 'times' | 'values' | 'heldMs'>,
  lookup: SelectorTimes,
  lookbackMs: number,
  into: StepSeries,
  isOfTimes: boolean,
): void {
  const markers = new StaleMarkers(values)
  const { length } = into.values
  let next = 0
  for (let step = 0; step < length; step++) {
    const ms = lookup.ms(step)
    while (next < times.length && (times[next] ?? 0) <= ms) next++
    if (next === 0) continue
    const timeMs = times[next - 1] ?? 0
    if (timeMs <= ms - Math.max(lookbackMs, heldMs?.[next - 1] ?? 0)) continue
    const value = values[next - 1] ?? 0
    if (Number.isNaN(value) && markers.has(next - 1)) continue
    into.set(step, isOfTimes ? timeMs / 1000 : value)
  }
}

/** The samples from a time, excluded, to another, included. */
export function* selectSamples(
  source: SeriesSource,
  selector: Selector,
  afterMs: number,
  toMs: number,
  { budget, annotations }: Evaluation,
): Stream<RangeSamples> {
  for (const series of source.select(selector.matchers, afterMs + 1, toMs)) {
    if (series === undefined) {
      yield undefined
      continue
    }
    budget.takeSeries(series.times.length)
    if (series.thinnedMs !== undefined) annotations.thinned(selector.range)
    const { times, values } = withoutMarkers(series.times, series.values)
    if (times.length > 0) yield { labels: LabelSet.of(series.labels), dropsName: false, times, values }
    if (budget.isStepOver(series.times.length)) yield undefined
  }
}

function withoutMarkers(times: Float64Array, values: Float64Array): { times: Float64Array; values: Float64Array } {
  // Most series have no NaN at all, and this looks at each of their samples.
  let first = 0
  while (first < values.length && !Number.isNaN(values[first])) first++
  if (first === values.length) return { times, values }
  const markers = new StaleMarkers(values)
  const isMarker = (index: number): boolean => Number.isNaN(values[index]) && markers.has(index)
  const kept: number[] = []
  for (let index = 0; index < values.length; index++) if (!isMarker(index)) kept.push(index)
  return {
    times: Float64Array.from(kept, (index) => times[index] ?? 0),
    values: Float64Array.from(kept, (index) => values[index] ?? 0),
  }
}

/** All times of a grid. */
export function timesOf(grid: Grid): Float64Array {
  const times = new Float64Array(grid.count)
  for (let step = 0; step < grid.count; step++) times[step] = timeAt(grid, step)
  return times
}

/**
 * The values that an expression has at times, as samples, in the column in which they are. Series without gaps share the column of
 * times.
 */
export function stepSamples({ labels, dropsName, values, present }: StepSeries, times: Float64Array): RangeSamples {
  let count = 0
  for (let step = 0; step < present.length; step++) count += present[step] ?? 0
  if (count === present.length) return { labels, dropsName, times, values }
  const kept = { labels, dropsName, times: new Float64Array(count), values: values.subarray(0, count) }
  let next = 0
  for (let step = 0; step < present.length; step++) {
    if (present[step] !== 1) continue
    kept.times[next] = times[step] ?? 0
    values[next++] = values[step] ?? 0
  }
  return kept
}
