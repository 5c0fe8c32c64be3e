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
  fdatasync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Database } from 'better-sqlite3'
import { type BackupProgress, DATABASE_FILE, StorageError } from '../store.ts'
import { checkHeader, LOCK_FILE, PAGE_BYTES, takeLock } from './database.ts'
import { freeBytes } from './disk-space.ts'
import { openSqlite } from './driver.ts'
import { isBusy, refuse, storageError } from './errors.ts'
import { syncDirectory } from './generation.ts'
import { APPLICATION_ID, migrate } from './migrations.ts'
import { schemaProblem } from './schema.ts'

/** The files of a database. */
const ENDS = ['', '-wal', '-shm', '-journal']
/** What has to be left on the disk of a backup: the server itself needs it for its log and its reserve. */
const SPARE_BYTES = 128 * 1024 * 1024
/** The end of the name of a copy that is not complete. */
export const PART = '.part'
/** Pages copied between two messages of the server, which takes about a millisecond. */
const STEP_PAGES = 64
/**
 * What is copied before the next sync. SQLite itself syncs only with its last step, for which every batch waits: at most about
 * three times this is left for it, with what is still in its cache.
 */
export const SYNC_BYTES = 16 * 1024 * 1024
/** How long the thread sleeps if nothing can be copied now. */
const PAUSE_MS = 1
/** The time between two looks at whether a transaction is still open. */
const HELD_MS = 10

export interface BackUpOptions {
  readonly progress: (progress: BackupProgress) => void
  /** Whether the backup is to be abandoned. */
  readonly isCancelled: () => boolean
  /** Syncs the data of a file beside this thread; for tests. */
  readonly sync?: (file: number) => Promise<void>
}

/**
 * What is needed of a connection. It is spelled out because the package's declarations lead here, and whoever installs it has
 * no declarations of better-sqlite3.
 */
interface Connection {
  readonly inTransaction: boolean
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
    // Before everything is copied: `linkSync` would find it out at the end.
    if (existsSync(path)) throw new StorageError('NOT_WRITABLE', `${path} exists already: choose another name`)
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
    return syncedSize(path)
  } catch (error) {
    throw storageError(error, path)
  } finally {
    for (const end of ENDS) rmSync(`${part}${end}`, { force: true })
  }
}

/** Makes the name of a new file durable, or removes the file. */
function syncedSize(path: string): number {
  try {
    syncDirectory(dirname(path))
    return statSync(path).size
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  }
}

/** Deletes copies that a killed server has not completed. */
export function removeParts(directory: string): void {
  if (!existsSync(directory)) return
  for (const name of readdirSync(directory)) {
    if (ENDS.some((end) => name.endsWith(`${PART}${end}`)))
      rmSync(join(directory, name), { recursive: true, force: true })
  }
}

function needRoom(database: Connection, path: string): void {
  const bytes = Number(database.pragma('page_count', { simple: true })) * PAGE_BYTES
  const free = freeBytes(dirname(path))
  if (free >= bytes + SPARE_BYTES) return
  const sizes = [bytes, SPARE_BYTES, free].map((size) => `${Math.round(size / 2 ** 20)} MiB`)
  throw refuse('FULL', path, `the copy needs ${sizes[0]}, and ${sizes[1]} have to stay free; there are ${sizes[2]}`)
}

/**
 * Transactions of this connection that are committed meanwhile go into the copy too, so that it never begins again. While one is
 * open, because its batch waits for the log of a cluster, nothing is copied; better-sqlite3 takes that for the end if it is so
 * at the first step, and has copied no page.
 */
async function copy(database: Connection, path: string, options: BackUpOptions): Promise<void> {
  const { isCancelled } = options
  while ((await copyOnce(database, path, options)).totalPages === 0) {
    if (isCancelled()) throw refuse('IO', path, 'the server ends')
    await setTimeout(HELD_MS)
  }
}

async function copyOnce(database: Connection, path: string, options: BackUpOptions): Promise<CopiedPages> {
  const { progress, isCancelled, sync } = options
  const syncing = new SyncInParts(path, sync)
  try {
    return await database.backup(path, {
      progress({ totalPages, remainingPages }) {
        if (isCancelled()) throw refuse('IO', path, 'the server ends')
        if (database.inTransaction) syncing.pause()
        // The server itself needs the rest.
        if (freeBytes(dirname(path)) < SPARE_BYTES / 2)
          throw refuse('FULL', path, 'the disk has become too full meanwhile')
        const copiedBytes = (totalPages - remainingPages) * PAGE_BYTES
        progress({ copiedBytes, totalBytes: totalPages * PAGE_BYTES })
        return syncing.keepsUp(copiedBytes) ? STEP_PAGES : 0
      },
    })
  } finally {
    await syncing.close()
  }
}

