/** `and`, `or` and `unless`: which series have a partner on the other side, at each step. */
import type { Matching } from '../expression.ts'
import type { Stream } from '../series-source.ts'
import type { Budget } from './budget.ts'
import type { Evaluation, Grid, StepSeries } from './grid.ts'
import { signatures } from './match-labels.ts'
import { mergeInto } from './merged-series.ts'

/** The left series where the right side has, or with `isUnless` has not, one of their signature. */
export function* intersected(
  left: Stream<StepSeries>,
  right: Stream<StepSeries>,
  matching: Matching,
  isUnless: boolean,
  { budget, spares }: Evaluation,
): Stream<StepSeries> {
  const signatureOf = signatures(matching)
  const partners = new Map<string, Uint8Array>()
  let marked = 0
  for (const series of right) {
    if (series === undefined) {
      yield undefined
      continue
    }
    const { length } = series.present
    marked += note(partners, signatureOf(series.labels).key, series.present, budget)
    spares.give(series)
    if (budget.isStepOver(length)) yield undefined
  }
  for (const series of left) {
    if (series === undefined) {
      yield undefined
      continue
    }
    const partner = partners.get(signatureOf(series.labels).key)
    const { length } = series.present
    leaveWhere(series, partner, isUnless)
    if (series.isEmpty) spares.give(series)
    else yield series
    if (budget.isStepOver(length)) yield undefined
  }
  budget.releaseBytes(marked)
}

/** All left series, and the right ones where the left side has none of their signature. */
export function* united(
  left: Stream<StepSeries>,
  right: Stream<StepSeries>,
  matching: Matching,
  grid: Grid,
  { budget }: Evaluation,
): Stream<StepSeries> {
  const signatureOf = signatures(matching)
  const partners = new Map<string, Uint8Array>()
  // A series of both sides is one series: those of the left that have gaps wait for what the right has in them.
  const waiting = new Map<string, StepSeries>()
  let marked = 0
  for (const series of left) {
    if (series === undefined) {
      yield undefined
      continue
    }
    marked += note(partners, signatureOf(series.labels).key, series.present, budget)
    if (series.isFull) yield series
    else {
      budget.hold(grid.count)
      const first = waiting.get(series.labels.key)
      if (first === undefined) waiting.set(series.labels.key, series)
      else mergeInto(first, series)
    }
    if (budget.isStepOver(grid.count)) yield undefined
  }
  for (const series of right) {
    if (series === undefined) {
      yield undefined
      continue
    }
    leaveWhere(series, partners.get(signatureOf(series.labels).key), true)
    const first = waiting.get(series.labels.key)
    if (first !== undefined) mergeInto(first, series)
    else if (!series.isEmpty) yield series
    if (budget.isStepOver(grid.count)) yield undefined
  }
  yield* waiting.values()
  budget.release(waiting.size, waiting.size * grid.count)
  budget.releaseBytes(marked)
}

/** Returns how many bytes are held for it. */
function note(partners: Map<string, Uint8Array>, signature: string, present: Uint8Array, budget: Budget): number {
  const known = partners.get(signature)
  if (known === undefined) {
    budget.holdBytes(present.length)
    partners.set(signature, present.slice())
    return present.length
  }
  for (let step = 0; step < present.length; step++) if (present[step] === 1) known[step] = 1
  return 0
}

function leaveWhere({ present }: StepSeries, partner: Uint8Array | undefined, isUnless: boolean): void {
  if (partner === undefined) {
    if (!isUnless) present.fill(0)
    return
  }
  for (let step = 0; step < present.length; step++) if ((partner[step] === 1) === isUnless) present[step] = 0
}
