/**
 * The transaction ids of a channel. They are reserved on disk in ranges ahead of use, so that a crash may skip ids but never
 * gives one twice; a quiet channel gives the rest of its range back.
 */

/** Size of a range, renewed when half of it is used. A crash skips what is left of it; there are 2^53 ids. */
const RANGE = 1 << 21

export class TransactionIds {
  #next: number
  readonly #origin: number
  #reserved: number
  #durableNext: number
  /** The same two for the batch on its way. */
  #submittedReserved = 0
  #reserves = false
  #submittedNext = 0

  constructor(origin: number) {
    this.#origin = origin
    this.#next = this.#reserved = this.#durableNext = origin
  }

  /** The id that is given next. */
  get next(): number {
    return this.#next
  }

  /** Ids below are reserved on disk: they may be sent. */
  get reserved(): number {
    return this.#reserved
  }

  /** `next` as of the last durable batch: what has an id from here on may not be on disk, be it a GAP. */
  get durableNext(): number {
    return this.#durableNext
  }

  /** Gives `count` consecutive ids; returns the first. */
  give(count = 1): number {
    const first = this.#next
    this.#next = first + count
    return first
  }

  wasGiven(id: number): boolean {
    return id >= this.#origin && id < this.#next
  }

  /** Whether the last batch reserves other ids than the one before it. */
  get reserves(): boolean {
    return this.#reserves
  }

  /** A batch is made; returns the end of the range that it reserves: at least half a range, or nothing beyond `next`. */
  submit(isActive: boolean): number {
    const isEnough = this.#submittedReserved - this.#next >= RANGE / 2
    const active = isEnough ? this.#submittedReserved : this.#next + RANGE
    const reserving = isActive ? active : this.#next
    this.#reserves = reserving !== this.#submittedReserved
    // What is given back must not be used any more while this batch is on its way.
    this.#reserved = Math.min(this.#reserved, reserving)
    this.#submittedReserved = reserving
    this.#submittedNext = this.#next
    return reserving
  }

  /** That batch is durable. */
  durable(): void {
    this.#reserved = this.#submittedReserved
    this.#durableNext = this.#submittedNext
  }

  /** As they were stored. */
  restore(next: number, reserved: number): void {
    this.#next = next
    this.#reserved = reserved
  }

  /** Everything is restored. After an unclean end, ids that may have been given are skipped. */
  recovered(isClean: boolean): void {
    this.#durableNext = this.#next
    if (!isClean) this.#next = Math.max(this.#next, this.#reserved)
  }
}
