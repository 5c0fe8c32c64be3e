/**
 * Writes batches: each is one transaction, retried while there is no space and abandoned on any other error. Between the batches
 * it removes what they have left to remove. SQLite is synchronous: all of this runs on the storage thread, between two messages.
 *
 *     state          | event                                                                | next
 *     ---------------|----------------------------------------------------------------------|--------
 *     idle           | write                                                                | waiting
 *     waiting        | an attempt is committed                                              | idle
 *     waiting        | an attempt has run, and the log of the cluster may lack its record   | held
 *     waiting, held  | an attempt or its commit meets an error that may go away             | waiting
 *     held           | inLog, and it is committed                                           | idle
 *     any            | an error that does not go away; abandon                              | failed
 *     all but failed | close                                                                | closed
 *
 * A batch that waits is tried at once when it comes, then after a piece of what is left was removed, after `retryMs`, and when the
 * writer is closed. An attempt that fails is rolled back, and what is tried next depends on how the batch was tried:
 *
 *     error      | tried by          | next                                                            | when
 *     -----------|-------------------|-----------------------------------------------------------------|---------
 *     unreadable | removing, marking | examined: the damaged rows that it touches are set aside        | at once
 *     unreadable | examined          | the writer has failed                                           |
 *     no room    | removing          | marking: all that it would remove is marked; after a checkpoint | at once
 *     no room    | marking, examined | the same, after a checkpoint, if the reserve has made space     | at once
 *     no room    | marking, examined | the same, after free pages were returned to the disk            | it waits
 *     busy       | any               | the same                                                        | it waits
 *     any other  | any               | the writer has failed                                           |
 *
 * Whether the disk counts as full does not depend on this: disk-room.ts has those states. A piece of the rows that are left is one
 * transaction as well. If it fails, it is tried again with half as many rows as long as it has several, or the reserve makes space
 * for it; otherwise it waits.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { LogPlace } from '../replicated/place.ts'
import type { Batch, Change, StorageError } from '../store.ts'
import type { AuditChange } from './audit.ts'
import { DiskRoom, type DiskRoomParts } from './disk-room.ts'
import { isBusy, isNoRoom, isUnreadable, storageError } from './errors.ts'
import type { Generation, Origin } from './generation.ts'
import type { RemovalsChange } from './removals.ts'
import { isProgress } from './state.ts'
import type { Tables } from './tables.ts'

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

export interface WriterParts extends DiskRoomParts {
  readonly database: Pick<Database, 'name' | 'inTransaction' | 'prepare' | 'pragma' | 'transaction'>
  readonly tables: Tables
  readonly generation: Pick<Generation, 'advanced' | 'adopt'>
  readonly events: WriterEvents
  /** The delay before a batch that did not fit is retried. */
  readonly retryMs: number
  /** The time without a batch after which the log is truncated. */
  readonly idleMs: number
}

/** The batch in flight. */
interface Flight {
  readonly batch: Batch
  /** Undefined without a cluster. */
  record: BatchRecordPlace | undefined
  triedBy: 'removing' | 'marking' | 'examined'
}
type WriterState =
  | { readonly name: 'idle' }
  /** Nothing of the batch is stored. */
  | { readonly name: 'waiting'; readonly flight: Flight }
  /** The statements of the batch have run, and their transaction is open. */
  | { readonly name: 'held'; readonly flight: Flight }
  | { readonly name: 'failed' }
  | { readonly name: 'closed' }

export class Writer {
  readonly #parts: WriterParts
  readonly #room: DiskRoom
  readonly #begin: Statement<unknown[]>
  readonly #commit: Statement<unknown[]>
  readonly #rollback: Statement<unknown[]>
  readonly #removal: () => void
  #state: WriterState = { name: 'idle' }
  /** The most rows to remove in the next piece: fewer after one that found no space. */
  #pieceRows = MAX_PIECE_ROWS
  #piece: NodeJS.Immediate | undefined
  #retry: NodeJS.Timeout | undefined
  #rest: NodeJS.Timeout | undefined
  /** A batch was written since the timer above was set. */
  #isBusy = false

  constructor(parts: WriterParts) {
    const { database } = parts
    this.#parts = parts
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
    this.#rollback = database.prepare('rollback')
    this.#removal = database.transaction(() => parts.tables.removals.step()).immediate
    this.#room = new DiskRoom(parts, this)
  }

