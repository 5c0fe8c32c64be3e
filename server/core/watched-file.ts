/**
 * A file of the operator's that is read again when it changes. What it looks like is asked every second or so (`look`),
 * not watched by the kernel: that way it also works for links that are pointed elsewhere and on network file systems.
 */
import { readFileSync, statSync } from 'node:fs'

/** A file that cannot be used, as a sentence for a person: file, what is wrong, what to do, key of the configuration. */
export class FileError extends Error {
  override readonly name = 'FileError'

  /** Nothing of what is in the file may get into `problem`. */
  constructor(path: string, problem: string, key: string, cause?: unknown) {
    super(`${path} ${problem} (the key is \`${key}\`)`, { cause })
  }
}

/** What came of files that had changed. */
export interface FileChange {
  /** error: they are no good, and what was read before goes on. */
  readonly severity: 'info' | 'error'
  readonly detail: string
}

export class WatchedFile {
  readonly path: string
  /** Of the configuration. */
  readonly key: string
  #seen: string

  constructor(path: string, key: string) {
    this.path = path
    this.key = key
    this.#seen = looksOf(path)
  }

  /** True if it is another one, or has other contents, than the last time that this was asked. */
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

  /** Whether others than its owner and its group may read it. */
  get isPublic(): boolean {
    return (statSync(this.path).mode & 0o004) !== 0
  }

  error(problem: string, cause?: unknown): FileError {
    return new FileError(this.path, problem, this.key, cause)
  }
}

/** Reads again what has changed. `read` throws FileError and changes nothing then. */
export function readAgain(files: readonly WatchedFile[], read: () => void): FileChange | undefined {
  // Each is asked, so that none counts as changed a second time.
  const changed = files.filter((file) => file.look()).map(({ path }) => path)
  if (changed.length === 0) return undefined
  try {
    read()
    return { severity: 'info', detail: `${changed.join(', ')}: read again` }
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    return { severity: 'error', detail: `${error.message}; what was read before goes on` }
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
