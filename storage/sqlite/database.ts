/**
 * Opens the database of a data directory: takes the lock, reads the header without touching anything, then opens it with SQLite.
 * The lock is an exclusive transaction on a separate file, which the kernel drops with the process; a pid file would survive
 * SIGKILL. Never open lock.db or the database otherwise in this process: closing them drops the locks.
 */
import { closeSync, existsSync, mkdirSync, openSync, readSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import { DATABASE_FILE } from '../store.ts'
import { examineLog, type LogFinding } from './damage/log.ts'
import { openSqlite } from './driver.ts'
import { codeOf, isBusy, isDiskFailure, isNoRoom, isUnreadable, refuse, storageError } from './errors.ts'
import { Generation } from './generation.ts'
import { LogPlaces } from './log-places.ts'
import { APPLICATION_ID, MIGRATIONS, migrate } from './migrations.ts'
import { NumbersTable } from './numbers.ts'

export const LOCK_FILE = 'lock.db'
/** The time that a server being killed may take to exit. */
const LOCK_WAIT_MS = 500
/** The time that another reader of the database may delay a transaction before it is retried. */
const BUSY_WAIT_MS = 2_000
export const PAGE_BYTES = 16_384
/** SQLite's number for auto_vacuum = incremental. */
const INCREMENTAL = 2
const WAL_LIMIT_BYTES = 64 * 1024 * 1024

export interface DatabaseOptions {
  /** Created with mode 0700 if it does not exist. */
  readonly directory: string
  /** With `full` a commit returns after fsync. With `normal` a power cut may lose the last transactions; a crash does not. */
  readonly synchronous?: 'full' | 'normal'
  /** The maximum size of the database in pages of 16 KiB; beyond it the disk counts as full. By default there is none. */
  readonly maxPages?: number
  /** The operator says that the database is older than what was last served, which nothing else shows. */
  readonly restored?: boolean
  /** The database belongs to a node of a cluster: if it is at a place in the log, the log says what is missing. */
  readonly replicated?: boolean
}

export interface OpenDatabase {
  readonly database: Database
  readonly path: string
  readonly log: LogFinding
  readonly generation: Generation
  /** Called after everything was read: from now on the shutdown counts as unclean until the store says otherwise. */
  begin(): void
  /** Closes the database, then drops the lock. With `untouched` the log stays as it is, without a checkpoint. */
  close(untouched?: 'untouched'): void
}

/** Takes the lock, opens and migrates the database. Throws StorageError, and then leaves nothing open. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const { directory } = options
  const path = join(directory, DATABASE_FILE)
  const lock = takeLock(directory)
  let database: Database | undefined
  try {
    checkHeader(path)
    const log = examineLog(path)
    database = openSqlite(path, { timeout: BUSY_WAIT_MS })
    const { isNew, isReplica } = prepare(database, options, { path, log })
    const opened = database
    const { restored = false } = options
    const generation = new Generation(database, { directory, isNew, restored, isReplica })
    const close = (untouched?: 'untouched'): void => {
      closeDatabase(opened, path, untouched !== undefined)
      generation.close()
      lock.close()
    }
    return { database, path, log, generation, begin: () => begin(generation), close }
  } catch (error) {
    // After a failed fsync a checkpoint would be a retry.
    if (database !== undefined) closeDatabase(database, path, isUnreadable(error) || isDiskFailure(error))
    lock.close()
    throw storageError(error, path)
  }
}

/**
 * Closes the database. The last connection to close checkpoints the log and deletes it; a read-only connection cannot, so with
 * one still open, and closed last, the log stays.
 */
function closeDatabase(database: Database, path: string, untouched: boolean): void {
  const reader = untouched ? holdLog(path) : undefined
  database.close()
  reader?.close()
}

function holdLog(path: string): Database {
  const reader = openSqlite(path, { readonly: true, timeout: BUSY_WAIT_MS })
  try {
    reader.pragma('data_version')
    reader.pragma('schema_version')
  } catch (error) {
    // It holds its lock even on a database that it cannot read.
    if (!codeOf(error).startsWith('SQLITE')) throw error
  }
  return reader
}

function begin(generation: Generation): void {
  try {
    generation.begin()
  } catch (error) {
    // Stored values can be served from a full disk; the first batch reports that it is full.
    if (!isNoRoom(error)) throw error
  }
}

/** Creates one level at a time: Node's recursive mkdir never ends if an existing parent reports ENOENT, as /proc does. */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return
  makeDirectory(dirname(directory))
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    // Another server may have been faster.
    if (!existsSync(directory)) throw error
  }
}

