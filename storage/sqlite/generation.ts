/**
 * Notices that a database is an older copy. Transaction ids that it does not know may have been given, so a restored database
 * begins a new generation: another history of ids. `progress` grows whenever ids are reserved or given back, first in the
 * database and then in a file beside it, so a database that is behind its file, or in another directory, is a copy.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, existsSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { isNoRoom } from './errors.ts'
import { NumbersTable } from './numbers.ts'

const FILE = 'generation'
/** The file always has this length, so that writing it again needs no space. */
const FILE_BYTES = 64
const GENERATION_BYTES = 8

interface Progress {
  readonly generation: string
  readonly progress: number
}
/** `meta.restored`: a backup, or a database whose ids were skipped and whose consumers were not informed yet. */
const IS_BACKUP = 1
const IS_SKIPPED = 2
const NOT_INFORMED = 'its consumers were not informed yet'

interface StoredProgress extends Progress {
  /** Where the database was served last; '' if that never happened. */
  readonly directory: string
  readonly restored: number
}

/** What a database was made with, and what all copies of it share. */
export interface Origin {
  /** 32 random bytes. */
  readonly secret: Uint8Array
  /** Names the history of transaction ids. */
  readonly generation: string
}

export interface GenerationOptions {
  readonly directory: string
  /** Whether the database existed before. */
  readonly isNew: boolean
  /** The operator says that the database is restored. */
  readonly restored: boolean
  /** The database is at a place in the log of a cluster, which says what is missing: a copy of it is as good. */
  readonly isReplica: boolean
}

export class Generation {
  /** Why the database counts as restored, as part of a sentence; undefined if it does not. */
  readonly reason: string | undefined
  readonly #database: Database
  readonly #directory: string
  readonly #path: string
  #progress: Progress
  #file: number | undefined

  /** Writes to the database only if it is restored. To be called before anything is read that depends on transaction ids. */
  constructor(database: Database, { directory, isNew, restored, isReplica }: GenerationOptions) {
    this.#database = database
    this.#directory = directory
    this.#path = join(directory, FILE)
    const stored = readMeta(database)
    const noted = isNew ? undefined : readNoted(this.#path)
    this.#progress = { ...stored, progress: Math.max(stored.progress, noted?.progress ?? 0) }
    const isSkipped = !restored && stored.restored === IS_SKIPPED
    if (restored) this.reason = 'the server was started with --restored'
    else if (isReplica) this.reason = isSkipped ? NOT_INFORMED : undefined
    else this.reason = reasonOf(stored, noted, placeOf(directory, this.#path))
    // All copies of a database that belongs to a cluster have one generation.
    if (this.reason !== undefined && !(isReplica && isSkipped)) this.#restore(isSkipped)
  }

  /** A start that did not come as far as to inform consumers has skipped ids already. */
  #restore(isSkipped: boolean): void {
    const generation = randomBytes(GENERATION_BYTES).toString('hex')
    this.#progress = { ...this.#progress, generation }
    const restore = this.#database.transaction(() => {
      if (!isSkipped) new NumbersTable(this.#database).skip()
      this.#database
        .prepare('update meta set generation = ?, progress = ?, restored = ?')
        .run(generation, this.#progress.progress, IS_SKIPPED)
    })
    restore.immediate()
  }

  /** Continues with the ids of the log's first database, inside the transaction of the caller. `isSkipping`: as after a restore. */
  adopt({ secret, generation }: Origin, isSkipping: boolean): void {
    if (isSkipping) new NumbersTable(this.#database).skip()
    // The database with which the log was founded may have skipped ids itself, and still has to inform consumers.
    const isOwn = generation === this.#progress.generation
    const hasSkipped = isOwn && readMeta(this.#database).restored === IS_SKIPPED
    const restored = isSkipping || hasSkipped ? IS_SKIPPED : 0
    this.#database.prepare('update meta set secret = ?, generation = ?, restored = ?').run(secret, generation, restored)
    this.#progress = { ...this.#progress, generation }
  }

  get origin(): Origin {
    return this.#database.prepare<unknown[], Origin>('select secret, generation from meta').get() as Origin
  }

  /** The database is served from this directory from now on, and the end counts as unclean until the store says otherwise. */
  begin(): void {
    // First, so that a power cut never leaves a database that was served and has no file.
    this.#file = openSync(this.#path, constants.O_RDWR | constants.O_CREAT, 0o600)
    this.#write()
    fsyncSync(this.#file)
    syncDirectory(this.#directory)
    const progress = this.#progress.progress + 1
    this.#database
      .prepare('update meta set closed = 0, directory = ?, progress = ?')
      .run(placeOf(this.#directory, this.#path), progress)
    this.#progress = { ...this.#progress, progress }
    this.#write()
  }

  /** A transaction with `progress = progress + 1` is committed. The file may lag behind the database, never the other way round. */
  advanced(): void {
    this.#progress = { ...this.#progress, progress: this.#progress.progress + 1 }
    this.#write()
  }

  close(): void {
    if (this.#file === undefined) return
    fsyncSync(this.#file)
    closeSync(this.#file)
    this.#file = undefined
  }

  #write(): void {
    if (this.#file === undefined) return
    const { generation, progress } = this.#progress
    try {
      writeSync(this.#file, `${`${generation} ${progress}`.padEnd(FILE_BYTES - 1)}\n`, 0)
    } catch (error) {
      // The next one comes soon, and only a copy that is made until then is not noticed.
      if (!isNoRoom(error)) throw error
    }
  }
}

function readMeta(database: Database): StoredProgress {
  return database
    .prepare<unknown[], StoredProgress>('select generation, progress, directory, restored from meta')
    .get() as StoredProgress
}

/** What the file says; undefined if there is none, or nothing that can be read. */
function readNoted(path: string): Progress | undefined {
  if (!existsSync(path)) return undefined
  const [, generation, progress] = /^([0-9a-f]{16}) (\d{1,15}) *\n/.exec(readFileSync(path, 'latin1')) ?? []
  return generation === undefined ? undefined : { generation, progress: Number(progress) }
}

function reasonOf(stored: StoredProgress, noted: Progress | undefined, place: string): string | undefined {
  const wasServed = stored.directory !== ''
  if (stored.restored === IS_BACKUP) return 'it is a backup'
  if (stored.restored === IS_SKIPPED) return NOT_INFORMED
  if (noted === undefined) {
    return wasServed ? `the file \`${FILE}\` is missing beside it` : undefined
  }
  if (noted.generation !== stored.generation) return `the file \`${FILE}\` beside it belongs to another database`
  if (noted.progress > stored.progress) return `the file \`${FILE}\` beside it is newer`
  // Older formats stored the place without its last part, the file.
  return wasServed && !`${place} `.startsWith(`${stored.directory} `) ? 'its directory is a copy' : undefined
}

/**
 * Identifies a directory and its file, as long as they are not copied. File systems without a device of their own (btrfs, NFS,
 * overlays) may have another number after each start of the machine: those have the major number 0.
 */
function placeOf(directory: string, path: string): string {
  const { dev, ino } = statSync(directory, { bigint: true })
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  return `${majorOf(dev) === 0n ? 0n : dev} ${ino} ${file?.ino ?? 0n}`
}

/** As the C library has it (makedev(3)). */
function majorOf(device: bigint): bigint {
  return ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n)
}

/** Makes names in a directory durable. */
export function syncDirectory(directory: string): void {
  const file = openSync(directory, constants.O_RDONLY)
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
