/**
 * Opens the database of a data directory: the lock first, then a look at the header that touches nothing, then SQLite.
 * The lock is an exclusive transaction on a file of its own, which the kernel drops with the process: a pid file would
 * survive SIGKILL. Never open lock.db or the database by other means in this process: closing them drops the locks.
 */
import { closeSync, existsSync, mkdirSync, openSync, readSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { examineLog, type LogFinding } from './damage/log.ts'
import { codeOf, isBusy, isNoRoom, isUnreadable, refuse, storageError } from './errors.ts'
import { APPLICATION_ID, MIGRATIONS, migrate } from './migrations.ts'
import { NumbersTable } from './numbers.ts'

export const DATABASE_FILE = 'cinnabar.db'
const LOCK_FILE = 'lock.db'
/** How long a server that is just being killed may take to go. */
const LOCK_WAIT_MS = 500
/** How long a person's own look at the database may hold up a transaction before it is tried anew. */
const BUSY_WAIT_MS = 2_000
export const PAGE_BYTES = 16_384
/** How SQLite names that mode in numbers. */
const INCREMENTAL = 2
const WAL_LIMIT_BYTES = 64 * 1024 * 1024

export interface DatabaseOptions {
  /** Made if it is not there, mode 0700. */
  readonly directory: string
  /** `full`: a commit returns after fsync. `normal`: a power cut may take back the last transactions, a crash not. */
  readonly synchronous?: 'full' | 'normal'
  /** Bound of the database in pages of 16 KiB; beyond it the disk counts as full. Default: none. */
  readonly maxPages?: number
}

export interface OpenDatabase {
  readonly database: Database.Database
  readonly path: string
  readonly log: LogFinding
  /** What is in it could be read: from now on the end is not a clean one until the store says so. */
  begin(): void
  /** Closes the database, then drops the lock. `untouched`: the log stays, and nothing of it is carried over. */
  close(untouched?: 'untouched'): void
}

/** Takes the lock, opens, migrates. Throws StorageError; then nothing is left open. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const { directory } = options
  const path = join(directory, DATABASE_FILE)
  const lock = takeLock(directory)
  let database: Database.Database | undefined
  try {
    checkHeader(path)
    const log = examineLog(path)
    database = new Database(path, { timeout: BUSY_WAIT_MS })
    prepare(database, options, { path, log })
    const opened = database
    const close = (untouched?: 'untouched'): void => {
      closeDatabase(opened, path, untouched !== undefined)
      lock.close()
    }
    return { database, path, log, begin: () => begin(opened), close }
  } catch (error) {
    if (database !== undefined) closeDatabase(database, path, isUnreadable(error))
    lock.close()
    throw storageError(error, path)
  }
}

/**
 * The last connection to close carries the log over and deletes it. One that reads only cannot, so while it is there,
 * and when it goes, everything stays as it is.
 */
function closeDatabase(database: Database.Database, path: string, untouched: boolean): void {
  const reader = untouched ? holdLog(path) : undefined
  database.close()
  reader?.close()
}

function holdLog(path: string): Database.Database {
  const reader = new Database(path, { readonly: true, timeout: BUSY_WAIT_MS })
  try {
    reader.pragma('data_version')
    reader.pragma('schema_version')
  } catch (error) {
    // It holds its lock all the same, also on what it cannot read.
    if (!codeOf(error).startsWith('SQLITE')) throw error
  }
  return reader
}

function begin(database: Database.Database): void {
  try {
    database.exec('update meta set closed = 0')
  } catch (error) {
    // What is stored can be read and served on a full disk; the first batch will tell.
    if (!isNoRoom(error)) throw error
  }
}

/** One level at a time: Node's recursive mkdir never ends where a parent that is there says ENOENT, as /proc does. */
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

function takeLock(directory: string): Database.Database {
  let lock: Database.Database | undefined
  try {
    makeDirectory(resolve(directory))
    lock = new Database(join(directory, LOCK_FILE), { timeout: LOCK_WAIT_MS })
    lock.pragma('journal_mode = memory')
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock?.close()
    if (isBusy(error)) throw refuse('LOCKED', directory)
    throw storageError(error, directory)
  }
}

/** Reads the header as bytes: merely opening a WAL database may write to it. Creates the file, mode 0600. */
function checkHeader(path: string): void {
  const header = Buffer.alloc(100)
  const file = existsSync(path) ? openSync(path, 'r') : openSync(path, 'a+', 0o600)
  try {
    if (readSync(file, header, 0, header.length, 0) === 0) return
  } finally {
    closeSync(file)
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw refuse('DAMAGED', path, 'it does not begin as an SQLite database does')
  }
  const version = header.readUInt32BE(60)
  const application = header.readUInt32BE(68)
  // 0 and 0: the first start ended before the first migration.
  if (application !== APPLICATION_ID && (application !== 0 || version !== 0)) {
    throw refuse('DAMAGED', path, 'it is the database of another program')
  }
  checkVersion(version, path)
}

function checkVersion(version: number, path: string): void {
  if (version <= MIGRATIONS.length) return
  throw refuse('TOO_NEW', path, `format ${version}, this version knows formats up to ${MIGRATIONS.length}`)
}

function prepare(
  database: Database.Database,
  { synchronous = 'full', maxPages }: DatabaseOptions,
  { path, log }: { readonly path: string; readonly log: LogFinding },
): void {
  // These two count only while the file is empty.
  database.pragma(`page_size = ${PAGE_BYTES}`)
  // What was freed can be given back to the disk; costs nothing that could be measured. Said again it would be written.
  if (database.pragma('auto_vacuum', { simple: true }) !== INCREMENTAL) database.pragma('auto_vacuum = incremental')
  database.pragma('journal_mode = wal')
  // Said explicitly: better-sqlite3 is compiled with NORMAL for WAL.
  database.pragma(`synchronous = ${synchronous}`)
  // Elsewhere without effect; on macOS fsync alone does not reach the disk.
  database.pragma('fullfsync = on')
  database.pragma('checkpoint_fullfsync = on')
  // The writer checkpoints itself: after it has told what is durable, and seeing the errors. SQLite would hide them.
  database.pragma('wal_autocheckpoint = 0')
  database.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`)
  database.pragma('foreign_keys = off')
  database.pragma('cell_size_check = on')
  if (maxPages !== undefined) database.pragma(`max_page_count = ${maxPages}`)
  // A newer version that ended before its first checkpoint left its number in the log.
  const version = Number(database.pragma('user_version', { simple: true }))
  checkVersion(version, path)
  // The first that is written, and all at once: when the log has grown it looks whole again.
  const skipping = database.transaction(() => {
    migrate(database)
    new NumbersTable(database).skip()
  })
  if (log.short) skipping.immediate()
  else migrate(database)
}