  get failed(): boolean {
    return this.#state.name === 'failed'
  }

  /** Continues to remove what was left, at a start by an earlier process. */
  start(): void {
    if (this.failed || !this.#parts.tables.removals.isPending) return
    // Messages are handled between two pieces: a batch waits for one of them at most.
    clearImmediate(this.#piece)
    this.#piece = setImmediate(() => this.#removePiece())
  }

  /** Takes one batch at a time, the next one only after `durable`. After `failed` or `close` nothing is written. */
  write(batch: Batch, record?: BatchRecordPlace): void {
    if (this.#state.name === 'failed' || this.#state.name === 'closed') return
    this.#isBusy = true
    this.#room.beginBatch()
    const flight: Flight = { batch, record, triedBy: 'removing' }
    this.#enter({ name: 'waiting', flight })
    this.#attempt(flight)
  }

  /** The log of the cluster has the record of the batch in flight, which may be committed now. */
  inLog(place: LogPlace): void {
    if (this.#state.name !== 'waiting' && this.#state.name !== 'held') return
    const { flight } = this.#state
    flight.record = { ...flight.record, place }
    if (this.#state.name === 'held') this.#attempt(flight)
  }

  /** Whether the log of the cluster has the batch in flight is found by following: nothing of it is kept, and nothing is written again. */
  abandon(): void {
    this.#enter({ name: 'failed' })
    this.#undo()
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
    if (this.#state.name === 'waiting') this.#attempt(this.#state.flight)
    if (!this.failed) this.#enter({ name: 'closed' })
    this.#stopTimers()
  }

  /** Reports an error after which nothing may be written. */
  fail(error: unknown): void {
    if (this.failed) return
    this.#enter({ name: 'failed' })
    this.#parts.events.failed(storageError(error, this.#parts.database.name))
  }

  /** The only place where the state changes. */
  #enter(state: WriterState): void {
    this.#state = state
    if (state.name === 'failed' || state.name === 'closed') this.#stopTimers()
  }

  #stopTimers(): void {
    clearTimeout(this.#retry)
    clearTimeout(this.#rest)
    clearImmediate(this.#piece)
  }

  #readOne(id: number): Uint8Array | undefined {
    try {
      return this.#parts.tables.blocks.read(id)
    } catch (error) {
      // Recording a damaged row needs space; without it the damage is found again after the next start.
      if (!isNoRoom(error) && !isBusy(error)) this.fail(error)
      return undefined
    }
  }

  /** Tries the batch in flight, as often as that makes sense at once. */
  #attempt(flight: Flight): void {
    clearTimeout(this.#retry)
    let isRetried = true
    while (isRetried) {
      try {
        if (this.#state.name !== 'held') this.#run(flight)
        if (flight.record !== undefined && flight.record.place === undefined) {
          this.#enter({ name: 'held', flight })
          return
        }
        if (flight.record?.place !== undefined) this.#parts.tables.log.put(flight.record.place)
        this.#commit.run()
        isRetried = false
      } catch (error) {
        this.#undo()
        this.#enter({ name: 'waiting', flight })
        if (!this.#mend(flight, error)) return
      }
    }
    this.#committed(flight.batch)
  }

  /** Opens the transaction of a batch, and runs its statements. */
  #run({ batch, record, triedBy }: Flight): void {
    const { generation, tables } = this.#parts
    const { blocks, state, removals } = tables
    removals.begin(triedBy === 'removing' ? this.#room.removable(MAX_REMOVED_ROWS) : 0)
    this.#begin.run()
    if (record?.adopts) generation.adopt(record.adopts.origin, record.adopts.isSkipping)
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

  /** SQLite itself rolls back after some errors. */
  #undo(): void {
    if (this.#parts.database.inTransaction) this.#rollback.run()
    this.#parts.tables.removals.rolledBack()
  }

  /**
   * Handles the error of an attempt, which was rolled back completely: the second table at the beginning of this file. Returns
   * whether the batch is to be tried again at once; otherwise it waits, or the writer has failed.
   */
  #mend(flight: Flight, error: unknown): boolean {
    const { blocks } = this.#parts.tables
    const { triedBy } = flight
    if (isUnreadable(error) && triedBy !== 'examined') {
      // A row that the batch deletes or replaces is damaged: it is set aside and must not block the others.
      flight.triedBy = 'examined'
      this.#room.guarded(() => blocks.examine(blocks.touchedBy(flight.batch)))
      return !this.failed
    }
    if (!isNoRoom(error) && !isBusy(error)) {
      this.fail(error)
      return false
    }
    if (isNoRoom(error)) {
      if (triedBy === 'removing') flight.triedBy = 'marking'
      if (this.#room.makeRoom() || triedBy === 'removing') {
        // The checkpoint comes first: if the batch took the space that the log needs in the database, neither would ever fit.
        this.#room.checkpoint()
        return !this.failed
      }
      this.#room.shrink()
      this.start()
    }
    this.#retryLater()
    return false
  }

  #committed(batch: Batch): void {
    const { generation, tables, events } = this.#parts
    tables.removals.committed()
    try {
      // Noted outside the database before a transaction id of it is used.
      if (isProgress(batch)) generation.advanced()
    } catch (error) {
      this.fail(error)
      return
    }
    this.#enter({ name: 'idle' })
    events.durable(batch, this.#room.bytesLeft)
    this.#room.stored(batch.dataLength)
    this.#settle()
  }

  /** After each transaction: gives space back as far as it is needed now, and removes what is left to remove. */
  #settle(): void {
    if (this.failed) return
    this.#restore()
    this.#rest ??= setTimeout(() => this.#atRest(), this.#parts.idleMs)
    this.start()
  }

  #restore(): void {
    if (!this.#room.restore(this.#parts.tables.removals.isPending)) this.#retryLater()
  }

  /** Removes some of the rows that batches have left, in a transaction that is small enough. */
  #removePiece(): void {
    if (this.failed || this.#state.name === 'held') return
    const { removals } = this.#parts.tables
    let rows = 1
    try {
      rows = this.#room.removable(this.#pieceRows)
      removals.begin(rows)
      this.#removal()
    } catch (error) {
      removals.rolledBack()
      if (this.#mendPiece(error, rows)) this.start()
      else this.#retryLater()
      return
    }
    removals.committed()
    this.#pieceRows = Math.min(MAX_PIECE_ROWS, rows * 2)
    this.#room.checkpointIfLarge()
    // It may fit now.
    if (this.#state.name === 'waiting') this.#attempt(this.#state.flight)
    else this.#settle()
  }

  /** Returns whether the piece is to be tried again at once. */
  #mendPiece(error: unknown, rows: number): boolean {
    const { blocks, removals } = this.#parts.tables
    const { setAsideCount } = blocks
    if (isUnreadable(error)) {
      this.#room.guarded(() => blocks.examine(removals.next(rows)))
      // Each attempt sets at least one more block aside, so that there is an end.
      if (blocks.setAsideCount > setAsideCount) return true
    }
    if (!isNoRoom(error) && !isBusy(error)) {
      this.fail(error)
      return false
    }
    this.#pieceRows = Math.max(1, rows >> 1)
    const isHelped = isNoRoom(error) && this.#room.makeRoom()
    // After a checkpoint the log is overwritten from its beginning.
    this.#room.checkpoint()
    return isHelped || rows > 1
  }

  /** Tries again what found no space, or another reader. */
  #retryLater(): void {
    clearTimeout(this.#retry)
    if (this.failed) return
    this.#retry = setTimeout(() => {
      if (this.#state.name === 'waiting') this.#attempt(this.#state.flight)
      else if (!this.#room.isEnough) this.#restore()
      this.start()
    }, this.#parts.retryMs)
  }

  /**
   * Returns space to the disk while idle, and of a database that is mostly free also between batches: a server that is never
   * idle would keep for good what a removed channel took.
   */
  #atRest(): void {
    const { idleMs } = this.#parts
    const isIdle = !this.#isBusy
    this.#rest = undefined
    this.#isBusy = false
    if (this.#state.name === 'waiting' || this.#state.name === 'held') return
    const more = (isIdle || this.#room.isMostlyFree) && this.#room.shrinkAtRest()
    if (isIdle) this.#room.truncateLog()
    if ((more || !isIdle) && !this.failed) this.#rest = setTimeout(() => this.#atRest(), idleMs)
  }
}

function isRemoval(change: Change): change is RemovalsChange {
  return 'remove' in change && (change.remove === 'instance' || change.remove === 'execution')
}

function isAudit(change: Change): change is AuditChange {
  return 'put' in change ? change.put === 'audit' : change.remove === 'audit'
}
