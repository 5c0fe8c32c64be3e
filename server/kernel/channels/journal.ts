/**
 * Group commit: everything that changed since the last batch is the next one. One batch is in flight at a time; a turn never
 * queues a second one. `mark()` returns the number of the batch after which everything changed so far is stored; responses
 * wait for it.
 */
import type { Batch, Change, Store } from '../../../storage/store.ts'
import type { Clock, Timer } from '../core/clock.ts'
import { type FaultOwner, runOwned } from '../core/faults.ts'
import { BatchBuilder } from './batch.ts'
import type { QueueHost } from './queue-host.ts'
import type { Task, TurnScheduler } from './turn-scheduler.ts'

/** An object with state to be stored: a queue. */
export interface Journaled {
  /** Puts what is to be stored into a batch. */
  submit(builder: BatchBuilder): void
  /** That batch is durable. No other one is on its way. */
  durable(): void
}

/** An object that waits for a mark. */
export interface DurabilityWaiter extends FaultOwner {
  durable(mark: number): void
}

/**
 * A batch's buffer is used again unless it has grown beyond this: twice what feeds may leave unstored, since it grows by
 * doubling. With a new buffer for each batch, garbage collection took a seventh of the server's time.
 */
const KEPT_BUFFER_BYTES = 32 << 20
/** A row without its texts and bytes. */
const ROW_BYTES = 64

/** The interval at which what waits for the disk checks whether the disk is full. */
const DISK_CHECK_MS = 500

interface Disk {
  readonly journal: Pick<Journal, 'whenStored'>
  readonly host: Pick<QueueHost, 'refusing'>
  readonly clock: Pick<Clock, 'setInterval' | 'clear'>
}

/** Resolves when everything changed so far is stored (true), or when the disk is full (false): the wait might have no end. */
export async function whenStoredOrFull({ journal, host, clock }: Disk): Promise<boolean> {
  if (host.refusing === 'full') return false
  return new Promise((resolve) => {
    const done = (isStored: boolean): void => {
      clock.clear(timer)
      resolve(isStored)
    }
    const timer = clock.setInterval(() => {
      if (host.refusing === 'full') done(false)
    }, DISK_CHECK_MS)
    void journal.whenStored().then(() => done(true))
  })
}

/**
 * How long values wait for a batch while nobody waits for that. A consumer commits most of them meanwhile, and a value that is
 * committed before a batch takes it is never written: at 1,000 values a second that is three quarters of the bytes.
 */
interface Linger {
  readonly lingerMs: number
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimeout'>
}

export class Journal implements Task {
  readonly #store: Pick<Store, 'write'>
  readonly #turn: TurnScheduler
  readonly #clock: { age(): number; wallMs(): number }
  #dirty = new Set<Journaled>()
  /** The sources with something in the batch on its way. */
  #taken = new Set<Journaled>()
  readonly #waiting = new Set<DurabilityWaiter>()
  #changes: Change[] = []
  /** Bytes of the changes that wait, and of those in the batch on its way. */
  #changedBytes = 0
  #takenBytes = 0
  /** The number of the last batch that was written, and of the last durable one. */
  #written = 0
  #durable = 0
  /** The highest mark that was returned. */
  #promised = 0
  /** The buffer of the last batch; it belongs to the store until that batch is durable. */
  #buffer: SharedArrayBuffer | undefined
  #stopped = false
  #channelsWritten = 0
  readonly #linger: Linger | undefined
  /** Since when something is changed, in monotonic ms. */
  #changedSince: number | undefined
  #lingering: Timer | undefined
  #isUrgent = false

  /** Without `linger`, what has changed in a turn is written at its end if no batch is on its way. */
  constructor(
    store: Pick<Store, 'write'>,
    turn: TurnScheduler,
    clock: { age(): number; wallMs(): number },
    linger?: Linger,
  ) {
    this.#store = store
    this.#turn = turn
    this.#clock = clock
    this.#linger = linger
  }

  /** The channels that the last turn has written. */
  get channelsWritten(): number {
    return this.#channelsWritten
  }

  /** The last mark that is stored. */
  get durable(): number {
    return this.#durable
  }

  /** True while something is changed, or a batch is on its way. */
  get busy(): boolean {
    return this.#isChanged || this.#written > this.#durable
  }

