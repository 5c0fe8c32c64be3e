/** `storage.backup`: a copy of the database in the data directory, made while the server runs [MON 10]. */
import { existsSync } from 'node:fs'
import { link, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { HISTORY_DIRECTORY } from '../../../storage/history/store.ts'
import { PART } from '../../../storage/sqlite/backup.ts'
import { storageError } from '../../../storage/sqlite/errors.ts'
import { BACKUPS, type BackupProgress, DATABASE_FILE, StorageError, type Store } from '../../../storage/store.ts'
import { StatusError } from '../core/errors.ts'
import { WholePattern } from './bounds.ts'
import { type Control, failed, ok } from './control.ts'

/** The name of another file of a database, nor of a copy that is not complete. */
const OTHER_FILE = /(?:-wal|-shm|-journal|[.]part)$/
const FILE_NAME = new WholePattern('[A-Za-z0-9][A-Za-z0-9._-]*')
const MAX_FILE_NAME = 100

/** Copies the history to a directory that does not exist yet; undefined if there is none. Rejects with an error for people. */
type CopyHistory = (directory: string) => Promise<number | undefined>

/** Makes backups, one at a time. */
export class Backups {
  readonly #store: Pick<Store, 'backup'>
  readonly #directory: string
  readonly #copyHistory: CopyHistory
  #progress: BackupProgress | undefined

  /** `dataDir`: absolute. */
  constructor(store: Pick<Store, 'backup'>, dataDir: string, copyHistory: CopyHistory) {
    this.#copyHistory = copyHistory
    this.#store = store
    this.#directory = join(dataDir, BACKUPS)
  }

  /** How far the backup that is being made has come; undefined if there is none. */
  get progress(): BackupProgress | undefined {
    return this.#progress
  }

  get control(): Control {
    return {
      name: 'storage.backup',
      description: 'Copies the database to a new file in the directory `backups` of the data directory.',
      parameters: [
        {
          name: 'file',
          type: BasicType.STRING,
          maxLength: MAX_FILE_NAME,
          pattern: FILE_NAME,
          description: 'The name of the new file: letters, digits, ".", "_" and "-".',
        },
        {
          name: 'history',
          type: BasicType.BOOLEAN,
          optional: true,
          default: false,
          description: 'With the history, if there is one: then a directory is made instead of the file.',
        },
      ],
      adminOnly: true,
      prepare: (args) => {
        const file = String(args.get('file'))
        if (OTHER_FILE.test(file)) {
          throw new StatusError('INVALID_ARGUMENT', '`file` must not end with -wal, -shm, -journal or .part')
        }
        if (this.#progress !== undefined)
          throw new StatusError('BUSY', 'another backup is being made: wait for its end')
        return () => this.#make(join(this.#directory, file), args.get('history') === true)
      },
    }
  }

  async #make(path: string, withHistory: boolean) {
    if (this.#progress !== undefined) return failed('another backup is being made: wait for its end')
    this.#progress = { copiedBytes: 0, totalBytes: 0 }
    try {
      const bytes = withHistory ? await this.#makeWhole(path) : await this.#copyDatabase(path)
      return ok(`${bytes} bytes in ${path}`, { type: BasicType.STRING, value: path })
    } catch (error) {
      if (!(error instanceof StorageError || error instanceof HistoryCopyError)) throw error
      return failed(error.message)
    } finally {
      this.#progress = undefined
    }
  }

  #copyDatabase(path: string): Promise<number> {
    return this.#store.backup(path, (progress) => {
      this.#progress = progress
    })
  }

  /** The database first: then the history lacks nothing that the database has as committed. Nothing is replaced. */
  async #makeWhole(path: string): Promise<number> {
    if (existsSync(path)) throw new StorageError('NOT_WRITABLE', `${path} exists already: choose another name`)
    const part = `${path}${PART}`
    try {
      await rm(part, { recursive: true, force: true })
      await mkdir(part, { recursive: true, mode: 0o700 })
      const database = join(part, DATABASE_FILE)
      const bytes = await this.#copyDatabase(database)
      const historyBytes = await this.#copyHistory(join(part, HISTORY_DIRECTORY)).catch((error: Error) => {
        throw new HistoryCopyError(`the history was not copied, and so nothing was: ${error.message}`, { cause: error })
      })
      // Neither puts it in the place of a file.
      await (historyBytes === undefined ? link(database, path) : rename(part, path))
      await syncName(this.#directory)
      return bytes + (historyBytes ?? 0)
    } catch (error) {
      throw error instanceof HistoryCopyError ? error : storageError(error, path)
    } finally {
      // What has failed is said already; a copy that is not complete goes at the next start at the latest.
      await rm(part, { recursive: true, force: true }).catch(() => {})
    }
  }
}

/** Makes the names in a directory durable. */
async function syncName(directory: string): Promise<void> {
  const file = await open(directory)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Its message is for people. */
class HistoryCopyError extends Error {}
