/**
 * From what SQLite and the file system say to what a person can act on. Only two kinds are ever tried again: no room
 * (somebody may free some) and busy (somebody looks at the database). A failed fsync never is: after it the kernel may
 * have thrown the pages away and would report success for nothing.
 */
import { StorageError, type StorageErrorCode } from '../store.ts'

/** The stable code of an error of better-sqlite3 or node:fs, '' if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

const NO_ROOM = new Set(['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT'])
const UNREADABLE = /^SQLITE_(CORRUPT|NOTADB|IOERR_READ|IOERR_SHORT_READ|IOERR_CORRUPTFS|IOERR_DATA)/
const NOT_WRITABLE = /^(SQLITE_(READONLY|CANTOPEN|PERM)|EACCES|EPERM|EROFS|ENOTDIR|EEXIST|ELOOP|ENAMETOOLONG)/

export function isNoRoom(error: unknown): boolean {
  return NO_ROOM.has(codeOf(error))
}

export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

/** A page or a row cannot be read; others may well be readable. */
export function isUnreadable(error: unknown): boolean {
  return UNREADABLE.test(codeOf(error))
}

/** `path`: the file or directory it is about. */
export function storageError(error: unknown, path: string): StorageError {
  if (error instanceof StorageError) return error
  const reason = error instanceof Error ? error.message : String(error)
  const code = classify(error)
  return new StorageError(code, messages[code](path, reason), error)
}

function classify(error: unknown): StorageErrorCode {
  if (isNoRoom(error)) return 'FULL'
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error))) return 'DAMAGED'
  return NOT_WRITABLE.test(codeOf(error)) ? 'NOT_WRITABLE' : 'IO'
}

const messages: Record<StorageErrorCode, (path: string, reason: string) => string> = {
  LOCKED: (path) =>
    `another server is using the data directory ${path}: stop it, or give this one a data_dir of its own`,
  NOT_WRITABLE: (path, reason) =>
    `cannot write to ${path} (${reason}): let the user that runs this server write there, or choose another data_dir`,
  TOO_NEW: (path, reason) =>
    `${path} was written by a newer version (${reason}) and was not touched: run that version, or restore a backup`,
  DAMAGED: (path, reason) =>
    `the database ${path} cannot be read (${reason}) and was left as it is: see docs/storage.md`,
  FULL: (path, reason) => `no room on the disk of ${path} (${reason}): free some, then start again`,
  IO: (path, reason) => `storing in ${path} failed (${reason}): look at the disk and the system log, then start again`,
}

/** A StorageError that does not come from another error. */
export function refuse(code: StorageErrorCode, path: string, reason = ''): StorageError {
  return new StorageError(code, messages[code](path, reason))
}
