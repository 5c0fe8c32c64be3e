/**
 * Opens fresh.db and the files of days and months. A file that a newer version has written, or that belongs to something else, is
 * recognised by its header and left as it is. Whoever opens the history holds the lock of the data directory.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { openSqlite } from '../sqlite/driver.ts'
import { codeOf, isBusy, isNoRoom } from '../sqlite/errors.ts'
import { syncDirectory } from '../sqlite/generation.ts'
import { StorageError, type StorageErrorCode } from '../store.ts'
import { HISTORY_APPLICATION_ID, HISTORY_MIGRATIONS, makeFileTables, migrateHistory } from './migrations.ts'
import { FILE_NAMES } from './periods.ts'
import { HistoryReadError } from './store.ts'

export const FRESH_FILE = 'fresh.db'
const FRESH_PAGE_BYTES = 16_384
/** Blobs of pages fill the pages of SQLite after their first one: smaller ones waste less. */
const FILE_PAGE_BYTES = 4_096
/** SQLite's number for auto_vacuum = incremental. */
const INCREMENTAL = 2
export const WAL_LIMIT_BYTES = 64 * 1024 * 1024
/** Another program may look at fresh.db. */
const BUSY_WAIT_MS = 2_000

/** What the history does with files besides SQLite; tests let it fail. */
export interface HistoryDisk {
  open(path: string, options?: { readonly readonly?: boolean; readonly timeout?: number }): Database
  /** Makes the content of a file, or the names in a directory, durable. */
  sync(path: string): void
  syncDirectory(path: string): void
  remove(path: string): void
}

