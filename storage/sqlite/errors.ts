/**
 * Translates errors of SQLite and the file system into errors that people can act on. Only two kinds are retried: no space, which
 * somebody may free, and busy, because somebody reads the database. A failed fsync is never retried: the kernel may have
 * dropped the pages and would report success without having written them.
 */
import { StorageError, type StorageErrorCode } from '../store.ts'

/** The stable code of an error of better-sqlite3 or node:fs; '' if it has none. */
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

/** A page or row cannot be read, though others may be readable. */
export function isUnreadable(error: unknown): boolean {
  return UNREADABLE.test(codeOf(error))
}

/** The disk has failed, maybe in an fsync: nothing may be written to the database any more. */
export function isDiskFailure(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_IOERR') && !isNoRoom(error)
}

/** `path` is the file or directory that the error is about. */
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
  LOCKED: (path) => `another server is using the data directory ${path}: stop it, or set another data_dir for this one`,
  NOT_WRITABLE: (path, reason) =>
    `cannot write to ${path} (${reason}): let the user that runs this server write there, or choose another data_dir`,
  TOO_NEW: (path, reason) =>
    `${path} was written by a newer version (${reason}) and was not touched: run that version, or restore a backup`,
  DAMAGED: (path, reason) =>
    `the database ${path} cannot be read (${reason}) and was left as it is: see docs/storage.md`,
  FULL: (path, reason) => `no space left on the disk of ${path} (${reason}): free some space, then start again`,
  IO: (path, reason) => `storing in ${path} failed (${reason}): check the disk and the system log, then start again`,
  UNREACHABLE: (_, reason) => `the nats-servers with the cluster's log do not answer (${reason})`,
  FOREIGN: (path, reason) => `the database ${path} is not part of the cluster's log (${reason}): see docs/cluster.md`,
  BEHIND: (path, reason) =>
    `the cluster's log no longer has the records that ${path} needs (${reason}): copy the database of another node`,
  DEPOSED: (_, reason) => `this node does not lead the cluster (${reason})`,
}

/** A StorageError that does not come from another error. */
export function refuse(code: StorageErrorCode, path: string, reason = ''): StorageError {
  return new StorageError(code, messages[code](path, reason))
}
