/**
 * Pages on their way to fresh.db, in transactions of about 1 MiB. They belong to runs that the catalogue does not name before the
 * last of these transactions: what a crash leaves of them goes at the next start.
 */
import type { Database } from 'better-sqlite3'
import type { Run, RunHead } from './catalogue.ts'
import type { HistoryPage } from './codec/page.ts'
import { PageInserts } from './page-table.ts'

const TRANSACTION_BYTES = 1 << 20

/** Counts the pages of a run that is being made. */
export class RunTotals {
  readonly #head: RunHead
  #fromMs = Number.POSITIVE_INFINITY
  #toMs = Number.NEGATIVE_INFINITY
  #samples = 0
  #bytes = 0

  constructor(head: RunHead) {
    this.#head = head
  }

  add(page: HistoryPage): void {
    this.#fromMs = Math.min(this.#fromMs, page.from)
    this.#toMs = Math.max(this.#toMs, page.to)
    this.#samples += page.samples
    this.#bytes += page.data.length
  }

  /** The run, in fresh.db or a file; undefined if it has no pages. */
  run(file: number | null): Run | undefined {
    if (this.#samples === 0) return undefined
    return {
      ...this.#head,
      file,
      fromMs: this.#fromMs,
      toMs: this.#toMs,
      samples: this.#samples,
      bytes: this.#bytes,
    }
  }
}

export class FreshPages {
  readonly #database: Database
  readonly #inserts: PageInserts
  #waiting: { readonly run: number; readonly page: HistoryPage }[] = []
  #bytes = 0

  constructor(database: Database) {
    this.#database = database
    this.#inserts = new PageInserts(database)
  }

  put(run: number, page: HistoryPage): void {
    this.#waiting.push({ run, page })
    this.#bytes += page.data.length
  }

  /** Stores what waits, if that is enough for a transaction. */
  store(): void {
    if (this.#bytes >= TRANSACTION_BYTES) this.finish(() => {})
  }

  /** Stores the rest, and what `last` stores, in one transaction. */
  finish(last: () => void): void {
    const transaction = this.#database.transaction(() => {
      for (const { run, page } of this.#waiting) this.#inserts.put(run, page)
      last()
    })
    transaction.immediate()
    this.#waiting = []
    this.#bytes = 0
  }
}
