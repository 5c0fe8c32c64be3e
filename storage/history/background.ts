/**
 * The work in the background, one job after the other, in steps: pages of the head, merges within fresh.db, files of days and
 * months, retention. A job that is ended early leaves only pages that no run names.
 */
import type { CatalogueFile, Run, RunCatalogue } from './catalogue.ts'
import type { DroppedSeries } from './dropped.ts'
import { mergeFresh, replacedRuns, runsToMerge } from './fresh-merge.ts'
import type { FreshPages } from './fresh-pages.ts'
import type { HistoryTenant, HistoryTenants } from './history-tenants.ts'
import type { PageTable } from './page-table.ts'
import { pageHead } from './paging.ts'
import { PeriodFile, type PeriodFileParts } from './period-file.ts'
import { DAY_MS, periodEnd, type RunKind } from './periods.ts'
import type { Retention } from './retention.ts'

export type Job = Generator<undefined, void, void>

/** Pages are made of samples that are so old, or earlier if there are many. */
const HEAD_AGE_MS = 300_000
/** After its end a period is left alone for so long: most of what comes late comes soon, and a month needs its last day. */
const SETTLE_MS: Readonly<Record<RunKind, number>> = { samples: 600_000, rollups: DAY_MS }
/** What is hidden leaves a file before a day is over. */
const STALE_MS = DAY_MS / 2
/** What is fresh for a period with a file waits for so long, unless it has a quarter of its bytes. */
const LATE_MS: Readonly<Record<RunKind, number>> = { samples: DAY_MS, rollups: 7 * DAY_MS }
const LATE_SHARE = 4
/** Rollups of a month that goes on are put into its file when they have so many bytes. */
const MONTH_BYTES = 32 << 20
const RETENTION_MS = 3_600_000
const PLAN_MS = 60_000
const AGE_MS = 3_600_000

export interface BackgroundParts extends Omit<PeriodFileParts, 'pages'> {
  readonly newPages: () => FreshPages
  readonly catalogue: RunCatalogue
  readonly tenants: HistoryTenants
  readonly retention: Retention
  readonly dropped: DroppedSeries
  readonly pageTable: PageTable
  readonly removeRows: (tenant: number, last: number) => void
  /** Marks runs to be deleted that nothing names, in a transaction of its own. */
  readonly markGone: (runs: readonly number[]) => void
  readonly transact: (work: () => void) => void
  readonly recount: () => void
  /** Bytes that may be written now. Without room only retention goes on. */
  readonly bytesLeft: () => number
  readonly headSamples: number
}

export class Background {
  readonly #parts: BackgroundParts
  #job: Job | undefined
  /** A job has ended early. */
  #hasUnnamed = true
  /** The next job has to be looked for. */
  #isPlanned = false
  #plannedMs = 0
  #retentionMs = Number.NEGATIVE_INFINITY
  #wasSteady = false
  /** The job is one of retention; and the next one has to be, since what goes makes room. */
  #isRetention = false
  #retainsFirst = false
  #agedMs: number
  /** Who wants nothing to be done now. */
  #holders = 0
  merges = 0
  late = 0
  tooOld = 0

  constructor(parts: BackgroundParts) {
    this.#parts = parts
    this.#agedMs = parts.clock()
  }

