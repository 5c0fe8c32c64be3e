/**
 * The life of a batch: one transaction, tried again while there is no room, given up on any other error; and when the
 * log is carried into the database. SQLite is synchronous: all of this runs on the worker thread, between two messages.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { Batch, Change, StorageError } from '../store.ts'
import { PAGE_BYTES } from './database.ts'
import { type DiskReserve, FreeSpace, freeBytes } from './disk-space.ts'
import { isBusy, isNoRoom, isUnreadable, storageError } from './errors.ts'
import type { Tables } from './tables.ts'

const MIN_CHECKPOINT_PAGES = 16
/** Free pages given back to the disk at once: when it is full (small steps, they need room in the log), when idle. */
const FULL_SHRINK_PAGES = 64
const FULL_SHRINK_STEPS = 16
const IDLE_SHRINK_PAGES = 1024

export interface WriterEvents {
  /** `room`: bytes of values that surely find room. */
  durable(batch: Batch, room: number): void
  full(): void
  room(): void
  failed(error: StorageError): void
}

export interface WriterParts {
  readonly database: Database
  readonly directory: string
  readonly tables: Tables
  readonly reserve: DiskReserve
  readonly events: WriterEvents
  /** How long a batch that found no room waits before it is tried again. */
  readonly retryMs: number
  /** After so long without a batch the log is cut to nothing. */
  readonly idleMs: number
  /** The log is carried over when it has so many pages. */
  readonly checkpointPages: number
}

