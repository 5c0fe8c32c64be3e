/** What goes: by age, over the bytes of a tenant or of all, and what nothing names any more. Each step is one transaction. */
import type { Database, Statement } from 'better-sqlite3'
import type { CatalogueFile, Run, RunCatalogue } from './catalogue.ts'
import type { HistoryTenants } from './history-tenants.ts'
import { DAY_MS, dayOf, periodEnd, type RunKind } from './periods.ts'
import type { SeriesTable } from './series-table.ts'
import type { SteadyClock } from './steady-clock.ts'
import type { HistoryLimits } from './store.ts'

const PAGES_AT_ONCE = 64
/** Free pages of fresh.db that are returned to the disk at once. */
const SHRINK_PAGES = 256
/** Fewer free pages than this, or than half of the file, are left for what comes next. */
const KEPT_FREE_PAGES = 32

export interface RetentionParts {
  readonly database: Database
  readonly catalogue: RunCatalogue
  readonly tenants: HistoryTenants
  readonly series: SeriesTable
  readonly clock: () => number
  readonly steady: SteadyClock
  readonly limits: () => HistoryLimits
  /** A file that nobody names any more. */
  readonly unlink: (file: CatalogueFile) => void
}

export class Retention {
  readonly #parts: RetentionParts
  readonly #gone: Statement<unknown[], number>
  readonly #removePages: Statement
  readonly #removeGone: Statement
  readonly #pageCount: Statement<unknown[], number>
  readonly #freePages: Statement<unknown[], number>
  readonly #pageBytes: number
  /** Days that went over the limits of bytes. */
  daysOverBytes = 0

