/**
 * The pages of a connection: fresh.db, or the file of a day or a month. What is known of a page is read apart from its bytes, so
 * that damage to these costs no more than the page.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { HistoryPage } from './codec/page.ts'

/** What is known of a page without its bytes. */
export interface PageKey {
  readonly id: number
  readonly lo: number
  readonly hi: number
  readonly from: number
  readonly to: number
  readonly samples: number
}

const KEY = 'select id, lo, hi, from_ms as "from", to_ms as "to", samples from page'

export class PageTable {
  readonly #after: Statement<unknown[], PageKey>
  readonly #holding: Statement<unknown[], PageKey>
  readonly #bytes: Statement<unknown[], Pick<HistoryPage, 'checksum' | 'data'>>
  readonly #runs: Statement<unknown[], number | null>

  constructor(database: Database) {
    this.#after = database.prepare<unknown[], PageKey>(
      `${KEY} where run = ? and hi >= ? and (hi > ? or id > ?) order by hi, id limit 1`,
    )
    this.#holding = database.prepare<unknown[], PageKey>(
      `${KEY} where run = ? and hi >= ? and from_ms <= ? and to_ms >= ? order by hi, id limit 1`,
    )
    this.#bytes = database.prepare<unknown[], Pick<HistoryPage, 'checksum' | 'data'>>(
      'select checksum, data from page where id = ?',
    )
    this.#runs = database.prepare<unknown[], number | null>('select min(run) from page where run > ?').pluck()
  }

  /** The next page of a run; the first one after `undefined`. */
  after(run: number, last: PageKey | undefined): PageKey | undefined {
    const { hi, id } = last ?? { hi: -1, id: -1 }
    return this.#after.get(run, hi, hi, id)
  }

  /** The first page of a run with this place, or one after it, and something in a range of time. */
  holding(run: number, place: number, fromMs: number, toMs: number): PageKey | undefined {
    return this.#holding.get(run, place, toMs, fromMs)
  }

  /** A page with its bytes. */
  page(key: PageKey): HistoryPage {
    const bytes = this.#bytes.get(key.id)
    if (bytes === undefined) throw new RangeError(`page ${key.id} is gone`)
    return { ...key, ...bytes }
  }

  /** The runs of all pages, ascending. */
  runs(): number[] {
    const runs: number[] = []
    for (;;) {
      const next = this.#runs.get(runs.at(-1) ?? -1)
      if (next === null || next === undefined) return runs
      runs.push(next)
    }
  }
}

/** Adds pages to the table of a connection. */
export class PageInserts {
  readonly #insert: Statement

  constructor(database: Database) {
    this.#insert = database.prepare('insert into page values (null, ?, ?, ?, ?, ?, ?, ?, ?)')
  }

  put(run: number, { lo, hi, from, to, samples, checksum, data }: HistoryPage): void {
    this.#insert.run(run, lo, hi, from, to, samples, checksum, data)
  }
}
