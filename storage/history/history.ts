/**
 * The history in a directory: what was accepted, by series and time. docs/storage.md describes the files. One thread owns it.
 *
 *     append ─► head, pending ── commit ─► a row of columns ── paging ─► runs of pages ── merges ─► files of days, of months
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import type { StorageError } from '../store.ts'
import { identityOf } from './active-series.ts'
import { Background } from './background.ts'
import { backUpHistory } from './backup.ts'
import { type CatalogueFile, RunCatalogue } from './catalogue.ts'
import { seriesAt } from './codec/page.ts'
import {
  freshBytesIn,
  type HistoryDisk,
  historyError,
  openFresh,
  realDisk,
  removeOrphans,
  removeUnnamed,
  WAL_LIMIT_BYTES,
} from './database.ts'
import { DroppedSeries } from './dropped.ts'
import { FamilyTable } from './family-table.ts'
import { FreshLog } from './fresh-log.ts'
import { FreshPages } from './fresh-pages.ts'
import type { StoredBlock } from './head.ts'
import { HeadRows } from './head-rows.ts'
import { HistoryFiles, RunPages } from './history-files.ts'
import { HistoryLogPlace } from './history-log-place.ts'
import { HistoryRoom, historySpaceOf } from './history-room.ts'
import { type HistoryTenant, HistoryTenants } from './history-tenants.ts'
import { PageTable } from './page-table.ts'
import { DAY_MS, dayOf, LAST_MS } from './periods.ts'
import { HistoryQueries } from './queries.ts'
import { type CompiledMatcher, compileMatchers, SeriesResolver } from './resolve.ts'
import { Retention } from './retention.ts'
import { besides, SeriesTable } from './series-table.ts'
import { SteadyClock } from './steady-clock.ts'
import {
  type HistoryBackupOptions,
  type HistoryBatch,
  type HistoryFamily,
  type HistoryFigures,
  type HistoryLimits,
  type HistoryLoss,
  type HistoryOptions,
  type HistoryPosition,
  type HistoryQuery,
  HistoryReadError,
  type HistoryRollups,
  type HistorySamples,
  type HistorySeries,
  type HistorySteps,
  type HistoryStore,
  type HistoryTenantFigures,
} from './store.ts'

const HEAD_SAMPLES = 1 << 20
const LOG_BYTES = 1 << 30
/** So many take a few dozen milliseconds. */
const SERIES_AT_ONCE = 512

export class History implements HistoryStore {
  readonly #options: HistoryOptions
  readonly #disk: HistoryDisk
  readonly #database: Database
  readonly #tenants: HistoryTenants
  readonly #families: FamilyTable
  /** Where it is in the log of a cluster. */
  readonly log: HistoryLogPlace
  readonly #series: SeriesTable
  readonly #catalogue: RunCatalogue
  readonly #files: HistoryFiles
  readonly #dropped: DroppedSeries
  readonly #queries: HistoryQueries
  readonly #retention: Retention
  readonly #background: Background
  readonly #rows: HeadRows
  readonly #headSamples: number
  readonly #log: FreshLog
  readonly #room: HistoryRoom
  #limits: HistoryLimits
  #nextNumber: number
  #failure: StorageError | undefined
  #refusedSeries = 0
  #refusedSamples = 0
  #tooOld = 0

  /** Opens the history, or begins one. Throws StorageError. */
  static open(options: HistoryOptions, disk: HistoryDisk = realDisk): History {
    const database = openFresh(disk, options.directory)
    try {
      return new History(options, disk, database)
    } catch (error) {
      database.close()
      throw historyError(error, options.directory)
    }
  }

