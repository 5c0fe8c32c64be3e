/** Merges runs of one tenant and period that follow each other in fresh.db into one. */
import type { Run, RunCatalogue } from './catalogue.ts'
import type { HistoryPage } from './codec/page.ts'
import type { DroppedSeries } from './dropped.ts'
import { type FreshPages, RunTotals } from './fresh-pages.ts'
import type { RunPages } from './history-files.ts'
import { Merge } from './merge.ts'
import { columnsOf } from './period-file.ts'
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

export function* mergeFresh(runs: readonly Run[], parts: FreshMergeParts): Generator<undefined, void, void> {
  const { catalogue, pages, dropped, open, nextNumber, clock } = parts
  const last = runs.at(-1)!
  const id = nextNumber()
  const level = Math.max(...runs.map((run) => run.level)) + 1
  const totals = new RunTotals({ ...last, id, level, madeMs: Math.min(...runs.map(({ madeMs }) => madeMs)) })
  const cursors = runs.map((run) => new RunCursor(open(run), columnsOf(run.kind), dropped.hidden(run)))
  const put = (page: HistoryPage): void => {
    totals.add(page)
    pages.put(id, page)
  }
  const merge = new Merge(cursors, put, { deflating: 'fresh' })
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

function isSameLevel(a: Run | undefined, b: Run | undefined): boolean {
  return a?.kind === b?.kind && a?.period === b?.period && a?.tenant === b?.tenant && a?.level === b?.level
}