  constructor(parts: RetentionParts) {
    const { database } = parts
    this.#parts = parts
    this.#gone = database.prepare<unknown[], number>('select run from gone').pluck()
    this.#removePages = database.prepare(
      `delete from page where id in (select id from page where run = ? limit ${PAGES_AT_ONCE})`,
    )
    this.#removeGone = database.prepare('delete from gone where run = ?')
    this.#pageCount = database.prepare<unknown[], number>('pragma page_count').pluck()
    this.#freePages = database.prepare<unknown[], number>('pragma freelist_count').pluck()
    this.#pageBytes = Number(database.pragma('page_size', { simple: true }))
  }

  /** Whether anything may go by its age now. To be asked every minute or so, to see when the clock is set. */
  isSteady(): boolean {
    return this.#parts.steady.isSteady()
  }

  /** Everything once. */
  *pass(): Generator<undefined, void, void> {
    const { limits, clock, catalogue } = this.#parts
    const { keepMs, keepRollupsMs } = limits()
    const now = this.isSteady() ? clock() : Number.NEGATIVE_INFINITY
    const before = { samples: now - keepMs, rollups: now - keepRollupsMs }
    for (const file of catalogue.files()) {
      if (periodEnd(file.kind, file.period) < before[file.kind]) this.#removeFile(file)
      else if (!catalogue.hasRuns(file.id)) this.#removeEmpty(file)
      else continue
      yield
    }
    const old = catalogue.fresh().filter((run) => run.toMs < before[run.kind])
    if (old.length > 0) this.#transaction(() => this.#removeRuns(old))
    yield
    yield* this.#tenantBytes()
    yield* this.#allBytes()
    if (Number.isFinite(now)) {
      this.#transaction(() => this.#parts.tenants.removeLosses(Math.min(before.samples, before.rollups)))
      yield
      yield* this.#series(dayOf(Math.min(before.samples, before.rollups)) - 2 * DAY_MS)
    }
    yield* this.clear()
  }

  /** Whether `clear` has something to do. */
  get hasGone(): boolean {
    return this.#gone.get() !== undefined || this.#parts.tenants.hasLeaving
  }

  /** Deletes the pages of runs that are gone, and what is left of tenants. */
  *clear(): Generator<undefined, void, void> {
    const { tenants } = this.#parts
    for (const run of this.#gone.all()) {
      for (let more = true; more; ) {
        this.#transaction(() => {
          more = this.#removePages.run(run).changes > 0
          if (!more) this.#removeGone.run(run)
        })
        yield
      }
    }
    for (let more = true; more; yield) this.#transaction(() => (more = tenants.clear()))
    yield* this.#shrink()
  }

  /** The bytes of fresh.db that are in use. */
  get freshBytes(): number {
    return ((this.#pageCount.get() ?? 0) - (this.#freePages.get() ?? 0)) * this.#pageBytes
  }

  *#shrink(): Generator<undefined, void, void> {
    const { database } = this.#parts
    for (;;) {
      const free = this.#freePages.get() ?? 0
      if (free < Math.max(KEPT_FREE_PAGES, (this.#pageCount.get() ?? 0) / 2)) return
      database.pragma(`incremental_vacuum(${SHRINK_PAGES})`)
      yield
    }
  }

  *#tenantBytes(): Generator<undefined, void, void> {
    const { catalogue, tenants, limits } = this.#parts
    const { quotas } = limits()
    if (quotas.size === 0) return
    const bytes = new Map(catalogue.totals().map((totals) => [totals.tenant, totals.bytes]))
    for (const { id, name } of tenants.all) {
      const over = (bytes.get(id) ?? 0) - (quotas.get(name)?.bytes ?? Number.POSITIVE_INFINITY)
      if (over > 0) yield* this.#removeOldest(catalogue.ofTenant(id), over)
      yield
    }
  }

  /** Removes all of the oldest periods of a tenant until it has so many bytes less, one in each step. */
  *#removeOldest(runs: readonly Run[], over: number): Generator<undefined, void, void> {
    let left = over
    for (let from = 0; from < runs.length && left > 0; yield) {
      const { kind, period } = runs[from]!
      const some = runs.slice(from).filter((run) => run.kind === kind && run.period === period)
      this.#remove({ kind, period }, some, () => this.#removeRuns(some))
      if (kind === 'samples') this.daysOverBytes++
      left -= some.reduce((sum, { bytes }) => sum + bytes, 0)
      from += some.length
    }
  }

  *#allBytes(): Generator<undefined, void, void> {
    const { catalogue, limits } = this.#parts
    const files = catalogue.files()
    let bytes = this.freshBytes + files.reduce((sum, file) => sum + file.bytes, 0)
    for (const file of files) {
      if (bytes <= limits().maxBytes) return
      this.#removeFile(file)
      if (file.kind === 'samples') this.daysOverBytes++
      bytes -= file.bytes
      yield
    }
    // What is left has no file yet.
    for (const runs of periods(catalogue.fresh())) {
      if (bytes <= limits().maxBytes) return
      this.#transaction(() => this.#removeRuns(runs))
      if (runs[0]?.kind === 'samples') this.daysOverBytes++
      bytes -= runs.reduce((sum, run) => sum + run.bytes, 0)
      yield
    }
  }

  *#series(beforeMs: number): Generator<undefined, void, void> {
    const { tenants, series, clock } = this.#parts
    const days = { beforeMs, dayMs: dayOf(clock()) }
    for (const { id, active } of tenants.all) {
      for (let more = true; more; yield) {
        this.#transaction(() => {
          more = series.removeUnused(id, days, (each) => active.has(each))
        })
      }
    }
  }

  #removeRuns(runs: readonly Run[]): void {
    for (const run of runs) this.#parts.catalogue.remove(run, this.#parts.clock())
    this.#parts.series.changes.removals++
  }

  /** Fresh runs of the period go with it: they are part of the same day. */
  #removeFile(file: CatalogueFile): void {
    const { catalogue, unlink } = this.#parts
    this.#remove(file, catalogue.ofFile(file.id), () => {
      catalogue.removeFile(file.id)
      this.#removeRuns(catalogue.ofPeriod(file.kind, file.period))
    })
    unlink(file)
  }

  /** Removes in one transaction what `work` does. A day of which there was a file leaves its rollups. */
  #remove({ kind, period }: Pick<Run, 'kind' | 'period'>, runs: readonly Run[], work: () => void): void {
    const merged = new Set(runs.filter(({ file }) => kind === 'samples' && file !== null).map(({ tenant }) => tenant))
    const endMs = periodEnd(kind, period)
    this.#transaction(() => {
      work()
      this.#parts.tenants.daysGo(merged, endMs)
    })
    this.#parts.tenants.daysGone(merged, endMs)
  }

  /** What came late for the period stays. */
  #removeEmpty(file: CatalogueFile): void {
    this.#transaction(() => this.#parts.catalogue.removeFile(file.id))
    this.#parts.unlink(file)
  }

  #transaction(work: () => void): void {
    this.#parts.database.transaction(work).immediate()
  }
}

/** Runs by kind and period, samples first, the oldest first. */
function periods(runs: readonly Run[]): Run[][] {
  const found = new Map<string, Run[]>()
  const rank: Record<RunKind, number> = { samples: 0, rollups: 1 }
  for (const run of runs.toSorted((a, b) => rank[a.kind] - rank[b.kind] || a.period - b.period)) {
    const key = `${run.kind} ${run.period}`
    found.set(key, [...(found.get(key) ?? []), run])
  }
  return [...found.values()]
}