  private constructor(options: HistoryOptions, disk: HistoryDisk, database: Database) {
    const { directory, clock, limits, headSamples = HEAD_SAMPLES, monotonicMs = () => performance.now() } = options
    this.#headSamples = headSamples
    this.#options = options
    this.#disk = disk
    this.#database = database
    this.#limits = limits
    this.#tenants = new HistoryTenants(database)
    this.#families = new FamilyTable(database)
    this.log = new HistoryLogPlace(database)
    this.#series = new SeriesTable(database, this.#families)
    this.#catalogue = new RunCatalogue(database)
    this.#files = new HistoryFiles(disk, directory, monotonicMs)
    this.#dropped = new DroppedSeries(database)
    this.#queries = new HistoryQueries({
      disk,
      directory,
      files: this.#files,
      dropped: this.#dropped,
      changes: this.#series.changes,
      remove: (file) => this.#removeFile(file),
    })
    this.#rows = new HeadRows(database)
    const { logBytes = LOG_BYTES, space = () => historySpaceOf(directory) } = options
    this.#room = new HistoryRoom(directory, space)
    const mostBytes = (): number => (this.#room.isLow ? WAL_LIMIT_BYTES : logBytes)
    this.#log = new FreshLog({ database, mostBytes, endReads: () => this.#queries.endAll() })
    this.#nextNumber = 1 + this.#catalogue.lastNumber()
    const unlink = (file: CatalogueFile): void => this.#queries.forget(file)
    this.#retention = new Retention({
      database,
      catalogue: this.#catalogue,
      tenants: this.#tenants,
      series: this.#series,
      clock,
      steady: new SteadyClock(clock, monotonicMs),
      limits: () => this.#limits,
      unlink,
    })
    const pageTable = new PageTable(database)
    const markGone = database.prepare('insert or ignore into gone values (?)')
    this.#background = new Background({
      disk,
      directory,
      clock,
      unlink,
      pageTable,
      catalogue: this.#catalogue,
      tenants: this.#tenants,
      series: this.#series,
      dropped: this.#dropped,
      retention: this.#retention,
      newPages: () => new FreshPages(database),
      open: (run) => new RunPages(run, this.#files, { catalogue: this.#catalogue, fresh: pageTable }),
      nextNumber: () => this.#nextNumber++,
      size: (path) => statSync(path).size,
      removeRows: (tenant, last) => this.#rows.remove(tenant, last),
      markGone: (runs) =>
        this.#transaction(() => {
          for (const run of runs) markGone.run(run)
        }),
      transact: (work) => this.#transaction(work),
      recount: () => this.#recount(),
      bytesLeft: () => this.#room.bytesLeft,
      headSamples,
    })
    removeOrphans(disk, directory, new Set(this.#catalogue.files().map(({ name }) => name)))
    this.#rows.load(this.#tenants.all, clock(), (tenant, row) => {
      this.#files.damagedPages++
      tenant.lose(row)
    })
    this.#recount()
  }

  seriesOf(series: HistorySeries): number | undefined {
    this.#check()
    const { name, labels, native } = series
    const identity = `${native}\0${identityOf(name, JSON.stringify(labels))}`
    const tenant = this.#tenants.of(series.tenant)
    const known = tenant.active.find(identity)
    if (known !== undefined) return seriesAt(known)
    const place = this.#findOrAdd(tenant, series)
    if (place === undefined) {
      this.#refusedSeries++
      return undefined
    }
    tenant.active.add(identity, place)
    return seriesAt(place)
  }

  /** What a reference stands for, if that is stored. */
  described(tenant: string, reference: number): HistorySeries | undefined {
    const known = this.#tenants.find(tenant)
    return known && this.#series.described(known, reference)
  }

  nativeOf(series: Pick<HistorySeries, 'tenant' | 'name' | 'labels'>): string | undefined {
    const tenant = this.#tenants.find(series.tenant)
    return tenant && this.#series.nativeOf(tenant.id, series)
  }

  describe(...[tenant, metric]: Parameters<HistoryStore['describe']>): void {
    const known = this.#tenants.find(tenant)
    // It may have been removed since it was asked about.
    if (known !== undefined) this.#families.describe(known.id, metric)
  }

  families(...[tenant, ...place]: Parameters<HistoryStore['families']>): ReturnType<HistoryStore['families']> {
    const known = this.#tenants.find(tenant)
    return known === undefined ? [] : this.#families.after(known.id, ...place)
  }

  familiesOf(tenant: string, native: string): readonly HistoryFamily[] {
    const known = this.#tenants.find(tenant)
    return known === undefined ? [] : this.#families.of(known.id, native)
  }

  positionOf(tenant: string): HistoryPosition | undefined {
    return this.#tenants.find(tenant)?.position
  }

  append(batch: HistoryBatch): number {
    this.#check()
    const tenant = this.#tenants.of(batch.tenant)
    const { series, times, length } = batch
    const { head } = tenant
    const oldestMs = this.oldestOf(batch.tenant)
    let [from, taken] = [0, length]
    for (let index = 0; index < length; index++) {
      const time = times[index]!
      const isTooOld = time < oldestMs
      if (!isTooOld && time <= LAST_MS && Number.isInteger(time) && this.#isKnown(tenant, series[index]!)) continue
      if (isTooOld) this.#tooOld++
      else this.#refusedSamples++
      head.take(batch, from, index)
      from = index + 1
      taken--
    }
    head.take(batch, from, length)
    tenant.take(batch)
    return taken
  }

  /** The earliest time that a sample of a tenant may have now. */
  oldestOf(tenant: string): number {
    const nowMs = this.#options.clock()
    return Math.max(1, nowMs - this.#limits.keepMs, 1 + this.#tenants.of(tenant).goneAt(nowMs))
  }

  /** Whether a series is in use, or stored: a clock that was set may have made it look unused. */
  #isKnown({ id, active }: HistoryTenant, series: number): boolean {
    if (active.placeOf(series) !== undefined) return true
    const place = this.#series.placeOf(id, series)
    if (place !== undefined) active.use(place)
    return place !== undefined
  }

  get uncommitted(): number {
    return this.#tenants.pending
  }

  commit(): boolean {
    return this.#guarded(() => {
      this.#noteDamage()
      if (!this.#isChanged) return true
      this.#room.check()
      // Samples follow their series.
      if (this.#series.waiting > SERIES_AT_ONCE) {
        this.#storeSeries()
        return false
      }
      // Whoever does not call `work` must not fill the memory. Before the rest: what fails here leaves everything uncommitted.
      if (this.#tenants.samplesInHeads >= 2 * this.#headSamples) this.#background.pageNow(this.#tenants.all)
      const blocks: { readonly tenant: HistoryTenant; readonly block: StoredBlock }[] = []
      this.#transaction(() => {
        this.#series.store(SERIES_AT_ONCE)
        this.#tenants.store()
        this.#families.store()
        this.log.store()
        for (const tenant of this.#tenants.all)
          if (tenant.head.pending > 0) blocks.push({ tenant, block: this.#rows.put(tenant) })
      })
      const now = this.#options.clock()
      this.#series.stored()
      this.#tenants.stored()
      this.#families.stored()
      this.log.stored()
      for (const { tenant, block } of blocks) tenant.head.committed(block, now)
      this.#log.check()
      return true
    })
  }

  #storeSeries(): void {
    this.#transaction(() => {
      this.#tenants.storeNew()
      this.#series.store(SERIES_AT_ONCE)
    })
    this.#tenants.storedNew()
    this.#series.stored()
    this.#log.check()
  }

  *select(query: HistoryQuery): HistorySteps<HistorySamples> {
    const tenant = this.#tenants.find(query.tenant)
    if (tenant !== undefined) yield* this.#queries.samples(tenant, query)
  }

  following({ tenant, matchers }: Parameters<HistoryStore['following']>[0]): ReturnType<HistoryStore['following']> {
    return this.#queries.following(() => this.#tenants.find(tenant), matchers)
  }

  *selectRollups(query: HistoryQuery): HistorySteps<HistoryRollups> {
    const tenant = this.#tenants.find(query.tenant)
    if (tenant !== undefined) yield* this.#queries.rollups(tenant, query)
  }

  *series(query: Pick<HistoryQuery, 'tenant' | 'matchers'>): HistorySteps<HistorySeries> {
    const tenant = this.#tenants.find(query.tenant)
    if (tenant !== undefined) yield* this.#queries.series(tenant, query)
  }

  losses(query: Pick<HistoryQuery, 'tenant' | 'fromMs' | 'toMs'>): HistoryLoss[] {
    const tenant = this.#tenants.find(query.tenant)
    return tenant === undefined ? [] : this.#queries.losses(tenant, query)
  }

  work(budgetMs: number): boolean {
    return this.#guarded(() => {
      const end = performance.now() + budgetMs
      let more = this.#background.step()
      while (more && performance.now() < end) more = this.#background.step()
      this.#log.check()
      return more
    })
  }

  *drop({ tenant: name, matchers }: Pick<HistoryQuery, 'tenant' | 'matchers'>): Generator<undefined, number, void> {
    const tenant = this.#tenants.find(name)
    const compiled = compileMatchers(matchers)
    if (tenant === undefined) return 0
    while (!this.commit()) yield
    const steps = this.#dropping(tenant, compiled)
    // What is merged meanwhile would not be hidden.
    const release = this.#background.hold()
    try {
      let step = this.#guarded(() => steps.next())
      for (; step.done !== true; step = this.#guarded(() => steps.next())) yield
      return step.value
    } finally {
      steps.return(0)
      this.#series.changes.removals++
      release()
    }
  }

  /** Returns how many series match. */
  *#dropping(tenant: HistoryTenant, matchers: readonly CompiledMatcher[]): Generator<undefined, number, void> {
    this.#background.pageNow([tenant])
    const number = this.#nextNumber++
    const { places } = yield* new SeriesResolver(this.#database).resolve(tenant, matchers)
    const parts = { number, catalogue: this.#catalogue, clock: this.#options.clock }
    yield* this.#dropped.dropping(tenant.id, places, { ...parts, transact: (work) => this.#transaction(work) })
    return places.length
  }

  removeTenant(name: string): void {
    const tenant = this.#tenants.find(name)
    if (tenant === undefined) return
    this.#guarded(() => {
      this.#background.cancel()
      this.#transaction(() => {
        for (const run of this.#catalogue.ofTenant(tenant.id)) this.#catalogue.remove(run, this.#options.clock())
        this.#tenants.remove(tenant)
      })
      this.#tenants.removed(tenant)
      this.#series.forget(tenant.id)
      this.#families.forget(tenant.id)
      this.#dropped.forget(tenant.id)
    })
  }

  limit(limits: HistoryLimits): void {
    this.#limits = limits
    this.#background.retain()
  }

  figures(): HistoryFigures {
    const tenants = new Map<string, HistoryTenantFigures>()
    const totals = new Map(this.#catalogue.totals().map((each) => [each.tenant, each]))
    for (const { id, name, head } of this.#tenants.all) {
      const { samples, bytes = 0, oldest } = totals.get(id) ?? {}
      const oldestMs = head.oldestDay(oldest ?? undefined)
      const series = this.#series.count(id, Number.MIN_SAFE_INTEGER)
      tenants.set(name, { series, samples: (samples ?? 0) + head.samples, bytes: bytes + head.bytes, oldestMs })
    }
    return {
      tenants,
      bytes: this.#bytes(),
      merges: this.#background.merges,
      refusedSeries: this.#refusedSeries,
      refusedSamples: this.#refusedSamples,
      tooOld: this.#tooOld + this.#background.tooOld,
      late: this.#background.late,
      daysOverBytes: this.#retention.daysOverBytes,
      damagedPages: this.#files.damagedPages,
    }
  }

  async backUp(directory: string, options: HistoryBackupOptions = {}): Promise<number> {
    const release = this.#queries.hold()
    const [disk, database, from] = [this.#disk, this.#database, this.#options.directory]
    try {
      return await backUpHistory(directory, { ...options, disk, directory: from, database })
    } finally {
      release()
    }
  }

  close(): void {
    try {
      while (this.#failure === undefined && !this.commit());
    } finally {
      this.#background.cancel()
      // After a failed fsync another one would report success: the log stays as it is.
      const release = this.#failure === undefined ? undefined : this.#queries.holdLog()
      this.#files.closeAll()
      this.#queries.close()
      this.#database.close()
      release?.()
    }
  }

  #findOrAdd(tenant: HistoryTenant, series: HistorySeries): number | undefined {
    const dayMs = dayOf(this.#options.clock())
    const found = this.#series.find(tenant.id, series, { dayMs, countedMs: this.#countedMs })
    if (found !== undefined && found.native !== series.native) return this.#findOrAdd(tenant, besides(series))
    if (found?.isCounted === true) return found.place
    const most = this.#limits.quotas.get(tenant.name)?.series ?? Number.POSITIVE_INFINITY
    if (tenant.seriesCount >= most) return undefined
    const place = found?.place ?? this.#series.add(tenant.id, series, dayMs)
    if (place !== undefined) tenant.seriesCount++
    return place
  }

  /** Series that had samples on this day or later count in the quota of their tenant. */
  get #countedMs(): number {
    return dayOf(this.#options.clock() - this.#limits.keepMs) - DAY_MS
  }

  #recount(): void {
    for (const tenant of this.#tenants.all) tenant.seriesCount = this.#series.count(tenant.id, this.#countedMs)
  }

  get #isChanged(): boolean {
    return [this.#series, this.#tenants, this.#families, this.log].some(({ isChanged }) => isChanged)
  }

  /** What was found damaged since the last commit is a loss of its tenant. */
  #noteDamage(): void {
    const { found } = this.#files
    if (found.length === 0) return
    for (const damage of found)
      for (const tenant of this.#tenants.all) if (tenant.id === damage.run.tenant) tenant.lose(damage)
    this.#files.found = []
  }

  #removeFile({ id, name }: CatalogueFile): void {
    this.#files.close(id)
    removeUnnamed(this.#disk, join(this.#options.directory, name))
  }

  #bytes(): number {
    const fresh = freshBytesIn(this.#options.directory)
    return this.#catalogue.files().reduce((sum, { bytes }) => sum + bytes, fresh)
  }

  #transaction(work: () => void): void {
    this.#database.transaction(work).immediate()
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** After an error that no later attempt can mend, nothing is written any more. */
  #guarded<Result>(work: () => Result): Result {
    this.#check()
    try {
      return work()
    } catch (error) {
      if (error instanceof HistoryReadError) throw error
      const failure = historyError(error, this.#options.directory)
      if (failure.code !== 'FULL' && failure.code !== 'LOCKED') this.#failure = failure
      throw failure
    }
  }
}
