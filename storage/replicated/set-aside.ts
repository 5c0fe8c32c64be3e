/**
 * Sets a database aside that cannot be used any more because it is not part of the cluster's log. It is not deleted: it may
 * have values that nothing else has. Its files get a directory of their own, in which a server could be started.
 */
import { existsSync, linkSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { storageError } from '../sqlite/errors.ts'
import { syncDirectory } from '../sqlite/generation.ts'
import { DATABASE_FILE } from '../store.ts'

/** What belongs to a database; the database itself is the last that goes, since the others are nothing without it. */
const FILES = ['generation', `${DATABASE_FILE}-shm`, `${DATABASE_FILE}-journal`, `${DATABASE_FILE}-wal`, DATABASE_FILE]

/**
 * Moves the database of a data directory into a new directory beside it, named after the time: `set-aside-20260131T235959Z`.
 * Returns the path of that directory; undefined if there is no database. To be called while nothing has the database open.
 * Throws StorageError; then the database is where it was, or in both places.
 */
export function setAside(directory: string, wallMs: number): string | undefined {
  if (!existsSync(join(directory, DATABASE_FILE))) return undefined
  try {
    const aside = makeDirectory(join(directory, `set-aside-${timeStamp(wallMs)}`))
    const files = FILES.filter((name) => existsSync(join(directory, name)))
    // All files are in both places before the first is gone from one: a crash leaves no database without its log.
    for (const name of files) linkSync(join(directory, name), join(aside, name))
    syncDirectory(aside)
    syncDirectory(directory)
    for (const name of files) rmSync(join(directory, name))
    syncDirectory(directory)
    return aside
  } catch (error) {
    throw storageError(error, directory)
  }
}

/** `20260131T235959Z` */
function timeStamp(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/[-:]|\.\d+/g, '')
}

/** With a number if there is one already. */
function makeDirectory(path: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? path : `${path}-${number}`
    if (existsSync(name)) continue
    mkdirSync(name, { mode: 0o700 })
    return name
  }
}
