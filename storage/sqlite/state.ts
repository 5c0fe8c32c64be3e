/**
 * The tables of channels, users and their rights: rows that rarely change as declared in ../rows.ts, and those of every batch
 * (numbers of channels, GAPs, clocks), which are taken directly from its arrays.
 */
import type { Database, Statement } from 'better-sqlite3'
import { type Batch, CHANNEL_WIDTH, type Change, GAP_WIDTH, type Recovered } from '../store.ts'
import type { AuditChange } from './audit.ts'
import { RowSum } from './damage/checksum.ts'
import { IS_KEPT, inOrder, type Ordered } from './damage/order.ts'
import { NumbersTable } from './numbers.ts'
import type { RemovalsChange } from './removals.ts'
import type { RowTables, RowTablesFound } from './row-tables.ts'

type StoredMeta = Pick<
  Recovered,
  'age' | 'wall' | 'nextBlockId' | 'nextUserId' | 'nextRule' | 'nextTokenId' | 'nextBoardId' | 'secret' | 'generation'
>
/** A change of these tables. */
export type StateChange = Exclude<Change, AuditChange | RemovalsChange>

export const GAP_ORDER: Ordered = { table: 'gap', place: 'transaction_id', width: GAP_WIDTH }

export interface GapsFound {
  /** GAP_WIDTH numbers each, ascending by channel, lane, transaction, id. */
  readonly sound: Float64Array
  /** Rows that do not match their checksum. */
  readonly damaged: readonly number[][]
}

export class StateTables {
  readonly numbers: NumbersTable
  readonly #database: Database
  readonly #rows: RowTables
  readonly #putGap: Statement<unknown[]>
  readonly #removeGap: Statement<unknown[]>
  readonly #putMeta: Statement<unknown[]>
  readonly #putRecovered: Statement<unknown[]>
  readonly #gaps: Statement<unknown[], number[]>
  readonly #setAsideGap: Statement<unknown[]>
  readonly #gapSum = new RowSum(GAP_WIDTH)

  constructor(database: Database, rows: RowTables) {
    this.#database = database
    this.#rows = rows
    this.numbers = new NumbersTable(database)
    this.#putGap = database.prepare(`insert or replace into gap values (${Array(GAP_WIDTH + 1).fill('?')})`)
    this.#removeGap = database.prepare('delete from gap where id = ?')
    this.#putMeta = database.prepare(
      'update meta set age = ?, wall = ?, closed = ?, next_block = max(next_block, ? + 1), progress = progress + ?',
    )
    this.#putRecovered = database.prepare('update meta set restored = 0')
    this.#gaps = database.prepare<unknown[], number[]>(`select * from gap not indexed where ${IS_KEPT}`).raw()
    this.#setAsideGap = database.prepare("insert or ignore into damaged values (?, 'checksum')")
  }

  /** Rows of which a channel or a user may have many are left to removals.ts. */
  change(change: StateChange): void {
    if ('remove' in change) {
      this.#rows.change(change)
      if (change.remove === 'channel') this.numbers.remove(change.id)
    } else if (change.put === 'recovered') this.#putRecovered.run()
    // `store` notes it with the clocks.
    else if (change.put !== 'closed') {
      this.#rows.change(change)
      if (change.put === 'channel') this.numbers.putFirst(change.row.id, change.row.origin)
    }
  }

  /** Stores numbers, GAPs and clocks of a batch. `highest` is the highest block id in it. */
  store(batch: Batch, highest: number): void {
    const { channels, gaps, gapsRemoved, age, wall } = batch
    for (let at = 0; at < channels.length; at += CHANNEL_WIDTH) this.numbers.put(channels, at)
    for (let at = 0; at < gaps.length; at += GAP_WIDTH) {
      this.#putGap.run(...gaps.subarray(at, at + GAP_WIDTH), this.#gapSum.of(gaps, at))
      highest = Math.max(highest, gaps[at]!)
    }
    for (const id of gapsRemoved) this.#removeGap.run(id)
    this.#putMeta.run(age, wall, Number(closes(batch)), highest, Number(isProgress(batch)))
  }

  /** Throws StorageError DAMAGED. */
  recover(): RowTablesFound & StoredMeta {
    const above = (table: string): string => `coalesce((select max(id) from ${table}), 0) + 1`
    const meta = this.#database.prepare<unknown[], StoredMeta>(`
      select age, wall, max(next_block, ${above('block')}, ${above('gap')}) as nextBlockId,
        next_user as nextUserId, next_rule as nextRule, next_token as nextTokenId,
        next_board as nextBoardId, secret, generation
      from meta`)
    return { ...meta.get()!, ...this.#rows.recover() }
  }

  /** Reads all GAPs that are kept. */
  gaps(): GapsFound {
    const rows = this.#gaps.all()
    const sound = rows.filter((row) => this.#gapSum.isRight(row)).flatMap((row) => row.slice(0, GAP_WIDTH))
    const damaged = rows.filter((row) => !this.#gapSum.isRight(row))
    return { sound: inOrder(Float64Array.from(sound), GAP_ORDER), damaged }
  }

  /** GAP ids and block ids are one sequence, so one table holds those set aside. */
  setAsideGaps(ids: readonly number[]): void {
    for (const id of ids) this.#setAsideGap.run(id)
  }
}

function closes({ changes }: Batch): boolean {
  return changes.some((change) => 'put' in change && change.put === 'closed')
}

/** Whether a database without this batch must not go on as if it had it. */
export function isProgress(batch: Batch): boolean {
  return batch.reserves || closes(batch)
}
