/** Merges runs of one tenant and period that follow each other in fresh.db into one. */
import type { Run, RunCatalogue } from './catalogue.ts'
import type { HistoryPage } from './codec/page.ts'
import type { DroppedSeries } from './dropped.ts'
import { type FreshPages, RunTotals } from './fresh-pages.ts'
import type { RunPages } from './history-files.ts'
import { Merge } from './merge.ts'
import { columnsOf } from './period-file.ts'
import { dayOf } from './periods.ts'
import { RunCursor } from './run-cursor.ts'

export interface FreshMergeParts {
  readonly catalogue: RunCatalogue
  readonly pages: FreshPages
  readonly dropped: DroppedSeries
  readonly open: (run: Run) => RunPages
  readonly nextNumber: () => number
  readonly clock: () => number
}

/** Runs of one level are merged when there are so many of them. */
export const RUNS_PER_MERGE = 32

/** `level`: of the run that they become. */
export function* mergeFresh(
  runs: readonly Run[],
  level: number,
  parts: FreshMergeParts,
): Generator<undefined, void, void> {
  const { catalogue, pages, dropped, open, nextNumber, clock } = parts
  const last = runs.at(-1)!
  const id = nextNumber()
  const totals = new RunTotals({ ...last, id, level, madeMs: Math.min(...runs.map(({ madeMs }) => madeMs)) })
  const cursors = runs.map((run) => new RunCursor(open(run), columnsOf(run.kind), dropped.hidden(run)))
  const put = (page: HistoryPage): void => {
    totals.add(page)
    pages.put(id, page)
  }
  // Rollups stay here for a month, and samples for a day.
  const merge = new Merge(cursors, put, { deflating: last.kind === 'rollups' ? 'kept' : 'fresh' })
  for (const _ of merge.run()) {
    pages.store()
    yield
  }
  pages.finish(() => {
    for (const run of runs) catalogue.remove(run, clock())
    const merged = totals.run(null)
    if (merged !== undefined) catalogue.put(merged)
  })
}

/** The next runs to merge: the first ones of a level that are many and follow each other; undefined if there are none. */
export function runsToMerge(fresh: readonly Run[]): readonly Run[] | undefined {
  let from = 0
  for (let index = 1; index <= fresh.length; index++) {
    if (isSameLevel(fresh[from], fresh[index])) continue
    if (index - from >= RUNS_PER_MERGE) return fresh.slice(from, index)
    from = index
  }
  return undefined
}

/**
 * Runs with the rollups of one day that were made again and again, since something came late, when half of what they have holds no more;
 * undefined if there are none. They follow each other.
 */
export function replacedRuns(fresh: readonly Run[]): readonly Run[] | undefined {
  let from = 0
  for (let index = 1; index <= fresh.length; index++) {
    if (isSameDay(fresh[from], fresh[index])) continue
    const runs = fresh.slice(from, index)
    const [all, most] = [
      runs.reduce((sum, { samples }) => sum + samples, 0),
      Math.max(...runs.map((run) => run.samples)),
    ]
    if (runs.length > 1 && all >= 2 * most) return runs
    from = index
  }
  return undefined
}

function isSameDay(a: Run | undefined, b: Run | undefined): boolean {
  if (a?.kind !== 'rollups' || b?.kind !== 'rollups' || a.period !== b.period || a.tenant !== b.tenant) return false
  const day = dayOf(a.fromMs)
  return dayOf(a.toMs) === day && dayOf(b.fromMs) === day && dayOf(b.toMs) === day
}

function isSameLevel(a: Run | undefined, b: Run | undefined): boolean {
  return a?.kind === b?.kind && a?.period === b?.period && a?.tenant === b?.tenant && a?.level === b?.level
}
