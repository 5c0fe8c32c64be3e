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

export class DroppedSeries {
  readonly #after: Statement<unknown[], DroppedRow>
  readonly #put: Statement
  readonly #forget: Statement
  /** By tenant, then by series. */
  #numbers = new Map<number, Map<number, number>>()

  constructor(database: Database) {
    this.#after = database.prepare<unknown[], DroppedRow>(
      `select series, tenant, number from dropped where series > ? order by series limit ${ROWS_PER_STEP}`,
    )
    this.#put = database.prepare('insert or replace into dropped values (?, ?, ?)')
    this.#forget = database.prepare(
      'delete from dropped where number < (select coalesce(min(id), number + 1) from run where run.tenant = dropped.tenant)',
    )
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

  /** Forgets what is left out everywhere. */
  clean(): void {
    if (this.#numbers.size > 0 && this.#forget.run().changes > 0) this.load()
  }

  load(): void {
    for (const _ of this.loading());
  }

  /** Reads what is stored, in steps: it holds after the last one. */
  *loading(): Generator<undefined, void, void> {
    const byTenant = new Map<number, Map<number, number>>()
    for (let last = -1; ; yield) {
      const rows = this.#after.all(last)
      for (const { series, tenant, number } of rows) {
        const numbers = byTenant.get(tenant) ?? new Map<number, number>()
        byTenant.set(tenant, numbers.set(series, number))
      }
      if (rows.length < ROWS_PER_STEP) break
      last = rows.at(-1)!.series
    }
    this.#numbers = byTenant
  }

  /** Which series of a run are hidden; it stays as it is now. */
  hidden({ tenant, id }: Pick<Run, 'tenant' | 'id'>): IsHidden {
    const numbers = this.#numbers.get(tenant)
    if (numbers === undefined) return undefined
    let last = 0
    for (const number of numbers.values()) last = Math.max(last, number)
    return last > id ? (series) => (numbers.get(series) ?? 0) > id : undefined
  }
}
