/**
 * Which pages exist. A run is a row of pages of one tenant and one period, ascending by place: in fresh.db, or in the file of the
 * period. What no run names is hidden at once, and goes later. Runs of a period are ordered by number: where two have a sample of
 * the same time, the later one holds. Only runs that follow each other are merged, so that this stays so.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { RunKind } from './periods.ts'

/** What a run is known by before its pages are made. */
export interface RunHead {
  /** Runs that are made later have a higher one. */
  readonly id: number
  readonly tenant: number
  readonly kind: RunKind
  /** When its day or month begins. */
  readonly period: number
  /** Its place among the runs of the period. */
  readonly number: number
  /** How often its samples were merged within fresh.db. */
  readonly level: number
  readonly madeMs: number
}

export interface Run extends RunHead {
  /** The id of its file; null if its pages are in fresh.db. */
  readonly file: number | null
  readonly fromMs: number
  readonly toMs: number
  readonly samples: number
  /** Of its pages. */
  readonly bytes: number
}

export interface CatalogueFile {
  readonly id: number
  readonly name: string
  readonly kind: RunKind
  readonly period: number
  readonly bytes: number
  /** Since when something in it is hidden; null if nothing is. */
  readonly staleMs: number | null
}

const RUN =
  'select id, tenant, kind, period, number, level, made_ms as madeMs, file, from_ms as fromMs, to_ms as toMs, samples, bytes from run'
const FILE = 'select id, name, kind, period, bytes, stale_ms as staleMs from file'

export interface TenantTotals {
  readonly tenant: number
  /** Null without samples. */
  readonly samples: number | null
  readonly bytes: number
  /** When the oldest day begins. */
  readonly oldest: number | null
}

export class RunCatalogue {
  readonly #putRun: Statement
  readonly #removeRun: Statement
  readonly #markGone: Statement
  readonly #putFile: Statement
  readonly #removeFile: Statement
  readonly #staleFile: Statement
  readonly #file: Statement<unknown[], CatalogueFile>
  readonly #files: Statement<unknown[], CatalogueFile>
  readonly #fileOf: Statement<unknown[], CatalogueFile>
  readonly #overlapping: Statement<unknown[], Run>
  readonly #ofPeriod: Statement<unknown[], Run>
  readonly #ofFile: Statement<unknown[], Run>
  readonly #anyOfFile: Statement<unknown[], number>
  readonly #ofTenant: Statement<unknown[], Run>
  readonly #fresh: Statement<unknown[], Run>
  readonly #last: Statement<unknown[], number>
  readonly #totals: Statement<unknown[], TenantTotals>

  /** Over a connection to fresh.db, which may be one that only reads. */
  constructor(database: Database) {
    const run = (rest: string) => database.prepare<unknown[], Run>(`${RUN} ${rest}`)
    const file = (rest: string) => database.prepare<unknown[], CatalogueFile>(`${FILE} ${rest}`)
    this.#putRun = database.prepare(
      'insert or replace into run values (@id, @tenant, @kind, @period, @number, @level, @madeMs, @file, @fromMs, @toMs, @samples, @bytes)',
    )
    this.#removeRun = database.prepare('delete from run where id = ?')
    this.#markGone = database.prepare('insert or ignore into gone values (?)')
    this.#putFile = database.prepare('insert into file values (@id, @name, @kind, @period, @bytes, @staleMs)')
    this.#removeFile = database.prepare('delete from file where id = ?')
    this.#staleFile = database.prepare('update file set stale_ms = ? where id = ? and stale_ms is null')
    this.#file = file('where id = ?')
    this.#files = file('order by kind desc, period')
    this.#fileOf = file('where kind = ? and period = ?')
    this.#overlapping = run('where tenant = ? and kind = ? and to_ms >= ? and from_ms <= ? order by period, number')
    this.#ofPeriod = run('where kind = ? and period = ? order by tenant, number')
    this.#ofFile = run('where file = ?')
    this.#anyOfFile = database.prepare<unknown[], number>('select id from run where file = ? limit 1').pluck()
    this.#ofTenant = run('where tenant = ? order by kind desc, period, number')
    this.#fresh = run('where file is null order by kind, period, tenant, number')
    this.#last = database
      .prepare<unknown[], number>(
        'select max(number) from (select max(id) as number from run union all select max(id) from file union all ' +
          'select max(number) from dropped union all select max(run) from page union all select 0)',
      )
      .pluck()
    this.#totals = database.prepare<unknown[], TenantTotals>(
      "select tenant, sum(samples) filter (where kind = 'samples') as samples, sum(bytes) as bytes, " +
        "min(period) filter (where kind = 'samples') as oldest from run group by tenant",
    )
  }

  /** Runs with something in a range of time, in the order in which they hold. */
  overlapping(tenant: number, kind: RunKind, fromMs: number, toMs: number): Run[] {
    return this.#overlapping.all(tenant, kind, fromMs, toMs)
  }

  ofPeriod(kind: RunKind, period: number): Run[] {
    return this.#ofPeriod.all(kind, period)
  }

  /** The oldest first, and samples before rollups. */
  ofTenant(tenant: number): Run[] {
    return this.#ofTenant.all(tenant)
  }

  /** All runs in fresh.db, by period and tenant. */
  fresh(): Run[] {
    return this.#fresh.all()
  }

  totals(): TenantTotals[] {
    return this.#totals.all()
  }

  file(id: number): CatalogueFile | undefined {
    return this.#file.get(id)
  }

  fileOf(kind: RunKind, period: number): CatalogueFile | undefined {
    return this.#fileOf.get(kind, period)
  }

  /** Those of days first, each kind with the oldest first. */
  files(): CatalogueFile[] {
    return this.#files.all()
  }

  /** The highest number that was given to a run, a file or a series that was dropped, and is still there. */
  lastNumber(): number {
    return this.#last.get() ?? 0
  }

  ofFile(file: number): Run[] {
    return this.#ofFile.all(file)
  }

  /** Whether anything of a file is named. */
  hasRuns(file: number): boolean {
    return this.#anyOfFile.get(file) !== undefined
  }

  // What follows is for the connection that writes, in a transaction of the caller.

  put(run: Run): void {
    this.#putRun.run(run)
  }

  /** Hides a run. Its pages in fresh.db are marked to be deleted; a file has them until its next number. */
  remove(run: Run, nowMs: number): void {
    this.#removeRun.run(run.id)
    if (run.file === null) this.#markGone.run(run.id)
    else this.#staleFile.run(nowMs, run.file)
  }

  putFile(file: CatalogueFile): void {
    this.#putFile.run(file)
  }

  /** Forgets a file with all its runs. */
  removeFile(id: number): void {
    for (const run of this.#ofFile.all(id)) this.#removeRun.run(run.id)
    this.#removeFile.run(id)
  }

  markStale(id: number, nowMs: number): void {
    this.#staleFile.run(nowMs, id)
  }
}
