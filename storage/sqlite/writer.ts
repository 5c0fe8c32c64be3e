/**
 * Writes batches: each is one transaction, retried while there is no space and abandoned on any other error. Between the batches
 * it removes what they have left to remove, and it decides when checkpoints run. SQLite is synchronous: all of this runs on the
 * worker thread, between two messages.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { LogPlace } from '../replicated/place.ts'
import type { Batch, Change, StorageError } from '../store.ts'
import type { AuditChange } from './audit.ts'
import { PAGE_BYTES } from './database.ts'
import { type DiskReserve, FreeSpace } from './disk-space.ts'
import { isBusy, isNoRoom, isUnreadable, storageError } from './errors.ts'
import type { Generation, Origin } from './generation.ts'
import type { RemovalsChange } from './removals.ts'
import { isProgress } from './state.ts'
import type { Tables } from './tables.ts'

const MIN_CHECKPOINT_PAGES = 16
/** Free pages returned to the disk in one step: when it is full (small steps, since they need space in the log), and when idle. */
const FULL_SHRINK_PAGES = 64
const FULL_SHRINK_STEPS = 16
const IDLE_SHRINK_PAGES = 1024
/** The most rows that a batch removes itself, and that are removed in one transaction between two batches. */
const MAX_REMOVED_ROWS = 4096
const MAX_PIECE_ROWS = 256

/** The record of a batch in the log of a cluster. */
export interface BatchRecordPlace {
  /** undefined: the log may not have the record yet, and nothing is committed until `inLog` says where it is. */
  readonly place: LogPlace | undefined
  /** The log begins with this record: the database takes over its origin, and skips ids if the first database was restored. */
  readonly adopts?: { readonly origin: Origin; readonly isSkipping: boolean } | undefined
}

export interface WriterEvents {
  /** `room` is the number of bytes of values that certainly fit. */
  durable(batch: Batch, room: number): void
  full(): void
  room(): void
  failed(error: StorageError): void
}

export interface WriterParts {
  readonly database: Pick<Database, 'name' | 'inTransaction' | 'prepare' | 'pragma' | 'transaction'>
  /** Bytes that this process may still write on the disk of the database. */
  readonly freeBytes: () => number
  readonly tables: Tables
  readonly generation: Pick<Generation, 'advanced' | 'adopt'>
  readonly reserve: Pick<DiskReserve, 'bytes' | 'make' | 'release'>
  readonly events: WriterEvents
  /** The delay before a batch that did not fit is retried. */
  readonly retryMs: number
  /** The time without a batch after which the log is truncated. */
  readonly idleMs: number
  /** The size of the log, in pages, at which a checkpoint runs. */
  readonly checkpointPages: number
}

export class Writer {
  readonly #parts: WriterParts
  readonly #begin: Statement<unknown[]>
  readonly #commit: Statement<unknown[]>
  readonly #rollback: Statement<unknown[]>
  readonly #removal: () => void
  readonly #logSize: Statement<unknown[], number[]>
  readonly #checkpointNow: Statement<unknown[], number[]>
  readonly #freePages: Statement<unknown[], number>
  readonly #pages: Statement<unknown[], number>
  readonly #room: FreeSpace
  #batch: Batch | undefined
  /** Of the batch in flight; undefined without a cluster. */
  #record: BatchRecordPlace | undefined
  /** The statements of the batch in flight have run, and their transaction is open until the log has its record. */
  #isHeld = false
  /** A full disk was reported for the batch in flight. */
  #reported = false
  /** A full disk was reported, and the reserve is not restored yet. */
  #isFull = false
  #examined = false
  /** The batch in flight removes nothing itself: it marks all rows that are to be removed. */
  #marking = false
  #failed = false
  #isClosed = false
  #checkpointPages = 0
  /** The most rows to remove in the next piece: fewer after one that found no space. */
  #pieceRows = MAX_PIECE_ROWS
  #piece: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  /** A batch was written since the timer above was set. */
  #isBusy = false

