/**
 * Group commit: everything that changed since the last batch is the next one, and one is in flight at a time: a turn never
 * queues a second one. `mark()` names the batch after which everything changed so far is stored; responses wait for it.
 */
import type { Batch, Change, Store } from '../../storage/store.ts'
import { BatchBuilder } from './batch.ts'
import type { Task, TurnScheduler } from './turn-scheduler.ts'

/** Something with state to be stored: a queue. */
export interface Journaled {
  /** Puts what is to be stored into a batch. */
  submit(builder: BatchBuilder): void
  /** That batch is durable. There is no other on its way. */
  durable(): void
}

/** Somebody who waits for a mark. */
export interface DurabilityWaiter {
  durable(mark: number): void
}

/**
 * A batch's buffer is used again, unless it has grown beyond this: twice what feeds may leave unstored, since it grows by
 * doubling. Given up each time, it made a seventh of the server's time garbage collection.
 */
const KEPT_BUFFER_BYTES = 32 << 20

export class Journal implements Task {
  readonly #store: Pick<Store, 'write'>
  readonly #turn: TurnScheduler
  readonly #clock: { age(): number; wallMs(): number }
  #dirty = new Set<Journaled>()
  /** Those that have something in the batch on its way. */
  #taken = new Set<Journaled>()
  readonly #waiting = new Set<DurabilityWaiter>()
  #changes: Change[] = []
  /** The batch last written, and the last durable one. */
  #written = 0
  #durable = 0
  /** The highest mark that was named. */
  #promised = 0
  /** Of the last batch: the store's until that is durable. */
  #buffer: SharedArrayBuffer | undefined
  #stopped = false

  constructor(store: Pick<Store, 'write'>, turn: TurnScheduler, clock: { age(): number; wallMs(): number }) {
    this.#store = store
    this.#turn = turn
    this.#clock = clock
  }

  /** The last mark that is stored. */
  get durable(): number {
    return this.#durable
  }

  /** True while something is changed or under way. */
  get busy(): boolean {
    return this.#isChanged || this.#written > this.#durable
  }

  get #isChanged(): boolean {
    return this.#dirty.size > 0 || this.#changes.length > 0 || this.#promised > this.#written
  }

  touch(source: Journaled): void {
    this.#dirty.add(source)
    this.#turn.schedule('store', this)
  }

  /** A source that is gone: nothing of it is stored any more. */
  forget(source: Journaled): void {
    this.#dirty.delete(source)
  }

  change(change: Change): void {
    this.#changes.push(change)
    this.#turn.schedule('store', this)
  }

  /** Names everything changed so far; stored once `durable` is not below it. */
  mark(): number {
    if (!this.#isChanged) return this.#written
    this.#promised = this.#written + 1
    return this.#promised
  }

  /** Tells once, when the next mark is stored. */
  wait(waiting: DurabilityWaiter): void {
    this.#waiting.add(waiting)
  }

  /** Everything changed so far is stored. */
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
    if (this.#stopped || this.#written > this.#durable || !this.#isChanged) return
    this.#written++
    this.#store.write(this.#build())
  }

  #build(): Batch {
    const builder = new BatchBuilder(this.#buffer)
    builder.changes = this.#changes
    this.#changes = []
    const taken = this.#dirty
    this.#dirty = this.#taken
    this.#taken = taken
    for (const source of taken) source.submit(builder)
    this.#buffer = builder.buffer.byteLength <= KEPT_BUFFER_BYTES ? builder.buffer : undefined
    return builder.build(this.#written, this.#clock.age(), this.#clock.wallMs())
  }

  /** The store's word that a batch is durable. */
  onDurable(number: number): void {
    this.#durable = number
    for (const source of this.#taken) source.durable()
    this.#taken.clear()
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const waiter of waiting) waiter.durable(number)
    if (this.#isChanged) this.#turn.schedule('store', this)
  }

  /** Storing failed for good: nothing more is written or acknowledged. */
  stop(): void {
    this.#stopped = true
  }
}
