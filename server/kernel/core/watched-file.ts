/**
 * A file of the operator that is read again after it changes. `look` is called about once a second instead of relying on the
 * kernel's notifications, so that it also works for links that are redirected and on network file systems.
 */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'

/** A larger file is refused, because it is read and parsed in one step. That is room for 25,000 serial numbers. */
const MAX_BYTES = 1 << 20
/** Opening a pipe, which is refused afterwards, must not block until it has a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** A file that cannot be used. The message says which file, what is wrong, what to do, and the key of the configuration. */
export class FileError extends Error {
  override readonly name = 'FileError'

  /** `problem` must not contain anything from the file. */
  constructor(path: string, problem: string, key: string, cause?: unknown) {
    super(`${path} ${problem} (the key is \`${key}\`)`, { cause })
  }
}

/** The result of reading changed files again. */
export interface FileChange {
  /** `error` if the new contents cannot be used; the old contents then stay in force. */
  readonly severity: 'info' | 'error'
  readonly detail: string
}

export class WatchedFile {
  readonly path: string
  /** The key of the configuration that names the file. */
  readonly key: string
  #seen: string

  constructor(path: string, key: string) {
    this.path = path
    this.key = key
    this.#seen = looksOf(path)
  }

  /** Returns true if the file was replaced or changed since the last call. */
  look(): boolean {
    const looks = looksOf(this.path)
    if (looks === this.#seen) return false
    this.#seen = looks
    return true
  }

  /** Throws FileError. */
  text(): string {
    try {
      return readRegularFile(this.path).toString('utf8')
    } catch (error) {
      throw this.error(`cannot be read: ${error instanceof Error ? error.message : String(error)}`, error)
    }
  }

  /** Whether it is there, and users outside its owner and group may read it. */
  get isPublic(): boolean {
    return ((statSync(this.path, { throwIfNoEntry: false })?.mode ?? 0) & 0o004) !== 0
  }

  error(problem: string, cause?: unknown): FileError {
    return new FileError(this.path, problem, this.key, cause)
  }
}

/** Calls `read` if a file has changed. If `read` throws, it must have changed nothing. */
export function readAgain(files: readonly WatchedFile[], read: () => void): FileChange | undefined {
  // Every file is checked, so that none counts as changed a second time.
  const changed = files.filter((file) => file.look()).map(({ path }) => path)
  if (changed.length === 0) return undefined
  try {
    read()
    return { severity: 'info', detail: `${changed.join(', ')}: read again` }
  } catch (error) {
    const problem =
      error instanceof FileError ? error.message : `${changed.join(', ')} cannot be used: ${nameOf(error)}`
    return { severity: 'error', detail: `${problem}; the previous contents stay in force` }
  }
}

/** Libraries throw errors of their own for files that nobody has foreseen; their messages may show what is in the file. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  return 'code' in error ? String(error.code) : error.name
}

/** Throws Error if it is not a regular file, too large, or cannot be read. Never waits for a writer. */
export function readRegularFile(path: string): Buffer {
  const descriptor = openSync(path, OPEN_FLAGS)
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error('it is not a regular file')
    const bytes = Buffer.allocUnsafe(MAX_BYTES + 1)
    let length = 0
    // The stated size is not relied on: it is 0 for files of the kernel, and the file may be growing.
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(descriptor, bytes, length, bytes.length - length, null)
    }
    if (length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
    return bytes.subarray(0, length)
  } finally {
    closeSync(descriptor)
  }
}

function looksOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch {
    return 'not there'
  }
}
