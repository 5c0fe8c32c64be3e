/**
 * Functions over ranges that rollups say as much of as samples do, where each window is some whole rollups. So the answer is the same,
 * but for the rounding of sums, and what is read is less; where samples have gone it is all that is left.
 */
import type { Selector } from '../expression.ts'
import { LabelSet } from '../label-set.ts'
import type { RollupSource, SourceRollups, Stream } from '../series-source.ts'
import type { Evaluation, Grid, StepSeries } from './grid.ts'
import type { WindowRange } from './windows.ts'

/** The windows of the source from `from` up to `to`, which is excluded; there is at least one. */
export interface RollupWindow {
  readonly rollups: SourceRollups
  from: number
  to: number
  /** The range of time, open on the left. */
  startMs: number
  endMs: number
}

/** Undefined: there is no value. */
export type RollupFunction = (window: RollupWindow) => number | undefined

/** Longer windows would save nothing: of the rollups of a day one is left. */
const LONGEST_MS = 86_400_000

/** The longest windows that each window of a grid is some whole ones of; undefined if the rollups are longer. */
export function wholeWindowsMs({ lookup, rangeMs }: WindowRange, grid: Grid, rollupMs: number): number | undefined {
  const areApart = grid.count > 1 && !lookup.isFixed
  const longest = [rangeMs, Math.abs(lookup.firstMs), areApart ? grid.stepMs : 0].reduce(commonDivisor, LONGEST_MS)
  return longest % rollupMs === 0 ? longest : undefined
}

function commonDivisor(some: number, other: number): number {
  return other === 0 ? some : commonDivisor(other, some % other)
}

export function* overRollups(
  source: RollupSource,
  { matchers }: Selector,
  rollupFunction: RollupFunction,
  windowsMs: number,
  { lookup, rangeMs }: WindowRange,
  grid: Grid,
  { budget, spares }: Evaluation,
): Stream<StepSeries> {
  if (grid.count === 0) return
  for (const rollups of source.select(matchers, lookup.firstMs - rangeMs + 1, lookup.lastMs, windowsMs)) {
    if (rollups === undefined) {
      yield undefined
      continue
    }
    const { ends } = rollups
    budget.takeSeries(ends.length)
    budget.takePoints(grid.count)
    const result = spares.take(LabelSet.of(rollups.labels), true, grid.count)
    const window: RollupWindow = { rollups, from: 0, to: 0, startMs: 0, endMs: 0 }
    let done = 0
    for (let step = 0; step < grid.count; step++) {
      window.endMs = lookup.ms(step)
      window.startMs = window.endMs - rangeMs
      while (window.to < ends.length && (ends[window.to] ?? 0) <= window.endMs) window.to++
      while (window.from < window.to && (ends[window.from] ?? 0) <= window.startMs) window.from++
      done += window.to - window.from + 1
      const value = window.from === window.to ? undefined : rollupFunction(window)
      if (value !== undefined) result.set(step, value)
      if (done < budget.workLeft) continue
      if (budget.isStepOver(done)) yield undefined
      done = 0
    }
    if (result.isEmpty) spares.give(result)
    else yield result
    if (budget.isStepOver(done)) yield undefined
  }
}
