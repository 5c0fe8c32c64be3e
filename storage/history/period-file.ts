/**
 * Makes the next file of a day or a month, of the one that there is and what is fresh. It is written and synced under a new name,
 * and then named by the catalogue in the transaction that forgets what went into it: a crash before that leaves a file that
 * nobody names, which goes at the next start.
 */
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import type { CatalogueFile, Run, RunCatalogue, RunHead } from './catalogue.ts'
import { type HistoryPage, PageWriter } from './codec/page.ts'
import { type HistoryDisk, makeFile, removeUnnamed } from './database.ts'
import type { DroppedSeries } from './dropped.ts'
import { type FreshPages, RunTotals } from './fresh-pages.ts'
import type { RunPages } from './history-files.ts'
import { Merge } from './merge.ts'
import { PageInserts } from './page-table.ts'
import { fileName, monthOf, type RunKind } from './periods.ts'
import { ROLLUP_COLUMNS } from './rollup.ts'
import { RollupObserver } from './rollup-observer.ts'
import { RunCursor } from './run-cursor.ts'
import type { SeriesTable } from './series-table.ts'

/** What is synced at once, so that no other call waits long. */
const SYNC_BYTES = 8 << 20
const TOUCHED_AT_ONCE = 2048

export interface PeriodFileParts {
  readonly disk: HistoryDisk
  readonly directory: string
  readonly catalogue: RunCatalogue
  readonly pages: FreshPages
  readonly dropped: DroppedSeries
  readonly series: SeriesTable
  readonly open: (run: Run) => RunPages
  readonly nextNumber: () => number
  readonly clock: () => number
  /** A file that nobody names any more. */
  readonly unlink: (file: CatalogueFile) => void
  readonly size: (path: string) => number
}

export function columnsOf(kind: RunKind): number {
  return kind === 'samples' ? 1 : ROLLUP_COLUMNS
}

export class PeriodFile {
  readonly #parts: PeriodFileParts
  readonly #kind: RunKind
  readonly #period: number
  readonly #id: number
  readonly #name: string
  readonly #path: string
  /** Made with the first page. */
  #database: Database | undefined
  #inserts: PageInserts | undefined
  #isMade = false
  #unsynced = 0
  /** What the catalogue names in the end: in the file, and in fresh.db. */
  readonly #runs: RunTotals[] = []
  readonly #copied: Run[] = []
  readonly #rollups: RunTotals[] = []
  readonly #series: number[][] = []

  constructor(parts: PeriodFileParts, kind: RunKind, period: number) {
    this.#parts = parts
    this.#kind = kind
    this.#period = period
    this.#id = parts.nextNumber()
    this.#name = fileName(kind, period, this.#id)
    this.#path = join(parts.directory, this.#name)
  }

