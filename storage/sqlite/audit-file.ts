/**
 * Reads the audit log of a database file for verification, without the server or while one is running. Texts are returned as the
 * stored bytes, since different bytes can decode to the same text. Never use this in the process of a server: closing the file
 * would drop the locks of its database.
 */
import type { Database } from 'better-sqlite3'
import type { AuditRow } from '../store.ts'
import { openSqlite } from './driver.ts'
import { refuse, storageError } from './errors.ts'
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts'

type Texts = Exclude<keyof AuditRow, 'number' | 'time' | 'hash'>
/** A record as found, which may have been tampered with. */
export type StoredAuditRecord = { readonly [Column in Texts | 'hash']: Uint8Array | null } & {
  readonly number: number
  readonly time: number
}
/** The last record ever written and the last one removed at the beginning; 0 and null if there is none. */
export interface AuditEnds {
  readonly number: number
  readonly hash: Uint8Array | null
  readonly start: number
  readonly startHash: Uint8Array | null
}

export interface AuditFile {
  /** Undefined if somebody deleted it. */
  readonly ends: AuditEnds | undefined
  /** Ascending by number. */
  readonly records: Iterable<StoredAuditRecord>
}

/** The first format with an audit log. */
const FIRST_FORMAT = 3

/** Calls `read` within one transaction. Throws StorageError. */
export function withAuditFile<T>(path: string, read: (file: AuditFile) => T): T {
  let database: Database | undefined
  try {
    database = openSqlite(path, { readonly: true, fileMustExist: true, timeout: 2_000 })
    database.exec('begin')
    checkFormat(database, path)
    const ends = database
      .prepare<unknown[], AuditEnds>(`
        select audit_number as number, audit_hash as hash, audit_start as start, audit_start_hash as startHash from meta`)
      .get()
    const texts = ['action', 'actor', 'tenant', 'address', 'object', 'args', 'outcome', 'detail']
    const columns = texts.map((text) => `cast(${text} as blob) as ${text}`)
    const records = database.prepare<unknown[], StoredAuditRecord>(
      `select number, time, ${columns.join()}, hash from audit order by number`,
    )
    return read({ ends, records: { [Symbol.iterator]: () => records.iterate() } })
  } catch (error) {
    throw storageError(error, path)
  } finally {
    database?.close()
  }
}

function checkFormat(database: Database, path: string): void {
  if (database.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw refuse('DAMAGED', path, 'it is the database of another program')
  }
  const version = Number(database.pragma('user_version', { simple: true }))
  if (version > MIGRATIONS.length) throw refuse('TOO_NEW', path, `format ${version}`)
  if (version < FIRST_FORMAT) {
    throw refuse(
      'DAMAGED',
      path,
      `format ${version} has no audit log yet: start the server once, it upgrades the database`,
    )
  }
}
