/**
 * The table of the channels' numbers, one row with a checksum per channel: the values it accepted, and the transaction ids that may
 * have been used. A channel has its row from the start, so a missing row is damage.
 */
import type { Database, Statement } from 'better-sqlite3'
import { CHANNEL_WIDTH } from '../store.ts'
import { RowSum } from './damage/checksum.ts'

/**
 * Ids that each channel skips when transactions are lost: more than a log can have reserved, and few enough that a channel can
 * skip 65,536 times.
 */
export const SKIPPED_IDS = 2 ** 36

/** Columns of a row. */
export const FLOOR = 1
export const NEXT = 2
export const RESERVED = 3

export interface NumbersFound {
  /** Rows of CHANNEL_WIDTH numbers by channel. */
  readonly sound: Map<number, number[]>
  /** Rows that do not match their checksum, by the channel in them. */
  readonly damaged: Map<number, number[]>
}

export class NumbersTable {
  readonly #put: Statement<unknown[]>
  readonly #putFirst: Statement<unknown[]>
  readonly #remove: Statement<unknown[]>
  readonly #removeAll: Statement<unknown[]>
  readonly #all: Statement<unknown[], number[]>
  readonly #sum = new RowSum(CHANNEL_WIDTH)
  /** Reused for every row: a transaction may write ten thousand, and spreading each into arguments is slow. */
  readonly #row: number[] = Array(CHANNEL_WIDTH + 1).fill(0)

  constructor(database: Database) {
    const values = `values (${Array(CHANNEL_WIDTH + 1).fill('?')})`
    this.#put = database.prepare(`insert or replace into numbers ${values}`)
    this.#putFirst = database.prepare(`insert or ignore into numbers ${values}`)
    this.#remove = database.prepare('delete from numbers where channel = ?')
    this.#removeAll = database.prepare('delete from numbers')
    this.#all = database.prepare<unknown[], number[]>('select * from numbers order by channel').raw()
  }

  /** Stores the row at `at`. */
  put(rows: Float64Array, at = 0): void {
    for (let index = 0; index < CHANNEL_WIDTH; index++) this.#row[index] = rows[at + index]!
    this.#row[CHANNEL_WIDTH] = this.#sum.of(rows, at)
    this.#put.run(this.#row)
  }

  /** Stores the row of a channel that has none yet. */
  putFirst(channel: number, origin: number): void {
    const row = firstRow(channel, origin)
    this.#putFirst.run(...row, this.#sum.of(row))
  }

  remove(channel: number): void {
    this.#remove.run(channel)
  }

  /** Rewrites all rows, since one under a wrong channel cannot be found to delete it. */
  replace(rows: Iterable<readonly number[]>): void {
    this.#removeAll.run()
    for (const row of rows) this.put(Float64Array.from(row))
  }

  read(): NumbersFound {
    const found: NumbersFound = { sound: new Map(), damaged: new Map() }
    for (const row of this.#all.all()) {
      const rows = this.#sum.isRight(row) ? found.sound : found.damaged
      rows.set(row[0]!, row.slice(0, CHANNEL_WIDTH))
    }
    return found
  }

  /** Called when transactions are lost: ids that may have been used in them are never used again. */
  skip(): void {
    for (const row of this.read().sound.values()) {
      row[RESERVED] = Math.max(row[RESERVED]!, row[NEXT]!) + SKIPPED_IDS
      this.put(Float64Array.from(row))
    }
  }
}

/** The floor is 0 until the channel has stored something. */
function firstRow(channel: number, origin: number): number[] {
  const row = Array<number>(CHANNEL_WIDTH).fill(0)
  return row.with(0, channel).with(NEXT, origin).with(RESERVED, origin)
}

/** Whether a row is still the first one of its channel. */
export function isFirst(row: readonly number[]): boolean {
  return row[FLOOR] === 0 && row[RESERVED] === row[NEXT]
}