  /** If it is ended early, or fails, nothing is left but pages in fresh.db that no run names. */
  *make(): Generator<undefined, void, void> {
    const { catalogue, disk, unlink } = this.#parts
    const inputs = catalogue.ofPeriod(this.#kind, this.#period)
    const old = catalogue.fileOf(this.#kind, this.#period)
    let isNamed = false
    try {
      for (const runs of byTenant(inputs)) yield* this.#tenant(runs)
      this.#complete()
      yield* this.#touch()
      this.#enter(inputs, old)
      isNamed = true
    } finally {
      this.#database?.close()
      if (!isNamed) removeUnnamed(disk, this.#path)
    }
    if (old !== undefined) unlink(old)
  }

  *#tenant(runs: readonly Run[]): Generator<undefined, void, void> {
    const { dropped } = this.#parts
    const [only] = runs
    if (runs.length === 1 && only?.file !== null && only !== undefined && dropped.hidden(only) === undefined) {
      yield* this.#copy(only)
    } else yield* this.#merge(runs)
  }

  /** Nothing of the tenant has changed. */
  *#copy(run: Run): Generator<undefined, void, void> {
    const pages = this.#parts.open(run)
    for (let key = pages.after(undefined); key !== undefined; key = pages.after(key)) {
      const page = pages.page(key)
      if (page !== undefined) this.#put(run.id, page)
      yield* this.#synced()
    }
    this.#copied.push({ ...run, file: this.#id })
  }

  *#merge(runs: readonly Run[]): Generator<undefined, void, void> {
    const { dropped, open, nextNumber, pages } = this.#parts
    const last = runs.at(-1)!
    const id = nextNumber()
    const head = { ...last, id, level: 0, madeMs: this.#parts.clock() }
    const totals = new RunTotals(head)
    const cursors = runs.map((run) => new RunCursor(open(run), columnsOf(this.#kind), dropped.hidden(run)))
    const put = (page: HistoryPage): void => {
      totals.add(page)
      this.#put(id, page)
    }
    const rollups = this.#kind === 'samples' ? this.#rollupsOf(head) : undefined
    for (const _ of new Merge(cursors, put, { deflating: 'kept', observer: rollups?.observer }).run()) {
      yield* this.#synced()
      pages.store()
      yield
    }
    this.#runs.push(totals)
    if (rollups === undefined) return
    rollups.writer.flush()
    this.#series.push(rollups.observer.series)
  }

  /** Rollups of a tenant's day wait in fresh.db until their month is made. */
  #rollupsOf(head: RunHead): { readonly writer: PageWriter; readonly observer: RollupObserver } {
    const { nextNumber, pages } = this.#parts
    const id = nextNumber()
    const period = monthOf(this.#period)
    const totals = new RunTotals({ ...head, id, kind: 'rollups', period, number: id })
    this.#rollups.push(totals)
    const writer = new PageWriter((page) => {
      totals.add(page)
      pages.put(id, page)
    }, 'kept')
    return { writer, observer: new RollupObserver(writer, period) }
  }

  #put(run: number, page: HistoryPage): void {
    if (this.#database === undefined) {
      this.#database = makeFile(this.#parts.disk, this.#path)
      this.#inserts = new PageInserts(this.#database)
    }
    this.#inserts!.put(run, page)
    this.#unsynced += page.data.length
  }

  *#synced(): Generator<undefined, void, void> {
    if (this.#unsynced < SYNC_BYTES || this.#database === undefined) return
    this.#database.exec('commit')
    yield
    this.#parts.disk.sync(this.#path)
    this.#unsynced = 0
    yield
    this.#database.exec('begin')
  }

  /** The file and its name are durable then. */
  #complete(): void {
    if (this.#database === undefined) return
    const { disk, directory } = this.#parts
    this.#database.exec('commit')
    this.#database.close()
    this.#database = undefined
    disk.sync(this.#path)
    disk.syncDirectory(directory)
    this.#isMade = true
  }

  /** The series of the day count as used on it, some at a time. That a file with them is not named in the end does no harm. */
  *#touch(): Generator<undefined, void, void> {
    const { pages, series } = this.#parts
    for (const ids of this.#series) {
      for (let from = 0; from < ids.length; from += TOUCHED_AT_ONCE) {
        const some = ids.slice(from, from + TOUCHED_AT_ONCE)
        pages.finish(() => series.touch(some, this.#period))
        yield
      }
    }
  }

  #enter(inputs: readonly Run[], old: CatalogueFile | undefined): void {
    const { catalogue, pages, clock, size } = this.#parts
    pages.finish(() => {
      for (const run of inputs) if (run.file === null) catalogue.remove(run, clock())
      if (old !== undefined) catalogue.removeFile(old.id)
      if (this.#isMade) {
        const row = { id: this.#id, name: this.#name, kind: this.#kind, period: this.#period }
        catalogue.putFile({ ...row, bytes: size(this.#path), staleMs: null })
        for (const run of this.#copied) catalogue.put(run)
      }
      for (const totals of this.#runs) putRun(catalogue, totals, this.#id)
      for (const totals of this.#rollups) putRun(catalogue, totals, null)
    })
  }
}

function putRun(catalogue: RunCatalogue, totals: RunTotals, file: number | null): void {
  const run = totals.run(file)
  if (run !== undefined) catalogue.put(run)
}

function* byTenant(runs: readonly Run[]): Generator<Run[]> {
  let from = 0
  for (let index = 1; index <= runs.length; index++) {
    if (runs[index]?.tenant === runs[from]?.tenant) continue
    yield runs.slice(from, index)
    from = index
  }
}
