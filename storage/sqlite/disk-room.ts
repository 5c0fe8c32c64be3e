/**
 * The space on the disk of the database: when checkpoints run, when the disk counts as full, and what makes room again.
 *
 *     state     | event                                                     | next   | what is done
 *     ----------|-----------------------------------------------------------|--------|-----------------------------------
 *     enough    | space is low after a batch and a checkpoint               | low    | `full` is reported
 *     enough    | a transaction or a checkpoint finds no space              | full   | `full` is reported, reserve released
 *     low       | a transaction or a checkpoint finds no space              | full   | `full` is reported, reserve released
 *     full      | a transaction or a checkpoint finds no space              | full   | reserve released
 *     full      | another batch begins, for which `full` may be reported    | low    |
 *     low, full | the reserve is restored, and there is enough space        | enough | `room` is reported
 */
import type { Database, Statement } from 'better-sqlite3'
import { PAGE_BYTES } from './database.ts'
import { type DiskReserve, FreeSpace } from './disk-space.ts'
import { isBusy, isNoRoom, isUnreadable } from './errors.ts'

const MIN_CHECKPOINT_PAGES = 16
/** Free pages returned to the disk in one step: when it is full (small steps, since they need space in the log), and when idle. */
const FULL_SHRINK_PAGES = 64
const FULL_SHRINK_STEPS = 16
const IDLE_SHRINK_PAGES = 1024

export interface DiskRoomParts {
  readonly database: Pick<Database, 'prepare' | 'pragma'>
  /** Bytes that this process may still write on the disk of the database. */
  readonly freeBytes: () => number
  readonly reserve: Pick<DiskReserve, 'bytes' | 'make' | 'release'>
  readonly events: { full(): void; room(): void }
  /** The size of the log, in pages, at which a checkpoint runs. */
  readonly checkpointPages: number
}

/** Whoever writes: after it has failed nothing is run any more, above all no second fsync. */
export interface Failing {
  readonly failed: boolean
  fail(error: unknown): void
}

export class DiskRoom {
  readonly #parts: DiskRoomParts
  readonly #writer: Failing
  readonly #logSize: Statement<unknown[], number[]>
  readonly #checkpointNow: Statement<unknown[], number[]>
  readonly #freePages: Statement<unknown[], number>
  readonly #pages: Statement<unknown[], number>
  readonly #space: FreeSpace
  #state: 'enough' | 'low' | 'full' = 'enough'
  #checkpointPages = 0