export const realDisk: HistoryDisk = {
  open: (path, options = {}) => openSqlite(path, options),
  sync(path) {
    const file = openSync(path, 'r')
    try {
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  },
  syncDirectory,
  remove: (path) => rmSync(path, { force: true }),
}

/** Opens fresh.db, which is made if it is missing. Throws StorageError, and then leaves nothing open. */
export function openFresh(disk: HistoryDisk, directory: string): Database {
  const path = join(directory, FRESH_FILE)
  let database: Database | undefined
  try {
    const made = mkdirSync(directory, { recursive: true, mode: 0o700 })
    // What is acknowledged must not go with the name of its directory.
    if (made !== undefined) disk.syncDirectory(dirname(made))
    if (!existsSync(path)) checkAlone(directory)
    checkFile(path)
    database = disk.open(path, { timeout: BUSY_WAIT_MS })
    database.pragma(`page_size = ${FRESH_PAGE_BYTES}`)
    if (database.pragma('auto_vacuum', { simple: true }) !== INCREMENTAL) database.pragma('auto_vacuum = incremental')
    database.pragma('journal_mode = wal')
    database.pragma('synchronous = full')
    database.pragma('fullfsync = on')
    database.pragma('checkpoint_fullfsync = on')
    database.pragma('wal_autocheckpoint = 0')
    database.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`)
    database.pragma('cell_size_check = on')
    database.pragma('cache_size = -8192')
    checkVersion(Number(database.pragma('user_version', { simple: true })), path)
    migrateHistory(database)
    return database
  } catch (error) {
    database?.close()
    throw historyError(error, path)
  }
}

/** Without the catalogue the files would count as those that nobody names, and be removed. */
function checkAlone(directory: string): void {
  const file = readdirSync(directory).find((name) => FILE_NAMES.test(name))
  if (file === undefined) return
  const advice = `restore ${FRESH_FILE} with them, or move the files of days and months away to begin a new history`
  throw new StorageError(
    'DAMAGED',
    `${FRESH_FILE} is missing in ${directory}, and nothing else says what ${file} and the files beside it have: ${advice}`,
  )
}

/** A second connection to fresh.db that sees one state as long as its transaction lasts. */
export function openReader(disk: HistoryDisk, directory: string): Database {
  const database = disk.open(join(directory, FRESH_FILE), { readonly: true, timeout: BUSY_WAIT_MS })
  database.pragma('cache_size = -2048')
  return database
}

/** Removes a file that nobody names. If that is not possible now, the next start does it. */
export function removeUnnamed(disk: HistoryDisk, path: string): void {
  try {
    disk.remove(path)
  } catch {}
}

/** Removes files of days and months that nobody names. */
export function removeOrphans(disk: HistoryDisk, directory: string, named: ReadonlySet<string>): void {
  for (const name of readdirSync(directory)) {
    if (FILE_NAMES.test(name) && !named.has(name)) removeUnnamed(disk, join(directory, name))
  }
}

/** A new file of a day or a month. It is durable only after `disk.sync`. */
export function makeFile(disk: HistoryDisk, path: string): Database {
  closeSync(openSync(path, 'wx', 0o600))
  const database = disk.open(path)
  database.pragma(`page_size = ${FILE_PAGE_BYTES}`)
  database.pragma('journal_mode = off')
  database.pragma('synchronous = off')
  database.pragma('cache_size = -1024')
  database.exec('begin')
  makeFileTables(database)
  return database
}

/** A file of a day or a month, which nobody writes. Throws StorageError. */
export function openFile(disk: HistoryDisk, path: string): Database {
  try {
    // `existsSync` is false also where the disk fails.
    if (statSync(path, { throwIfNoEntry: false }) === undefined) throw damagedHistory(path, 'it is missing')
    checkFile(path)
    const database = disk.open(path, { readonly: true })
    database.pragma('cache_size = -256')
    return database
  } catch (error) {
    throw historyError(error, path)
  }
}

/** Reads the header as bytes: merely opening a database may write to it. Creates a file that is missing, mode 0600. */
function checkFile(path: string): void {
  const isNew = !existsSync(path)
  if (!isNew && statSync(path).size === 0) return
  const header = Buffer.alloc(100)
  const file = openSync(path, isNew ? 'a+' : 'r', 0o600)
  try {
    if (readSync(file, header, 0, header.length, 0) === 0) return
  } finally {
    closeSync(file)
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw damagedHistory(path, 'it does not begin like an SQLite database')
  }
  const version = header.readUInt32BE(60)
  const application = header.readUInt32BE(68)
  // Both are 0 if the first start ended before the first checkpoint.
  if (application !== HISTORY_APPLICATION_ID && (application !== 0 || version !== 0)) {
    throw damagedHistory(path, 'it is the database of another program')
  }
  checkVersion(version, path)
}

function checkVersion(version: number, path: string): void {
  if (version <= HISTORY_MIGRATIONS.length) return
  const reason = `format ${version}; this version supports formats up to ${HISTORY_MIGRATIONS.length}`
  throw new StorageError(
    'TOO_NEW',
    `${path} was written by a newer version (${reason}) and was not touched: run that version, or restore a backup`,
  )
}

/** A file that is not as it was written. */
export function damagedHistory(path: string, reason: string): StorageError {
  return new StorageError('DAMAGED', messages.DAMAGED(path, reason))
}

type HistoryErrorCode = Extract<StorageErrorCode, 'DAMAGED' | 'FULL' | 'IO' | 'LOCKED' | 'NOT_WRITABLE'>

const messages: Record<HistoryErrorCode, (path: string, reason: string) => string> = {
  DAMAGED: (path, reason) =>
    `the history in ${path} cannot be read (${reason}) and was left as it is: see docs/storage.md`,
  FULL: (path, reason) => `no space left on the disk of the history in ${path} (${reason}): free some space`,
  LOCKED: (path, reason) => `another program holds a lock on the history in ${path} (${reason}): end it`,
  IO: (path, reason) =>
    `storing the history in ${path} failed (${reason}): check the disk and the system log, then start again`,
  NOT_WRITABLE: (path, reason) =>
    `cannot write the history to ${path} (${reason}): let the user that runs this server write there`,
}

/** `path` is the file or directory that the error is about. */
export function historyError(error: unknown, path: string): StorageError {
  if (error instanceof StorageError) return error
  const code = classify(error)
  return new StorageError(code, messages[code](path, error instanceof Error ? error.message : String(error)), error)
}

/** What was read is not what was written. Any other error of the disk says that it could not be read, which may pass. */
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB|IOERR_SHORT_READ|IOERR_CORRUPTFS|IOERR_DATA)/

/** The disk has failed. */
const DISK = /^(SQLITE_IOERR|EIO)/
/** A file cannot be opened: too many are open, or somebody has changed who may read it. */
const NOT_OPENED = /^(SQLITE_CANTOPEN|EMFILE|ENFILE|EACCES|EPERM)/

/** Whether the disk could not read something, which counts as damage if it stays so. */
export function isOfDisk(error: unknown): boolean {
  const cause = causeOf(error)
  return DISK.test(codeOf(cause)) && !isNoRoom(cause)
}

/** Why something could not be read that may be read later; undefined if the error is another one. */
export function readFailure(error: unknown, path: string): HistoryReadError | undefined {
  if (error instanceof StorageError && error.code === 'TOO_NEW') return new HistoryReadError(error.message)
  const cause = causeOf(error)
  const reason = cause instanceof Error ? cause.message : String(cause)
  if (isOfDisk(error))
    return new HistoryReadError(
      `the disk could not read the history in ${path} (${reason}): check it and the system log`,
    )
  if (!NOT_OPENED.test(codeOf(cause))) return undefined
  return new HistoryReadError(
    `the history in ${path} cannot be opened (${reason}): let the user that runs this server read it, and open as many files as it needs`,
  )
}

function causeOf(error: unknown): unknown {
  return error instanceof StorageError ? error.cause : error
}

function classify(error: unknown): HistoryErrorCode {
  if (isNoRoom(error)) return 'FULL'
  if (isBusy(error)) return 'LOCKED'
  if (DAMAGE.test(codeOf(error))) return 'DAMAGED'
  return /^(SQLITE_(READONLY|CANTOPEN|PERM)|EACCES|EPERM|EROFS|ENOTDIR)/.test(codeOf(error)) ? 'NOT_WRITABLE' : 'IO'
}

/** What fresh.db takes of the disk, with its log. */
export function freshBytesIn(directory: string): number {
  const fresh = join(directory, FRESH_FILE)
  const size = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return size(fresh) + size(`${fresh}-wal`)
}
