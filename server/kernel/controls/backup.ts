/** `storage.backup`: a copy of the database in the data directory, made while the server runs [MON 10]. */
import { join } from 'node:path'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { BACKUPS, type BackupProgress, StorageError, type Store } from '../../../storage/store.ts'
import { StatusError } from '../core/errors.ts'
import { WholePattern } from './bounds.ts'
import { type Control, failed, ok } from './control.ts'

/** The name of another file of a database, nor of a copy that is not complete. */
const OTHER_FILE = /(?:-wal|-shm|-journal|[.]part)$/
const FILE_NAME = new WholePattern('[A-Za-z0-9][A-Za-z0-9._-]*')
const MAX_FILE_NAME = 100

/** Makes backups, one at a time. */
export class Backups {
  readonly #store: Pick<Store, 'backup'>
  readonly #directory: string
  #progress: BackupProgress | undefined

  /** `dataDir`: absolute. */
  constructor(store: Pick<Store, 'backup'>, dataDir: string) {
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
      ],
      adminOnly: true,
      prepare: (args) => {
        const file = String(args.get('file'))
        if (OTHER_FILE.test(file)) {
          throw new StatusError('INVALID_ARGUMENT', '`file` must not end with -wal, -shm, -journal or .part')
        }
        if (this.#progress !== undefined)
          throw new StatusError('BUSY', 'another backup is being made: wait for its end')
        return () => this.#make(join(this.#directory, file))
      },
    }
  }

  async #make(path: string) {
    if (this.#progress !== undefined) return failed('another backup is being made: wait for its end')
    this.#progress = { copiedBytes: 0, totalBytes: 0 }
    try {
      const bytes = await this.#store.backup(path, (progress) => {
        this.#progress = progress
      })
      return ok(`${bytes} bytes in ${path}`, { type: BasicType.STRING, value: path })
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      return failed(error.message)
    } finally {
      this.#progress = undefined
    }
  }
}