/** Makes the directory if it is missing. Throws StorageError LOCKED if a server uses it. */
export function takeLock(directory: string): Database {
  let lock: Database | undefined
  try {
    makeDirectory(resolve(directory))
    const path = join(directory, LOCK_FILE)
    // SQLite would let everybody read it. A file that exists is not opened here: closing it drops the lock of its holder.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    lock = openSqlite(path, { timeout: LOCK_WAIT_MS })
    lock.pragma('journal_mode = memory')
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock?.close()
    if (isBusy(error)) throw refuse('LOCKED', directory)
    throw storageError(error, directory)
  }
}

/** Reads the header as bytes: merely opening a WAL database may write to it. Creates the file, mode 0600. Throws StorageError. */
export function checkHeader(path: string): void {
  const header = Buffer.alloc(100)
  const file = existsSync(path) ? openSync(path, 'r') : openSync(path, 'a+', 0o600)
  try {
    if (readSync(file, header, 0, header.length, 0) === 0) return
  } finally {
    closeSync(file)
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw refuse('DAMAGED', path, 'it does not begin like an SQLite database')
  }
  const version = header.readUInt32BE(60)
  const application = header.readUInt32BE(68)
  // Both are 0 if the first start ended before the first migration.
  if (application !== APPLICATION_ID && (application !== 0 || version !== 0)) {
    throw refuse('DAMAGED', path, 'it is the database of another program')
  }
  checkVersion(version, path)
}

function checkVersion(version: number, path: string): void {
  if (version <= MIGRATIONS.length) return
  throw refuse('TOO_NEW', path, `format ${version}; this version supports formats up to ${MIGRATIONS.length}`)
}

interface Prepared {
  /** The database did not exist before. */
  readonly isNew: boolean
  /** It is at a place in the log of a cluster. */
  readonly isReplica: boolean
}

function prepare(
  database: Database,
  { synchronous = 'full', maxPages, replicated = false }: DatabaseOptions,
  { path, log }: { readonly path: string; readonly log: LogFinding },
): Prepared {
  // The next two have an effect only while the file is empty.
  database.pragma(`page_size = ${PAGE_BYTES}`)
  // Lets free pages be returned to the disk, at no measurable cost. Setting it again would write to the file.
  if (database.pragma('auto_vacuum', { simple: true }) !== INCREMENTAL) database.pragma('auto_vacuum = incremental')
  database.pragma('journal_mode = wal')
  // Set explicitly: better-sqlite3 is compiled with NORMAL for WAL.
  database.pragma(`synchronous = ${synchronous}`)
  // Only for macOS, where fsync alone does not reach the disk.
  database.pragma('fullfsync = on')
  database.pragma('checkpoint_fullfsync = on')
  // The writer runs checkpoints after it has reported what is durable, and sees their errors, which SQLite would hide.
  database.pragma('wal_autocheckpoint = 0')
  database.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`)
  database.pragma('foreign_keys = off')
  database.pragma('cell_size_check = on')
  if (maxPages !== undefined) database.pragma(`max_page_count = ${maxPages}`)
  // A newer version that ended before its first checkpoint left its number in the log.
  const version = Number(database.pragma('user_version', { simple: true }))
  checkVersion(version, path)
  // This must be the first write, in one transaction: once the log has grown it looks complete again.
  const isReplica = (): boolean => replicated && new LogPlaces(database).place.log > 0
  const skipping = database.transaction(() => {
    migrate(database)
    if (!isReplica()) new NumbersTable(database).skip()
  })
  if (log.short) skipping.immediate()
  else migrate(database)
  return { isNew: version === 0, isReplica: isReplica() }
}