  get #isChanged(): boolean {
    return this.#dirty.size > 0 || this.#changes.length > 0 || this.#promised > this.#written
  }

  /** Bytes of changes that no durable batch has yet; values are not counted here. */
  get unstored(): number {
    return this.#changedBytes + this.#takenBytes
  }

  touch(source: Journaled): void {
    this.#dirty.add(source)
    this.#turn.schedule('store', this)
  }

  /** Forgets a source that is gone: it is not stored any more. */
  forget(source: Journaled): void {
    this.#dirty.delete(source)
  }

  change(change: Change): void {
    this.#changes.push(change)
    this.#changedBytes += sizeOf(change)
    this.#turn.schedule('store', this)
  }

  /** The mark of everything changed so far: it is stored once `durable` has reached it. */
  mark(): number {
    if (!this.#isChanged) return this.#written
    this.#promised = this.#written + 1
    this.hurry()
    return this.#promised
  }

  /** Calls back once, when the next batch is durable. */
  wait(waiting: DurabilityWaiter): void {
    this.#waiting.add(waiting)
    this.hurry()
  }

  /** Somebody waits for the next batch. */
  hurry(): void {
    this.#isUrgent = true
    if (this.#lingering === undefined) return
    this.#lingering.cancel()
    this.#lingering = undefined
    this.#turn.schedule('store', this)
  }

  /** Resolves when everything changed so far is stored. */
  whenStored(): Promise<void> {
    const mark = this.mark()
    if (mark <= this.#durable) return Promise.resolve()
    return new Promise((resolve) => {
      const waiting: DurabilityWaiter = {
        durable: (stored) => (stored >= mark ? resolve() : this.wait(waiting)),
      }
      this.wait(waiting)
    })
  }

  atTurnEnd(): void {
    this.#channelsWritten = 0
    if (!this.#isChanged) this.#changedSince = undefined
    else if (!this.#isLingering() && this.#written === this.#durable && !this.#stopped) this.#write()
  }

  #write(): void {
    this.#changedSince = undefined
    this.#isUrgent = false
    this.#written++
    this.#store.write(this.#build())
    this.#channelsWritten = this.#taken.size
  }

  /** Whether nobody waits for what has changed, and it may wait for more. */
  #isLingering(): boolean {
    if (this.#linger === undefined || this.#isUrgent || this.#changes.length > 0) return false
    const { lingerMs, clock } = this.#linger
    const now = clock.monotonicMs()
    this.#changedSince ??= now
    const leftMs = this.#changedSince + lingerMs - now
    if (leftMs <= 0) return false
    this.#lingering ??= clock.setTimeout(() => {
      this.#lingering = undefined
      this.#turn.schedule('store', this)
    }, leftMs)
    return true
  }

  #build(): Batch {
    const builder = new BatchBuilder(this.#buffer)
    builder.changes = this.#changes
    this.#changes = []
    this.#takenBytes = this.#changedBytes
    this.#changedBytes = 0
    const taken = this.#dirty
    this.#dirty = this.#taken
    this.#taken = taken
    for (const source of taken) source.submit(builder)
    this.#buffer = builder.buffer.byteLength <= KEPT_BUFFER_BYTES ? builder.buffer : undefined
    return builder.build(this.#written, this.#clock.age(), this.#clock.wallMs())
  }

  /** The store reports that a batch is durable. */
  onDurable(number: number): void {
    this.#durable = number
    this.#takenBytes = 0
    for (const source of this.#taken) source.durable()
    this.#taken.clear()
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const waiter of waiting) runOwned(waiter, () => waiter.durable(number))
    if (this.#isChanged) this.#turn.schedule('store', this)
  }

  /** Storing failed for good, or the server ends after a fault: nothing more is written or acknowledged. */
  stop(): void {
    this.#stopped = true
  }
}

/** About the bytes that a change takes on the disk: a consumer chooses the arguments of a metric, and how many it binds. */
function sizeOf(change: Change): number {
  if (!('put' in change)) return ROW_BYTES
  let bytes = ROW_BYTES
  for (const column of Object.values(change.row)) {
    if (typeof column === 'string' || column instanceof Uint8Array) bytes += column.length
  }
  return bytes
}
