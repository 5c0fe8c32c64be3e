/**
 * A file of the operator that is read again after it changes. `look` is called about once a second instead of relying on the
 * kernel's notifications, so that it also works for links that are redirected and on network file systems.
 */
import { readFileSync, statSync } from 'node:fs'

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
      return readFileSync(this.path, 'utf8')
    } catch (error) {
      throw this.error(`cannot be read: ${error instanceof Error ? error.message : String(error)}`, error)
    }
  }

  /** Whether users outside its owner and group may read it. */
  get isPublic(): boolean {
    return (statSync(this.path).mode & 0o004) !== 0
  }

  error(problem: string, cause?: unknown): FileError {
    return new FileError(this.path, problem, this.key, cause)
  }
}

/** Calls `read` if a file has changed. If `read` throws FileError, it must have changed nothing. */
export function readAgain(files: readonly WatchedFile[], read: () => void): FileChange | undefined {
  // Every file is checked, so that none counts as changed a second time.
  const changed = files.filter((file) => file.look()).map(({ path }) => path)
  if (changed.length === 0) return undefined
  try {
    read()
    return { severity: 'info', detail: `${changed.join(', ')}: read again` }
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    return { severity: 'error', detail: `${error.message}; the previous contents stay in force` }
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
