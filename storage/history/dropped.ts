/**
 * Series whose samples were dropped, each with a number: what is in runs below it is hidden at once, and left out when they are
 * merged. When no such run is left the series is forgotten here.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { Run, RunCatalogue } from './catalogue.ts'
import { seriesAt } from './codec/page.ts'
import type { IsHidden } from './run-cursor.ts'

const ROWS_PER_STEP = 8192
const DROPPED_AT_ONCE = 4096

interface DroppedRow {
  readonly series: number
  readonly tenant: number
  readonly number: number
}

interface DroppingParts {
  readonly number: number
  readonly catalogue: Pick<RunCatalogue, 'ofTenant' | 'markStale'>
  readonly clock: () => number
  readonly transact: (work: () => void) => void
}

/** What was dropped of one tenant. */
interface DroppedOfTenant {
  /** By series. */
  readonly numbers: Map<number, number>
  /** The lowest and the highest of them. */
  first: number
  last: number
}

export class DroppedSeries {
  readonly #after: Statement<unknown[], DroppedRow>
  readonly #put: Statement
  readonly #oldestRun: Statement<unknown[], number | null>
  readonly #forget: Statement
  #byTenant = new Map<number, DroppedOfTenant>()

  constructor(database: Database) {
    this.#after = database.prepare<unknown[], DroppedRow>(
      `select series, tenant, number from dropped where series > ? order by series limit ${ROWS_PER_STEP}`,
    )
    this.#put = database.prepare('insert or replace into dropped values (?, ?, ?)')
    this.#oldestRun = database.prepare<unknown[], number | null>('select min(id) from run where tenant = ?').pluck()
    this.#forget = database.prepare('delete from dropped where series = ?')
    this.load()
  }

  /** Drops what the series of a tenant at these places have in runs below a number, in steps. If it is ended early, some of them are dropped. */
  *dropping(
    tenant: number,
    places: Float64Array,
    { number, catalogue, clock, transact }: DroppingParts,
  ): Generator<undefined, void, void> {
    let isLoaded = false
    try {
      for (let from = 0; from < places.length; from += DROPPED_AT_ONCE) {
        const some = places.subarray(from, from + DROPPED_AT_ONCE)
        transact(() => {
          for (const place of some) this.#put.run(seriesAt(place), tenant, number)
        })
        yield
      }
      transact(() => {
        for (const { file } of catalogue.ofTenant(tenant)) if (file !== null) catalogue.markStale(file, clock())
      })
      yield* this.loading()
      isLoaded = true
    } finally {
      // It was ended early, or failed: what is stored of it holds all the same.
      if (!isLoaded) this.load()
    }
  }

  /** Forgets what is left out everywhere, in steps. */
  *cleaning(transact: (work: () => void) => void): Generator<undefined, void, void> {
    const oldest = new Map<number, number>()
    for (const [tenant, { first }] of this.#byTenant) {
      const run = this.#oldestRun.get(tenant) ?? Number.POSITIVE_INFINITY
      if (first < run) oldest.set(tenant, run)
    }
    if (oldest.size === 0) return
    for (const rows of this.#portions()) {
      const over = rows.filter(({ tenant, number }) => number < (oldest.get(tenant) ?? 0))
      transact(() => {
        for (const { series } of over) this.#forget.run(series)
      })
      yield
    }
    yield* this.loading()
  }

  /** A tenant is removed; its rows go with it. */
  forget(tenant: number): void {
    this.#byTenant.delete(tenant)
  }

  load(): void {
    for (const _ of this.loading());
  }

  /** Reads what is stored, in steps: it holds after the last one. */
  *loading(): Generator<undefined, void, void> {
    const byTenant = new Map<number, DroppedOfTenant>()
    for (const rows of this.#portions()) {
      for (const { series, tenant, number } of rows) {
        const dropped = byTenant.get(tenant) ?? { numbers: new Map(), first: number, last: number }
        byTenant.set(tenant, dropped)
        dropped.numbers.set(series, number)
        dropped.first = Math.min(dropped.first, number)
        dropped.last = Math.max(dropped.last, number)
      }
      yield
    }
    this.#byTenant = byTenant
  }

  /** What is stored, by series. */
  *#portions(): Generator<readonly DroppedRow[], void, void> {
    for (let last = -1; ; ) {
      const rows = this.#after.all(last)
      if (rows.length > 0) yield rows
      if (rows.length < ROWS_PER_STEP) return
      last = rows.at(-1)!.series
    }
  }

  /** Which series of a run are hidden; it stays as it is now. */
  hidden({ tenant, id }: Pick<Run, 'tenant' | 'id'>): IsHidden {
    const { numbers, last = 0 } = this.#byTenant.get(tenant) ?? {}
    return last > id ? (series) => (numbers?.get(series) ?? 0) > id : undefined
  }
}