  constructor(parts: DiskRoomParts, writer: Failing) {
    const { database, freeBytes, reserve } = parts
    this.#parts = parts
    this.#writer = writer
    this.#logSize = database.prepare<unknown[], number[]>('pragma wal_checkpoint(noop)').raw()
    this.#checkpointNow = database.prepare<unknown[], number[]>('pragma wal_checkpoint(passive)').raw()
    this.#freePages = database.prepare<unknown[], number>('pragma freelist_count').pluck()
    this.#pages = database.prepare<unknown[], number>('pragma page_count').pluck()
    this.#space = new FreeSpace(freeBytes, reserve, () => {
      const [, written = 0, carried = 0] = this.#logSize.get() ?? []
      return { written, carried }
    })
    this.#planCheckpoint()
  }

  /** Whether no full disk was reported, or the reserve is restored since. */
  get isEnough(): boolean {
    return this.#state === 'enough'
  }

  /** Bytes of values that certainly fit. */
  get bytesLeft(): number {
    return this.#space.bytesLeft
  }

  /** How many rows may be removed in one transaction, at most `most` and at least one. */
  removable(most: number): number {
    return this.#space.removable(most)
  }

  /** Another batch begins. */
  beginBatch(): void {
    if (this.#state === 'full') this.#state = 'low'
  }

  /** A transaction found no space. Returns whether the reserve made some. */
  makeRoom(): boolean {
    const isReported = this.#state === 'full'
    this.#state = 'full'
    if (!isReported) this.#parts.events.full()
    return this.#parts.reserve.release()
  }

  /** A batch of so many bytes of values was stored. */
  stored(bytes: number): void {
    this.checkpointIfLarge()
    this.#space.noteBatch(bytes)
    if (this.#writer.failed || this.#state !== 'enough' || !this.#space.isLow) return
    this.checkpoint()
    if (this.#writer.failed || !this.#space.isLow) return
    this.#state = 'low'
    this.#parts.events.full()
  }

  /**
   * Makes the reserve again, on a full disk with the space that was freed; only then values are accepted again, since they would
   * take the space that commits need. Returns whether there is enough now.
   */
  restore(isRemoving: boolean): boolean {
    // Without a full disk it is missing only if the server was started on a disk without space for it.
    if (this.#state === 'enough') {
      this.#parts.reserve.make()
      return true
    }
    const isThere = (): boolean => this.#parts.reserve.make() && this.#space.isEnough
    // Pages are not moved far while those between them are still to be removed.
    const steps = isRemoving ? 1 : FULL_SHRINK_STEPS
    for (let step = 0; step < steps && !isThere(); step++) {
      if (!this.#shrink(FULL_SHRINK_PAGES)) break
    }
    if (this.#writer.failed || !isThere()) return false
    this.#state = 'enough'
    this.#parts.events.room()
    return true
  }

  /** Copies the log into the database, as far as that is possible now. */
  checkpoint(): void {
    this.guarded(() => this.#checkpointNow.get())
  }

  /** The same, if the log is as large as planned. */
  checkpointIfLarge(): void {
    const [, pages = 0] = this.#logSize.get() ?? []
    if (pages < (this.#state === 'enough' ? this.#checkpointPages : 1)) return
    try {
      this.#checkpointNow.get()
    } catch (error) {
      // The log does not fit into the database: reported now, while the reserve can still make space for it.
      if (!isNoRoom(error)) this.#writer.fail(error)
      else if (this.makeRoom()) this.checkpoint()
    }
    this.#planCheckpoint()
  }

  /** Returns some free pages to a disk without room. */
  shrink(): void {
    this.#shrink(FULL_SHRINK_PAGES)
  }

  /** Returns free pages while nothing else is to be done; false if there were none. */
  shrinkAtRest(): boolean {
    return this.#shrink(IDLE_SHRINK_PAGES)
  }

  get isMostlyFree(): boolean {
    return (this.#freePages.get() ?? 0) > (this.#pages.get() ?? 0) / 2
  }

  /** Gives the space of the log back. It does not wait for other readers of the database. */
  truncateLog(): void {
    const { database } = this.#parts
    const patience = database.pragma('busy_timeout', { simple: true })
    database.pragma('busy_timeout = 0')
    this.guarded(() => database.pragma('wal_checkpoint(truncate)'))
    database.pragma(`busy_timeout = ${patience}`)
  }

  /** Runs work that may fail because of missing space, a damaged page or another reader, and is then left for later. */
  guarded(work: () => void): boolean {
    if (this.#writer.failed) return false
    try {
      work()
      return true
    } catch (error) {
      if (!isNoRoom(error) && !isBusy(error) && !isUnreadable(error)) this.#writer.fail(error)
      return false
    }
  }

  #shrink(pages: number): boolean {
    const some = this.#freePages.get() !== 0
    const shrunk = this.guarded(() => {
      if (some) this.#parts.database.pragma(`incremental_vacuum(${pages})`)
      this.#checkpointNow.get()
    })
    return some && shrunk
  }

  /** Plans checkpoints at a smaller log while space is low: the log must still fit into the database. */
  #planCheckpoint(): void {
    const { freeBytes, checkpointPages } = this.#parts
    const pages = Math.floor(freeBytes() / PAGE_BYTES / 4)
    this.#checkpointPages = Math.max(MIN_CHECKPOINT_PAGES, Math.min(checkpointPages, pages))
  }
}
