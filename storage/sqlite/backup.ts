/**
 * Copies of the whole database: `backUp` makes one while the server runs, `restoreBackup` puts one in the place of the
 * database. A server that starts with a copy begins a new generation of transaction ids (generation.ts).
 */
import {
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import type { BackupProgress } from '../store.ts'
import { checkHeader, DATABASE_FILE, PAGE_BYTES, takeLock } from './database.ts'
import { freeBytes } from './disk-space.ts'
import { refuse, storageError } from './errors.ts'
import { syncDirectory } from './generation.ts'
import { APPLICATION_ID, migrate } from './migrations.ts'

/** The files of a database. */
const ENDS = ['', '-wal', '-shm', '-journal']
/** What has to be left on the disk of a backup: the server itself needs it for its log and its reserve. */
const SPARE_BYTES = 128 * 1024 * 1024
/** The end of the name of a copy that is not complete. */
export const PART = '.part'
/** Pages copied between two messages of the server, which takes about a millisecond. */
const STEP_PAGES = 64

export interface BackUpOptions {
  readonly progress: (progress: BackupProgress) => void
  /** Whether the backup is to be abandoned. */
  readonly isCancelled: () => boolean
}

/**
 * What is needed of a connection. It is spelled out because the package's declarations lead here, and whoever installs it has
 * no declarations of better-sqlite3.
 */
interface Connection {
  pragma(source: string, options: { readonly simple: true }): unknown
  backup(path: string, options: { progress(info: CopiedPages): number }): Promise<CopiedPages>
}

interface CopiedPages {
  readonly totalPages: number
  readonly remainingPages: number
}

/**
 * Copies the database of this connection, with everything committed until the end of the copy, to a new file of mode 0600 in a
 * directory that is made if it is missing. Returns the bytes of the copy. Rejects with StorageError, and then there is no file.
 */
export async function backUp(database: Connection, path: string, options: BackUpOptions): Promise<number> {
  const part = `${path}${PART}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    needRoom(database, path)
    // SQLite would let the group read it.
    closeSync(openSync(part, 'wx', 0o600))
  } catch (error) {
    throw storageError(error, path)
  }
  try {
    await copy(database, part, options)
    markRestored(part)
    // Unlike a rename it never replaces a file.
    linkSync(part, path)
    return statSync(path).size
  } catch (error) {
    throw storageError(error, path)
  } finally {
    for (const end of ENDS) rmSync(`${part}${end}`, { force: true })
    syncDirectory(dirname(path))
  }
}

/** Deletes copies that a killed server has not completed. */
export function removeParts(directory: string): void {
  if (!existsSync(directory)) return
  for (const name of readdirSync(directory)) {
    if (ENDS.some((end) => name.endsWith(`${PART}${end}`))) rmSync(join(directory, name), { force: true })
  }
}

function needRoom(database: Connection, path: string): void {
  const bytes = Number(database.pragma('page_count', { simple: true })) * PAGE_BYTES
  const free = freeBytes(dirname(path))
  if (free >= bytes + SPARE_BYTES) return
  const sizes = [bytes, SPARE_BYTES, free].map((size) => `${Math.round(size / 2 ** 20)} MiB`)
  throw refuse('FULL', path, `the copy needs ${sizes[0]}, and ${sizes[1]} have to stay free; there are ${sizes[2]}`)
}

/** Transactions of this connection that are committed meanwhile go into the copy too, so that it never begins again. */
async function copy(database: Connection, path: string, { progress, isCancelled }: BackUpOptions): Promise<void> {
  await database.backup(path, {
    progress({ totalPages, remainingPages }) {
      if (isCancelled()) throw refuse('IO', path, 'the server ends')
      // The server itself needs the rest.
      if (freeBytes(dirname(path)) < SPARE_BYTES / 2)
        throw refuse('FULL', path, 'the disk has become too full meanwhile')
      progress({ copiedBytes: (totalPages - remainingPages) * PAGE_BYTES, totalBytes: totalPages * PAGE_BYTES })
      return STEP_PAGES
    },
  })
}

/** Has the next start with this database begin a new generation. Brings an older format up to date first. */
function markRestored(path: string): void {
  const database = new Database(path, { fileMustExist: true })
  try {
    database.pragma('synchronous = full')
    migrate(database)
    database.exec('update meta set restored = 1')
    // Closing does so too, and hides its errors.
    database.pragma('wal_checkpoint(truncate)')
  } finally {
    database.close()
  }
}

export interface RestoreOptions {
  /** The backup. It is only read. */
  readonly file: string
  /** The data directory, made if it is missing. */
  readonly directory: string
}

/**
 * Puts a backup in the place of the database, while no server uses the directory. The old database stays beside it under
 * another name; returns its path, or undefined if there was none. Throws StorageError, and then nothing has changed.
 */
export function restoreBackup({ file, directory }: RestoreOptions): string | undefined {
  if (!existsSync(file)) throw refuse('NOT_WRITABLE', file, 'there is no such file')
  orStorageError(file, () => checkHeader(file))
  const lock = takeLock(directory)
  const path = join(directory, DATABASE_FILE)
  const copied = `${path}.restoring`
  try {
    copyChecked(file, copied)
    // Whoever runs the server is to own it, though root restores it.
    const { uid, gid } = statSync(directory)
    if (process.getuid?.() === 0) chownSync(copied, uid, gid)
    const replaced = setAside(path)
    syncDirectory(directory)
    renameSync(copied, path)
    syncDirectory(directory)
    return replaced
  } catch (error) {
    for (const end of ENDS) rmSync(`${copied}${end}`, { force: true })
    throw storageError(error, path)
  } finally {
    lock.close()
  }
}

/** Makes a sound copy with its log, if there is one, carried into it. */
function copyChecked(file: string, copied: string): void {
  for (const end of ENDS) rmSync(`${copied}${end}`, { force: true })
  copyFileSync(file, copied, constants.COPYFILE_EXCL)
  if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${copied}-wal`)
  const database = new Database(copied, { fileMustExist: true })
  try {
    const found = database.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw refuse('DAMAGED', file, String(found))
    // With its log: the file alone need not say whose it is.
    if (database.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
      throw refuse('DAMAGED', file, 'it is empty, or the database of another program')
    }
  } finally {
    database.close()
  }
  markRestored(copied)
  const descriptor = openSync(copied, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/**
 * Gives the database a second name, and its log that name alone: the log must not be replayed over the new one. Until the
 * database is replaced it lacks its log; a start in between finds that its generation is not right.
 */
function setAside(path: string): string | undefined {
  if (!existsSync(path)) return undefined
  let number = 1
  while (existsSync(`${path}.replaced-${number}`)) number++
  const replaced = `${path}.replaced-${number}`
  linkSync(path, replaced)
  for (const end of ['-wal', '-shm']) if (existsSync(`${path}${end}`)) renameSync(`${path}${end}`, `${replaced}${end}`)
  return replaced
}

function orStorageError(path: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw storageError(error, path)
  }
}