export class Writer {
  readonly #parts: WriterParts
  readonly #transaction: (batch: Batch) => void
  readonly #logSize: Statement<unknown[], number[]>
  readonly #checkpointNow: Statement<unknown[], number[]>
  readonly #freePages: Statement<unknown[], number>
  readonly #room: FreeSpace
  #batch: Batch | undefined
  /** The batch in flight has met a full disk, and that was told. */
  #told = false
  /** A full disk was told, and the reserve is not back yet. */
  #short = false
  #examined = false
  #failed = false
  #checkpointPages = 0
  #timer: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(parts: WriterParts) {
    const { database } = parts
    this.#parts = parts
    this.#transaction = database.transaction((batch: Batch) => this.#store(batch)).immediate
    this.#logSize = database.prepare<unknown[], number[]>('pragma wal_checkpoint(noop)').raw()
    this.#checkpointNow = database.prepare<unknown[], number[]>('pragma wal_checkpoint(passive)').raw()
    this.#freePages = database.prepare<unknown[], number>('pragma freelist_count').pluck()
    this.#room = new FreeSpace(parts.directory, parts.reserve, () => {
      const [, pages = 0, carried = 0] = this.#logSize.get() ?? []
      return pages - carried
    })
    this.#planCheckpoint()
  }

  get failed(): boolean {
    return this.#failed
  }

  /** One batch at a time; the next one only after `durable`. After `failed` nothing is written any more. */
  write(batch: Batch): void {
    if (this.#failed) return
    clearTimeout(this.#idle)
    this.#batch = batch
    this.#told = false
    this.#examined = false
    this.#attempt()
  }

  /** Frames of blocks, `undefined` for what is missing or damaged; ends early once `budget` bytes are reached. */
  read(ids: Float64Array, budget: number): (Uint8Array | undefined)[] {
    const found: (Uint8Array | undefined)[] = []
    let bytes = 0
    for (const id of ids) {
      const frames = this.#readOne(id)
      found.push(frames)
      bytes += frames?.length ?? 0
      if (bytes >= budget) break
    }
    return found
  }

  /** Tries a batch that waits for room a last time; whatever comes of it, nothing is under way afterwards. */
  close(): void {
    if (this.#batch !== undefined) this.#attempt()
    this.#batch = undefined
    clearTimeout(this.#timer)
    clearTimeout(this.#idle)
  }

  #readOne(id: number): Uint8Array | undefined {
    try {
      return this.#parts.tables.blocks.read(id)
    } catch (error) {
      // To record that a row is damaged needs room; without any it is found again after the next start.
      if (!isNoRoom(error) && !isBusy(error)) this.#fail(error)
      return undefined
    }
  }

  #store(batch: Batch): void {
    const { blocks, state } = this.#parts.tables
    for (const change of batch.changes) this.#change(change)
    state.store(batch, blocks.store(batch))
  }

  #change(change: Change): void {
    const { blocks, state, users, rights, audit } = this.#parts.tables
    if (isAbout(change, 'tenant', 'user')) users.change(change)
    else if (isAbout(change, 'rule', 'token')) rights.change(change)
    else if (isAbout(change, 'audit')) audit.change(change)
    else state.change(change)
    if ('remove' in change && change.remove === 'channel') blocks.removeChannel(change.id)
  }

  #attempt(): void {
    const batch = this.#batch
    if (batch === undefined || this.#failed) return
    clearTimeout(this.#timer)
    try {
      this.#transaction(batch)
    } catch (error) {
      this.#recover(batch, error)
      return
    }
    this.#batch = undefined
    this.#parts.events.durable(batch, this.#room.bytesLeft)
    this.#checkpoint()
    this.#room.noteBatch(batch.dataLength)
    if (!this.#short && this.#room.isLow) this.#runLow()
    if (this.#short) this.#restore()
    // Not there yet: the server was started on a disk that had no room for it.
    else this.#parts.reserve.make()
    this.#idle = setTimeout(() => this.#rest(), this.#parts.idleMs)
  }

  /** The transaction was rolled back whole. */
  #recover(batch: Batch, error: unknown): void {
    const { tables, retryMs } = this.#parts
    if (isUnreadable(error) && !this.#examined) {
      // A row that the batch deletes or replaces is damaged: it is set aside, and must not fail the others.
      this.#examined = true
      this.#guarded(() => tables.blocks.examine(tables.blocks.touchedBy(batch)))
      this.#attempt()
      return
    }
    if (!isNoRoom(error) && !isBusy(error)) {
      this.#fail(error)
      return
    }
    if (isNoRoom(error)) {
      if (this.#runShort()) {
        // First the log: if the batch took the room that the log needs in the database, neither would ever get any.
        this.#guarded(() => this.#checkpointNow.get())
        this.#attempt()
        return
      }
      // A log that is carried over can be written again from its beginning.
      this.#shrink(FULL_SHRINK_PAGES)
    }
    this.#timer = setTimeout(() => this.#attempt(), retryMs)
  }

  /** There is no room. True if the reserve gave some. */
  #runShort(): boolean {
    this.#short = true
    if (!this.#told) this.#parts.events.full()
    this.#told = true
    return this.#parts.reserve.release()
  }

  /** There is hardly room for what may come before the next batch; perhaps the log only has to be carried over. */
  #runLow(): void {
    this.#guarded(() => this.#checkpointNow.get())
    if (!this.#room.isLow) return
    this.#short = true
    this.#parts.events.full()
  }

  /** Makes the reserve again; only then values may come again, else they would take the room that commits need. */
  #restore(): void {
    const { reserve, events, retryMs } = this.#parts
    const isThere = (): boolean => reserve.make() && this.#room.isEnough
    for (let step = 0; step < FULL_SHRINK_STEPS && !isThere(); step++) {
      if (!this.#shrink(FULL_SHRINK_PAGES)) break
    }
    if (isThere()) {
      this.#short = false
      events.room()
      return
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#short && this.#batch === undefined) this.#restore()
    }, retryMs)
  }

  /** Gives free pages of the database back to the disk; false if there was nothing to give. */
  #shrink(pages: number): boolean {
    const { database } = this.#parts
    const some = this.#freePages.get() !== 0
    const shrunk = this.#guarded(() => {
      if (some) database.pragma(`incremental_vacuum(${pages})`)
      this.#checkpointNow.get()
    })
    return some && shrunk
  }

  #checkpoint(): void {
    const [, pages = 0] = this.#logSize.get() ?? []
    if (pages < (this.#short ? 1 : this.#checkpointPages)) return
    try {
      this.#checkpointNow.get()
    } catch (error) {
      // What is in the log has no room in the database: to be told now, while the reserve can still hold it.
      if (!isNoRoom(error)) this.#fail(error)
      else if (this.#runShort()) this.#guarded(() => this.#checkpointNow.get())
    }
    this.#planCheckpoint()
  }

  /** While there is little room left, smaller logs: what is in the log must still find room in the database. */
  #planCheckpoint(): void {
    const { directory, checkpointPages } = this.#parts
    const pages = Math.floor(freeBytes(directory) / PAGE_BYTES / 4)
    this.#checkpointPages = Math.max(MIN_CHECKPOINT_PAGES, Math.min(checkpointPages, pages))
  }

  /** Nothing to do: the database and the log give room back. Somebody who reads the database is not waited for. */
  #rest(): void {
    const { database, idleMs } = this.#parts
    const more = this.#shrink(IDLE_SHRINK_PAGES)
    const patience = database.pragma('busy_timeout', { simple: true })
    database.pragma('busy_timeout = 0')
    this.#guarded(() => database.pragma('wal_checkpoint(truncate)'))
    database.pragma(`busy_timeout = ${patience}`)
    if (more && !this.#failed) this.#idle = setTimeout(() => this.#rest(), idleMs)
  }

  /**
   * What may fail for want of room or of a sound page, or because somebody is looking: done another time or never. Nothing
   * is done after a failure, above all no second fsync.
   */
  #guarded(work: () => void): boolean {
    if (this.#failed) return false
    try {
      work()
      return true
    } catch (error) {
      if (!isNoRoom(error) && !isBusy(error) && !isUnreadable(error)) this.#fail(error)
      return false
    }
  }

  #fail(error: unknown): void {
    if (this.#failed) return
    this.#failed = true
    clearTimeout(this.#timer)
    clearTimeout(this.#idle)
    this.#parts.events.failed(storageError(error, this.#parts.database.name))
  }
}

type Subject<C> = C extends { put: infer S } | { remove: infer S } ? S : never

function isAbout<S extends Subject<Change>>(
  change: Change,
  ...subjects: readonly S[]
): change is Extract<Change, { put: S } | { remove: S }> {
  const subject: string = 'put' in change ? change.put : change.remove
  return subjects.some((one) => one === subject)
}