  /** Does one step; returns whether there is another one. */
  step(): boolean {
    if (this.#holders > 0) return false
    this.#job ??= this.#nextJob()
    if (this.#job === undefined) return false
    try {
      if (this.#job.next().done !== true) return true
    } catch (error) {
      this.#retainsFirst = !this.#isRetention
      this.#job = undefined
      this.#hasUnnamed = true
      this.#isPlanned = false
      throw error
    }
    this.#job = undefined
    this.#isPlanned = false
    return true
  }

  /** Something has changed under the job: it begins again. */
  cancel(): void {
    if (this.#job !== undefined) this.#hasUnnamed = true
    this.#job?.return()
    this.#job = undefined
    this.#isPlanned = false
  }

  /** Nothing is done until the function that is returned is called, once, by everybody who holds it. */
  hold(): () => void {
    this.cancel()
    this.#holders++
    return () => {
      this.#holders--
    }
  }

  /** Limits have changed: what is over them goes next. */
  retain(): void {
    this.#retentionMs = Number.NEGATIVE_INFINITY
    this.#isPlanned = false
  }

  /** Makes pages of what the heads have, at once. */
  pageNow(tenants: Iterable<HistoryTenant>): void {
    this.cancel()
    for (const tenant of tenants) {
      if (tenant.head.blocks.length > 0) for (const _ of this.#page(tenant));
    }
  }

  #nextJob(): Job | undefined {
    const { clock, tenants } = this.#parts
    const now = clock()
    this.#isRetention = false
    if (this.#retainsFirst) {
      this.#retainsFirst = false
      return this.#retainAt(now)
    }
    if (this.#hasUnnamed) this.#markUnnamed()
    if (Math.abs(now - this.#agedMs) >= AGE_MS) {
      for (const { active } of tenants.all) active.age()
      this.#agedMs = now
    }
    const paged = this.#tenantToPage(now)
    if (paged !== undefined && this.#hasRoom(paged.head.bytes)) return this.#page(paged)
    if (this.#isPlanned && Math.abs(now - this.#plannedMs) < PLAN_MS) return undefined
    const job = this.#planned(now)
    this.#isPlanned = job === undefined
    this.#plannedMs = now
    return job
  }

  #planned(now: number): Job | undefined {
    const { catalogue, retention } = this.#parts
    const isSteady = retention.isSteady()
    if (isSteady !== this.#wasSteady || Math.abs(now - this.#retentionMs) >= RETENTION_MS) {
      this.#wasSteady = isSteady
      return this.#retainAt(now)
    }
    const fresh = catalogue.fresh()
    const merged = runsToMerge(fresh)
    if (merged !== undefined && this.#hasRoom(bytesOf(merged))) return this.#merge(merged, 1 + levelOf(merged))
    const replaced = replacedRuns(fresh) ?? this.#withHidden(fresh, now)
    if (replaced !== undefined && this.#hasRoom(bytesOf(replaced))) return this.#merge(replaced, levelOf(replaced))
    const period = this.#periodToFile(fresh, now)
    if (period !== undefined && this.#hasRoom(bytesOf(catalogue.ofPeriod(period.kind, period.period)))) {
      return this.#file(period.kind, period.period)
    }
    return retention.hasGone ? retention.clear() : undefined
  }

  /** What is made of so many bytes is written to the log, too, before these can go. */
  #hasRoom(bytes: number): boolean {
    return 2 * bytes <= this.#parts.bytesLeft()
  }

  #retainAt(now: number): Job {
    this.#retentionMs = now
    this.#isRetention = true
    return this.#retain()
  }

  /** The tenant with the most samples if they are too many, or one whose samples have waited long. */
  #tenantToPage(now: number): HistoryTenant | undefined {
    let total = 0
    let largest: HistoryTenant | undefined
    let old: HistoryTenant | undefined
    for (const tenant of this.#parts.tenants.all) {
      const { head } = tenant
      if (head.blocks.length === 0) continue
      total += head.samples
      if (largest === undefined || head.samples > largest.head.samples) largest = tenant
      if (Math.abs(now - head.sinceMs) >= HEAD_AGE_MS) old ??= tenant
    }
    return total >= this.#parts.headSamples ? largest : old
  }

  *#page(tenant: HistoryTenant): Job {
    const { id, head, active } = tenant
    const { series, newPages, clock } = this.#parts
    const goneMs = tenant.goneAt(clock())
    const placeOf = (each: number): number | undefined => active.placeOf(each) ?? series.placeOf(id, each)
    const { late, tooOld } = yield* pageHead({ id, head, goneMs, placeOf }, { ...this.#parts, pages: newPages() })
    this.late += late
    this.tooOld += tooOld
    if (tooOld > 0) this.#parts.series.changes.removals++
  }

  *#merge(runs: readonly Run[], level: number): Job {
    yield* mergeFresh(runs, level, { ...this.#parts, pages: this.#parts.newPages() })
    this.merges++
  }

  *#file(kind: RunKind, period: number): Job {
    yield* new PeriodFile({ ...this.#parts, pages: this.#parts.newPages() }, kind, period).make()
    this.merges++
  }

  *#retain(): Job {
    yield* this.#parts.retention.pass()
    yield* this.#parts.dropped.cleaning(this.#parts.transact)
    this.#parts.recount()
  }

  /** A run in fresh.db whose series were dropped some time ago. */
  #withHidden(fresh: readonly Run[], now: number): readonly Run[] | undefined {
    const { dropped } = this.#parts
    const run = fresh.find((each) => Math.abs(now - each.madeMs) >= STALE_MS && dropped.hidden(each) !== undefined)
    return run === undefined ? undefined : [run]
  }

  #periodToFile(fresh: readonly Run[], now: number): Pick<CatalogueFile, 'kind' | 'period'> | undefined {
    const { catalogue } = this.#parts
    for (const runs of byPeriod(fresh)) {
      const [{ kind, period }] = runs
      if (this.#isDue(runs, catalogue.fileOf(kind, period), now)) return { kind, period }
    }
    return catalogue.files().find(({ staleMs }) => staleMs !== null && Math.abs(now - staleMs) >= STALE_MS)
  }

  /** Whether the next file of a period is to be made of these runs. */
  #isDue(runs: PeriodRuns, file: CatalogueFile | undefined, now: number): boolean {
    const [{ kind, period }] = runs
    const bytes = bytesOf(runs)
    const isOver = now >= periodEnd(kind, period) + SETTLE_MS[kind]
    if (file === undefined) return isOver || (kind === 'rollups' && bytes >= MONTH_BYTES)
    if (bytes >= file.bytes / LATE_SHARE && (isOver || bytes >= MONTH_BYTES)) return true
    return isOver && runs.some(({ madeMs }) => Math.abs(now - madeMs) >= LATE_MS[kind])
  }

  /** Pages of runs that were not completed. */
  #markUnnamed(): void {
    const { catalogue, pageTable, markGone } = this.#parts
    const named = new Set(catalogue.fresh().map(({ id }) => id))
    const unnamed = pageTable.runs().filter((run) => !named.has(run))
    if (unnamed.length > 0) markGone(unnamed)
    this.#hasUnnamed = false
  }
}

function levelOf(runs: readonly Run[]): number {
  return Math.max(...runs.map(({ level }) => level))
}

function bytesOf(runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + run.bytes, 0)
}

type PeriodRuns = [Run, ...Run[]]

/** Runs in fresh.db by kind and period, as they are sorted. */
function byPeriod(fresh: readonly Run[]): PeriodRuns[] {
  const periods: PeriodRuns[] = []
  for (const run of fresh) {
    const last = periods.at(-1)
    if (last !== undefined && last[0].kind === run.kind && last[0].period === run.period) last.push(run)
    else periods.push([run])
  }
  return periods
}
