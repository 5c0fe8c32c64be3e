/**
 * The order of blocks and GAPs. Their tables are read row by row and sorted here, then compared with their indexes. An index that
 * differs would fail every transaction that removes such a row, so it is rebuilt.
 */
import type { Database } from 'better-sqlite3'

/** A condition on rows of both tables, whose ids are one sequence: they are neither set aside nor marked for removal. */
export const IS_KEPT = `
  id not in (select id from damaged) and id not in (select id from removal where subject = 'block')
  and channel not in (select id from removal where subject = 'channel')`

/** A table whose rows begin with id, channel, lane and transaction id. */
export interface Ordered {
  readonly table: 'block' | 'gap'
  /** The column of the transaction id. */
  readonly place: 'first' | 'transaction_id'
  /** The number of columns in a row. */
  readonly width: number
}

/** Sorts rows by channel, lane, transaction id and id. */
export function inOrder(rows: Float64Array, { width }: Pick<Ordered, 'width'>): Float64Array {
  const starts = Array.from({ length: rows.length / width }, (_, row) => row * width)
  const by = (a: number, b: number, column: number): number => rows[a + column]! - rows[b + column]!
  starts.sort((a, b) => by(a, b, 1) || by(a, b, 2) || by(a, b, 3) || by(a, b, 0))
  const sorted = new Float64Array(rows.length)
  for (const [row, start] of starts.entries()) sorted.set(rows.subarray(start, start + width), row * width)
  return sorted
}

/** Whether the index has exactly these rows, in this order. Rows that are not kept do not count. */
export function isIndexed(database: Database, rows: Float64Array, ordered: Ordered): boolean {
  let at = 0
  for (const row of indexOf(database, ordered).iterate()) {
    if (row.some((number, column) => number !== rows[at + column])) return false
    at += ordered.width
  }
  return at === rows.length
}

/** The channels of rows that are in the index but no longer in the table. */
export function channelsOfMissing(database: Database, rows: Float64Array, ordered: Ordered): number[] {
  const there = new Set(rows.filter((_, index) => index % ordered.width === 0))
  return [...indexOf(database, ordered).all()].filter(([id]) => !there.has(id!)).map((row) => row[1]!)
}

function indexOf(database: Database, { table, place }: Ordered) {
  return database
    .prepare<unknown[], number[]>(`
      select id, channel, lane, ${place} from ${table} indexed by ${table}_order
      where ${IS_KEPT} order by channel, lane, ${place}, id`)
    .raw()
}