  constructor(parts: WriterParts) {
    const { database } = parts
    this.#parts = parts
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
    this.#rollback = database.prepare('rollback')
    this.#removal = database.transaction(() => parts.tables.removals.step()).immediate
    this.#logSize = database.prepare<unknown[], number[]>('pragma wal_checkpoint(noop)').raw()
    this.#checkpointNow = database.prepare<unknown[], number[]>('pragma wal_checkpoint(passive)').raw()
    this.#freePages = database.prepare<unknown[], number>('pragma freelist_count').pluck()
    this.#pages = database.prepare<unknown[], number>('pragma page_count').pluck()
    this.#room = new FreeSpace(parts.freeBytes, parts.reserve, () => {
      const [, written = 0, carried = 0] = this.#logSize.get() ?? []
      return { written, carried }
    })
    this.#planCheckpoint()
  }

  get failed(): boolean {
    return this.#failed
  }

  /** Continues to remove what was left, at a start by an earlier process. */
  start(): void {
    if (this.#failed || !this.#parts.tables.removals.isPending) return
    // Messages are handled between two pieces: a batch waits for one of them at most.
    clearImmediate(this.#piece)
    this.#piece = setImmediate(() => this.#removePiece())
  }

  /** Takes one batch at a time, the next one only after `durable`. After `failed` or `close` nothing is written. */
  write(batch: Batch, record?: BatchRecordPlace): void {
    if (this.#failed || this.#isClosed) return
    this.#isBusy = true
    this.#batch = batch
    this.#record = record
    this.#reported = false
    this.#examined = false
    this.#marking = false
    this.#attempt()
  }

  /** The log of the cluster has the record of the batch in flight, which may be committed now. */
  inLog(place: LogPlace): void {
    this.#record = { ...this.#record, place }
    if (this.#isHeld) this.#end()
  }

  /** Whether the log of the cluster has the batch in flight is found by following: nothing of it is kept, and nothing is written again. */
  abandon(): void {
    this.#failed = true
    this.#stopTimers()
    this.#undo()
    this.#batch = undefined
  }

  /** Reads the frames of blocks, `undefined` for a missing or damaged one; stops early once `budget` bytes are reached. */
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

  /** Tries a batch that waits for space a last time; whether it succeeds or not, nothing is in progress afterwards. */
  close(): void {
    if (this.#batch !== undefined) this.#attempt()
    this.#batch = undefined
    this.#isClosed = true
    this.#stopTimers()
  }

  #stopTimers(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#idle)
    clearImmediate(this.#piece)
  }

  #readOne(id: number): Uint8Array | undefined {
    try {
      return this.#parts.tables.blocks.read(id)
    } catch (error) {
      // Recording a damaged row needs space; without it the damage is found again after the next start.
      if (!isNoRoom(error) && !isBusy(error)) this.#fail(error)
      return undefined
    }
  }

  #store(batch: Batch): void {
    const { generation, tables } = this.#parts
    const { blocks, state, removals } = tables
    if (this.#record?.adopts) generation.adopt(this.#record.adopts.origin, this.#record.adopts.isSkipping)
    for (const change of batch.changes) this.#change(change)
    // Removed first: that frees space for the rest.
    removals.blocks(batch.removed)
    state.store(batch, blocks.store(batch))
  }

  #change(change: Change): void {
    const { state, audit, removals } = this.#parts.tables
    removals.change(change)
    if (isAudit(change)) audit.change(change)
    else if (!isRemoval(change)) state.change(change)
  }

  #attempt(): void {
    const batch = this.#batch
    if (batch === undefined || this.#failed || this.#isHeld) return
    clearTimeout(this.#timer)
    const { removals } = this.#parts.tables
    try {
      removals.begin(this.#marking ? 0 : this.#room.removable(MAX_REMOVED_ROWS))
      this.#begin.run()
      this.#store(batch)
    } catch (error) {
      this.#undo()
      this.#recover(batch, error)
      return
    }
    this.#isHeld = true
    if (this.#record === undefined || this.#record.place !== undefined) this.#end()
  }

  /** Commits the transaction of the batch in flight. */
  #end(): void {
    const batch = this.#batch!
    const { removals, log } = this.#parts.tables
    try {
      if (this.#record?.place !== undefined) log.put(this.#record.place)
      this.#commit.run()
    } catch (error) {
      this.#undo()
      this.#recover(batch, error)
      return
    }
    this.#isHeld = false
    removals.committed()
    if (isProgress(batch) && !this.#note()) return
    this.#batch = undefined
    this.#parts.events.durable(batch, this.#room.bytesLeft)
    this.#checkpoint()
    this.#room.noteBatch(batch.dataLength)
    if (!this.#isFull && this.#room.isLow) this.#onLow()
    this.#settle()
  }

  /** SQLite itself rolls back after some errors. */
  #undo(): void {
    this.#isHeld = false
    if (this.#parts.database.inTransaction) this.#rollback.run()
    this.#parts.tables.removals.rolledBack()
  }

  /** Notes progress outside the database before a transaction id of it is used. Returns whether that worked. */
  #note(): boolean {
    try {
      this.#parts.generation.advanced()
      return true
    } catch (error) {
      this.#fail(error)
      return false
    }
  }

  /** After each transaction: gives space back as far as it is needed now, and removes what is left to remove. */
  #settle(): void {
    const { reserve, idleMs } = this.#parts
    if (this.#isFull) this.#restore()
    // It is still missing if the server was started on a disk without space for it.
    else reserve.make()
    this.#idle ??= setTimeout(() => this.#rest(), idleMs)
    this.start()
  }

  /** Removes some of the rows that batches have left, in a transaction that is small enough. */
  #removePiece(): void {
    if (this.#failed || this.#isHeld) return
    const { removals } = this.#parts.tables
    let rows = 1
    try {
      rows = this.#room.removable(this.#pieceRows)
      removals.begin(rows)
      this.#removal()
    } catch (error) {
      removals.rolledBack()
      this.#recoverPiece(error, rows)
      return
    }
    removals.committed()
    this.#pieceRows = Math.min(MAX_PIECE_ROWS, rows * 2)
    this.#checkpoint()
    // It may fit now.
    if (this.#batch === undefined) this.#settle()
    else this.#attempt()
  }

  #recoverPiece(error: unknown, rows: number): void {
    const { tables } = this.#parts
    const { setAsideCount } = tables.blocks
    if (isUnreadable(error)) {
      this.#guarded(() => tables.blocks.examine(tables.removals.next(rows)))
      // Each attempt sets at least one more block aside, so that there is an end.
      if (tables.blocks.setAsideCount > setAsideCount) {
        this.start()
        return
      }
    }
    if (!isNoRoom(error) && !isBusy(error)) {
      this.#fail(error)
      return
    }
    this.#pieceRows = Math.max(1, rows >> 1)
    const helped = isNoRoom(error) && this.#onFull()
    // After a checkpoint the log is overwritten from its beginning.
    this.#guarded(() => this.#checkpointNow.get())
    if (helped || rows > 1) this.start()
    else this.#retryLater()
  }

  /** Tries again what found no space, or another reader. */
  #retryLater(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#batch !== undefined) this.#attempt()
      else if (this.#isFull) this.#restore()
      this.start()
    }, this.#parts.retryMs)
  }

  /** Handles the error of a transaction, which was rolled back completely. */
  #recover(batch: Batch, error: unknown): void {
    const { tables } = this.#parts
    if (isUnreadable(error) && !this.#examined) {
      // A row that the batch deletes or replaces is damaged: it is set aside and must not block the others.
      this.#examined = true
      this.#marking = true
      this.#guarded(() => tables.blocks.examine(tables.blocks.touchedBy(batch)))
      this.#attempt()
      return
    }
    if (!isNoRoom(error) && !isBusy(error)) {
      this.#fail(error)
      return
    }
    if (isNoRoom(error)) {
      const isSmaller = !this.#marking
      this.#marking = true
      if (this.#onFull() || isSmaller) {
        // The checkpoint comes first: if the batch took the space that the log needs in the database, neither would ever fit.
        this.#guarded(() => this.#checkpointNow.get())
        this.#attempt()
        return
      }
      this.#shrink(FULL_SHRINK_PAGES)
      this.start()
    }
    this.#retryLater()
  }

  /** Reports a full disk. Returns whether the reserve freed space. */
  #onFull(): boolean {
    this.#isFull = true
    if (!this.#reported) this.#parts.events.full()
    this.#reported = true
    return this.#parts.reserve.release()
  }

  /** Space is low: runs a checkpoint, and reports a full disk if that is not enough. */
  #onLow(): void {
    this.#guarded(() => this.#checkpointNow.get())
    if (!this.#room.isLow) return
    this.#isFull = true
    this.#parts.events.full()
  }

  /** Restores the reserve; only then values are accepted again, since they would take the space that commits need. */
  #restore(): void {
    const { reserve, events, tables } = this.#parts
    const isThere = (): boolean => reserve.make() && this.#room.isEnough
    // Pages are not moved far while those between them are still to be removed.
    const steps = tables.removals.isPending ? 1 : FULL_SHRINK_STEPS
    for (let step = 0; step < steps && !isThere(); step++) {
      if (!this.#shrink(FULL_SHRINK_PAGES)) break
    }
    if (isThere()) {
      this.#isFull = false
      this.#reported = false
      events.room()
      return
    }
    this.#retryLater()
  }

  /** Returns free pages of the database to the disk; false if there were none or it failed. */
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
    if (pages < (this.#isFull ? 1 : this.#checkpointPages)) return
    try {
      this.#checkpointNow.get()
    } catch (error) {
      // The log does not fit into the database: reported now, while the reserve can still make space for it.
      if (!isNoRoom(error)) this.#fail(error)
      else if (this.#onFull()) this.#guarded(() => this.#checkpointNow.get())
    }
    this.#planCheckpoint()
  }

  /** Plans checkpoints at a smaller log while space is low: the log must still fit into the database. */
  #planCheckpoint(): void {
    const { freeBytes, checkpointPages } = this.#parts
    const pages = Math.floor(freeBytes() / PAGE_BYTES / 4)
    this.#checkpointPages = Math.max(MIN_CHECKPOINT_PAGES, Math.min(checkpointPages, pages))
  }

  /**
   * Returns space to the disk while idle, and of a database that is mostly free also between batches: a server that is never
   * idle would keep for good what a removed channel took. It does not wait for other readers of the database.
   */
  #rest(): void {
    const { idleMs } = this.#parts
    const isIdle = !this.#isBusy
    this.#idle = undefined
    this.#isBusy = false
    if (this.#batch !== undefined) return
    const more = (isIdle || this.#isMostlyFree) && this.#shrink(IDLE_SHRINK_PAGES)
    if (isIdle) this.#truncateLog()
    if ((more || !isIdle) && !this.#failed) this.#idle = setTimeout(() => this.#rest(), idleMs)
  }

  get #isMostlyFree(): boolean {
    return (this.#freePages.get() ?? 0) > (this.#pages.get() ?? 0) / 2
  }

  #truncateLog(): void {
    const { database } = this.#parts
    const patience = database.pragma('busy_timeout', { simple: true })
    database.pragma('busy_timeout = 0')
    this.#guarded(() => database.pragma('wal_checkpoint(truncate)'))
    database.pragma(`busy_timeout = ${patience}`)
  }

  /**
   * Runs work that may fail because of missing space, a damaged page or another reader, and is then left for later. After a
   * failure nothing is run, above all no second fsync.
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
    this.#stopTimers()
    this.#parts.events.failed(storageError(error, this.#parts.database.name))
  }
}

function isRemoval(change: Change): change is RemovalsChange {
  return 'remove' in change && (change.remove === 'instance' || change.remove === 'execution')
}

function isAudit(change: Change): change is AuditChange {
  return 'put' in change ? change.put === 'audit' : change.remove === 'audit'
}
