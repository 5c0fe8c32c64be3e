/** The place of this database in the log of its cluster, and what tells a database that is in none from another one. */
import { createHash } from 'node:crypto'
import type { Database, Statement } from 'better-sqlite3'
import { type LogPlace, RECORD_HASH_BYTES } from '../replicated/place.ts'

/** The place of a database that never stored anything. */
export const NOWHERE: LogPlace = { log: 0, epoch: 0, sequence: 0, hash: new Uint8Array(RECORD_HASH_BYTES) }

interface Stored {
  readonly age: number
  readonly wall: number
  readonly secret: Uint8Array
}

export class LogPlaces {
  readonly #get: Statement<unknown[], LogPlace>
  readonly #put: Statement<unknown[]>
  readonly #leave: Statement<unknown[]>
  readonly #meta: Statement<unknown[], Stored>

  constructor(database: Database) {
    this.#get = database.prepare<unknown[], LogPlace>('select log, epoch, sequence, hash from log')
    this.#put = database.prepare('insert or replace into log values (1, @log, @epoch, @sequence, @hash)')
    this.#leave = database.prepare('delete from log')
    this.#meta = database.prepare<unknown[], Stored>('select age, wall, secret from meta')
  }

  /**
   * A database that is in no log has the place (0, 0, 1) if it has stored anything, with a hash of its last batch and its secret:
   * a log that is founded with it begins there, and with no other database.
   */
  get place(): LogPlace {
    const stored = this.#get.get()
    if (stored !== undefined) return stored
    const { age, wall, secret } = this.#meta.get() as Stored
    if (wall === 0) return NOWHERE
    const hash = createHash('sha256')
      .update(secret)
      .update(JSON.stringify([age, wall]))
      .digest()
    return { ...NOWHERE, sequence: 1, hash }
  }

  /** To be called in the transaction of the record at this place. */
  put(place: LogPlace): void {
    this.#put.run(place)
  }

  /** The database is served without the cluster from now on, and so will have what the log has not. */
  leave(): void {
    if (this.#get.get() !== undefined) this.#leave.run()
  }
}
