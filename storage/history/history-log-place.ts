/** Where a history is in the log that the nodes of a cluster share (log/), stored in the transaction of what the record says. */
import type { Database, Statement } from 'better-sqlite3'
import type { LogPlace } from '../replicated/place.ts'

export class HistoryLogPlace {
  /** With everything that was appended; undefined if it is in no log. */
  #place: LogPlace | undefined
  #isChanged = false
  readonly #put: Statement
  readonly #remove: Statement

  constructor(database: Database) {
    this.#put = database.prepare('insert or replace into log values (1, @log, @epoch, @sequence, @hash)')
    this.#remove = database.prepare('delete from log')
    this.#place = database.prepare<unknown[], LogPlace>('select log, epoch, sequence, hash from log').get()
  }

  get place(): LogPlace | undefined {
    return this.#place
  }

  /** With the next commit the history has everything up to there; undefined: it goes on without a log. */
  moveTo(place: LogPlace | undefined): void {
    if (place === undefined && this.#place === undefined) return
    this.#place = place
    this.#isChanged = true
  }

  get isChanged(): boolean {
    return this.#isChanged
  }

  /** In the transaction of the caller. */
  store(): void {
    if (!this.#isChanged) return
    if (this.#place === undefined) this.#remove.run()
    else this.#put.run(this.#place)
  }

  /** The transaction of `store` is durable. */
  stored(): void {
    this.#isChanged = false
  }
}
