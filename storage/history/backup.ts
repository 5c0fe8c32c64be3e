/** Copies the history as one state: fresh.db, and the files that the copy of it names. */
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { copyFile, link } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { PART } from '../sqlite/backup.ts'
import { StorageError } from '../store.ts'
import { RunCatalogue } from './catalogue.ts'
import { FRESH_FILE, type HistoryDisk, historyError, realDisk } from './database.ts'
import { FILE_NAMES } from './periods.ts'
import type { HistoryBackupOptions } from './store.ts'

/** Pages of fresh.db between two messages of the thread, which takes about a millisecond. */
const STEP_PAGES = 64

export interface HistoryBackupParts extends HistoryBackupOptions {
  readonly disk: HistoryDisk
  readonly directory: string
  readonly database: Database
}

/** The files must not be removed meanwhile. Rejects with StorageError, and then there is no copy. */
export function backUpHistory(to: string, parts: HistoryBackupParts): Promise<number> {
  return completed(to, parts.disk, (part) => copyAll(part, parts))
}

/** Copies the files of a history that nobody has open. Rejects with StorageError, and then there is no copy. */
export function copyHistory(from: string, to: string, isCancelled: () => boolean): Promise<number> {
  return completed(to, realDisk, async (part) => {
    const names = historyFiles(from)
    for (const name of names) {
      checkGoesOn(part, isCancelled)
      await copyFile(join(from, name), join(part, name))
    }
    return names
  })
}

/** The names of the files of a history in a directory: the log of fresh.db is one if a kill has left it. */
export function historyFiles(directory: string): string[] {
  const fresh = [FRESH_FILE, `${FRESH_FILE}-wal`]
  return readdirSync(directory).filter((name) => fresh.includes(name) || FILE_NAMES.test(name))
}

/** Has a directory made, under another name until it is complete and on the disk. */
async function completed(
  to: string,
  disk: HistoryDisk,
  copy: (part: string) => Promise<readonly string[]>,
): Promise<number> {
  const part = `${to}${PART}`
  try {
    if (existsSync(to)) throw new StorageError('NOT_WRITABLE', `${to} exists already: choose another name`)
    rmSync(part, { recursive: true, force: true })
    mkdirSync(part, { recursive: true, mode: 0o700 })
    const names = await copy(part)
    for (const name of names) disk.sync(join(part, name))
    disk.syncDirectory(part)
    renameSync(part, to)
    disk.syncDirectory(dirname(to))
    return names.reduce((sum, name) => sum + statSync(join(to, name)).size, 0)
  } catch (error) {
    rmSync(part, { recursive: true, force: true })
    throw historyError(error, to)
  }
}

function checkGoesOn(part: string, isCancelled: () => boolean): void {
  if (isCancelled()) throw new StorageError('IO', `the copy of the history to ${part} was abandoned: the server ends`)
}

async function copyAll(
  part: string,
  { disk, directory, database, isCancelled = () => false, isLinked = false }: HistoryBackupParts,
): Promise<string[]> {
  const fresh = join(part, FRESH_FILE)
  // SQLite would let the group read it.
  closeSync(openSync(fresh, 'wx', 0o600))
  // What this connection commits meanwhile goes into the copy too.
  await database.backup(fresh, {
    progress() {
      checkGoesOn(part, isCancelled)
      return STEP_PAGES
    },
  })
  const names = namedFiles(disk, fresh)
  for (const name of names) {
    checkGoesOn(part, isCancelled)
    await (isLinked ? linkOrCopy : copyFile)(join(directory, name), join(part, name))
  }
  return [FRESH_FILE, ...names]
}

/** Some file systems have no links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to))
}

/** The names of the files that a copy of fresh.db names; it is one file then. */
export function namedFiles(disk: HistoryDisk, fresh: string): string[] {
  const copy = disk.open(fresh)
  try {
    const names = new RunCatalogue(copy).files().map(({ name }) => name)
    copy.pragma('wal_checkpoint(truncate)')
    return names
  } finally {
    copy.close()
  }
}
