/**
 * The table of the audit log. `meta` holds its ends: the last record ever written, so that nobody can truncate the log unnoticed,
 * and the last one removed at the beginning, whose hash the first kept record continues.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { AuditRow, Change, Recovered } from '../store.ts'
import { RowTable } from './row-table.ts'

type Audited = Pick<AuditRow, 'number' | 'hash'>
interface Ends {
  readonly number: number
  readonly hash: Uint8Array | null
  readonly start: number
}
export type AuditChange = Extract<Change, { put: 'audit' } | { remove: 'audit' }>

export interface AuditFound extends Pick<Recovered, 'audited'> {
  readonly warnings: readonly string[]
}

export class AuditTable {
  readonly #records: RowTable<AuditRow>
  readonly #setEnd: Statement<unknown[]>
  readonly #setStart: Statement<unknown[]>
  readonly #remove: Statement<unknown[]>
  readonly #read: (after: number, limit: number) => AuditRow[]
  readonly #lastUpTo: Statement<unknown[], Audited>
  readonly #ends: Statement<unknown[], Ends>

  constructor(database: Database) {
    this.#records = new RowTable(database, 'audit')
    this.#setEnd = database.prepare('update meta set audit_number = ?, audit_hash = ?')
    this.#setStart = database.prepare('update meta set audit_start = ?, audit_start_hash = ?')
    this.#remove = database.prepare('delete from audit where number <= ?')
    this.#read = this.#records.selection('where number > ? order by number limit ?')
    this.#lastUpTo = database.prepare('select number, hash from audit where number <= ? order by number desc limit 1')
    this.#ends = database.prepare('select audit_number as number, audit_hash as hash, audit_start as start from meta')
  }

  change(change: AuditChange): void {
    if ('put' in change) {
      this.#records.put(change.row)
      this.#setEnd.run(change.row.number, change.row.hash)
      return
    }
    const last = this.#lastUpTo.get(change.through)
    if (last === undefined) return
    this.#setStart.run(last.number, last.hash)
    this.#remove.run(change.through)
  }

  /** Reads records above number `after`, ascending, at most `limit`. Throws StorageError DAMAGED. */
  read(after: number, limit: number): AuditRow[] {
    return this.#read(after, limit)
  }

  /** Continues after the last record ever written, even if it is missing: no number is reused, so the break stays visible. */
  recover(): AuditFound {
    const last = this.#lastUpTo.get(Number.MAX_SAFE_INTEGER)
    const { number, hash, start } = this.#ends.get()!
    const said = hash === null ? undefined : { number, hash }
    if (last === undefined && (said === undefined || number === start)) return { audited: said, warnings: [] }
    const isWhole = last?.number === number && hash !== null && Buffer.compare(last.hash, hash) === 0
    const warning = 'the audit log does not end with the record that was written last: see `cinnabar audit verify`'
    const isAhead = said === undefined || (last !== undefined && last.number > said.number)
    return { audited: isAhead ? last : said, warnings: isWhole ? [] : [warning] }
  }
}
