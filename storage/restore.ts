/**
 * Puts a backup in the place of what a data directory has, while no server uses that. A backup is a copy of the database, or a
 * directory with such a copy and one of the history; without one, the history that is there stays.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { historyFiles } from './history/backup.ts'
import { FRESH_FILE, historyError } from './history/database.ts'
import { HISTORY_DIRECTORY } from './history/store.ts'
import { nameAside, restoreBackup } from './sqlite/backup.ts'
import { syncDirectory } from './sqlite/generation.ts'
import { DATABASE_FILE, StorageError } from './store.ts'

export interface RestoreAllOptions {
  /** A file or a directory. It is only read. */
  readonly backup: string
  /** The data directory, made if it is missing. */
  readonly directory: string
}

export interface RestoredBackup {
  /** Whether the backup had a history. */
  readonly hasHistory: boolean
  /** What was there before, under other names. */
  readonly replaced: readonly string[]
}

/** Throws StorageError, and then the database has not changed. */
export function restoreAll({ backup, directory }: RestoreAllOptions): RestoredBackup {
  const isDirectory = existsSync(backup) && statSync(backup).isDirectory()
  const history = join(backup, HISTORY_DIRECTORY)
  if (!isDirectory || !existsSync(history)) {
    const file = isDirectory ? join(backup, DATABASE_FILE) : backup
    const replaced = restoreBackup({ file, directory })
    return { hasHistory: false, replaced: replaced === undefined ? [] : [replaced] }
  }
  const replaced: string[] = []
  const place = join(directory, HISTORY_DIRECTORY)
  const copied = `${place}.restoring`
  try {
    const database = restoreBackup({
      file: join(backup, DATABASE_FILE),
      directory,
      // Without room for it nothing changes.
      first: () => copyFiles(history, copied, directory),
    })
    if (database !== undefined) replaced.push(database)
    // The database first: its generation is a new one, so that a history from after the backup would go on with a range of loss.
    if (existsSync(place)) {
      const aside = nameAside(place)
      renameSync(place, aside)
      replaced.push(aside)
    }
    renameSync(copied, place)
    syncDirectory(directory)
    return { hasHistory: true, replaced }
  } catch (error) {
    rmSync(copied, { recursive: true, force: true })
    throw historyError(error, place)
  }
}

function copyFiles(from: string, to: string, directory: string): void {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { mode: 0o700 })
  const names = historyFiles(from)
  if (!names.includes(FRESH_FILE)) throw new StorageError('DAMAGED', `${from} is no history: it has no ${FRESH_FILE}`)
  // Whoever runs the server is to own it, though root restores it.
  const { uid, gid } = statSync(directory)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(to, uid, gid)
  for (const name of names) {
    const path = join(to, name)
    copyFileSync(join(from, name), path)
    chmodSync(path, 0o600)
    if (isRoot) chownSync(path, uid, gid)
    const file = openSync(path, 'r')
    try {
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }
  syncDirectory(to)
}