/** Syncs a copy while it is made, a part at a time. */
class SyncInParts {
  readonly #file: number
  readonly #sync: (file: number) => Promise<void>
  readonly #sleeping = new Int32Array(new SharedArrayBuffer(4))
  /** What had been copied when the last sync began. */
  #begun = 0
  #running: Promise<void> | undefined
  #failure: unknown

  constructor(path: string, sync: (file: number) => Promise<void> = promisify(fdatasync)) {
    this.#file = openSync(path, 'r+')
    this.#sync = sync
  }

  /** Returns whether more may be copied now; if not, some time has passed. Throws what a sync has failed with. */
  keepsUp(copiedBytes: number): boolean {
    if (this.#failure !== undefined) throw this.#failure
    if (copiedBytes - this.#begun < SYNC_BYTES) return true
    if (this.#running !== undefined) {
      this.pause()
      return false
    }
    this.#begun = copiedBytes
    this.#running = this.#sync(this.#file)
      .catch((error: unknown) => {
        this.#failure = error
      })
      .finally(() => {
        this.#running = undefined
      })
    return true
  }

  /** Leaves the processor to others for a moment: the next step comes at once. */
  pause(): void {
    Atomics.wait(this.#sleeping, 0, 0, PAUSE_MS)
  }

  async close(): Promise<void> {
    await this.#running
    closeSync(this.#file)
  }
}

/** Has the next start with this database begin a new generation. Brings an older format up to date first. */
function markRestored(path: string): void {
  const database = openSqlite(path, { fileMustExist: true })
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
  /** Called before anything changes, when no server can use the directory. */
  readonly first?: () => void
}

/**
 * Puts a backup in the place of the database, while no server uses the directory. The old database stays beside it under
 * another name; returns its path, or undefined if there was none. Throws StorageError, and then nothing has changed.
 */
export function restoreBackup({ file, directory, first }: RestoreOptions): string | undefined {
  if (!existsSync(file)) throw refuse('NOT_WRITABLE', file, 'there is no such file')
  orStorageError(file, () => checkHeader(file))
  const lock = takeLock(directory)
  const path = join(directory, DATABASE_FILE)
  const copied = `${path}.restoring`
  let unserved: Database | undefined
  try {
    unserved = keepUnserved(file, directory)
    copyChecked(file, copied)
    // Whoever runs the server is to own it, though root restores it.
    const { uid, gid } = statSync(directory)
    if (process.getuid?.() === 0) chownSync(copied, uid, gid)
    first?.()
    const replaced = setAside(path)
    syncDirectory(directory)
    renameSync(copied, path)
    syncDirectory(directory)
    return replaced
  } catch (error) {
    for (const end of ENDS) rmSync(`${copied}${end}`, { force: true })
    throw storageError(error, path)
  } finally {
    unserved?.close()
    lock.close()
  }
}

/**
 * Keeps servers away from a database in another data directory while it is copied; undefined if the file is in none. It is only
 * read. Throws StorageError LOCKED if a server uses it: what is copied while it changes is not whole.
 */
function keepUnserved(file: string, directory: string): Database | undefined {
  const real = realpathSync(file)
  const lockFile = join(dirname(real), LOCK_FILE)
  if (basename(real) !== DATABASE_FILE || dirname(real) === realpathSync(directory)) return undefined
  if (!existsSync(lockFile)) return undefined
  const lock = openSqlite(lockFile, { readonly: true, timeout: 0 })
  try {
    lock.exec('begin')
    lock.pragma('schema_version')
    return lock
  } catch (error) {
    lock.close()
    if (!isBusy(error)) throw error
    const advice = 'stop it, or make a copy with `cinnabar backup` and restore that'
    throw new StorageError('LOCKED', `a server is using ${file}, which changes while it is copied: ${advice}`, error)
  }
}

/** Makes a sound copy with its log, if there is one, carried into it. */
function copyChecked(file: string, copied: string): void {
  for (const end of ENDS) rmSync(`${copied}${end}`, { force: true })
  copyFileSync(file, copied, constants.COPYFILE_EXCL)
  if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${copied}-wal`)
  const database = openSqlite(copied, { fileMustExist: true })
  try {
    const found = database.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw refuse('DAMAGED', file, String(found))
    // With its log: the file alone need not say whose it is.
    if (database.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
      throw refuse('DAMAGED', file, 'it is empty, or the database of another program')
    }
    const problem = schemaProblem(database)
    if (problem !== undefined) throw refuse('DAMAGED', file, problem)
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
  const replaced = nameAside(path)
  linkSync(path, replaced)
  for (const end of ['-wal', '-shm']) if (existsSync(`${path}${end}`)) renameSync(`${path}${end}`, `${replaced}${end}`)
  return replaced
}

/** A name that is free for what a restore replaces. */
export function nameAside(path: string): string {
  let number = 1
  while (existsSync(`${path}.replaced-${number}`)) number++
  return `${path}.replaced-${number}`
}

function orStorageError(path: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw storageError(error, path)
  }
}
