/**
 * The log of fresh.db. A query keeps what was written since it began from being written back, so that the log would grow as long as
 * it lasts: queries end when the log is too long.
 */
import type { Database, Statement } from 'better-sqlite3'
import { isBusy, isNoRoom } from '../sqlite/errors.ts'

/** In pages: it is written back when it has 32 MiB. What is deleted until then is never written back. */
const CHECKPOINT_PAGES = 2048

export interface FreshLogParts {
  readonly database: Database
  /** How long it may be while queries keep it. */
  readonly mostBytes: () => number
  /** Ends all queries. */
  readonly endReads: () => void
}

export class FreshLog {
  readonly #parts: FreshLogParts
  readonly #size: Statement<unknown[], number[]>
  readonly #checkpoint: Statement<unknown[], number[]>
  readonly #pageBytes: number

  constructor(parts: FreshLogParts) {
    const { database } = parts
    this.#parts = parts
    this.#size = database.prepare<unknown[], number[]>('pragma wal_checkpoint(noop)').raw()
    this.#checkpoint = database.prepare<unknown[], number[]>('pragma wal_checkpoint(passive)').raw()
    this.#pageBytes = Number(database.pragma('page_size', { simple: true }))
  }

  /** Writes it back if it is large. To be called after transactions. */
  check(): void {
    if (this.#waiting >= CHECKPOINT_PAGES) this.#writeBack()
    const { mostBytes, endReads } = this.#parts
    // What is written back wholly begins anew with the next transaction.
    if (this.#waiting === 0 || this.#written * this.#pageBytes < mostBytes()) return
    endReads()
    this.#writeBack()
  }

  get #written(): number {
    return this.#size.get()?.[1] ?? 0
  }

  /** Pages that are in the log alone. */
  get #waiting(): number {
    const [, written = 0, carried = 0] = this.#size.get() ?? []
    return written - carried
  }

  #writeBack(): void {
    try {
      this.#checkpoint.get()
    } catch (error) {
      // Everything is in the log. Without room for it in the database, it waits there.
      if (!isNoRoom(error) && !isBusy(error)) throw error
    }
  }
}
