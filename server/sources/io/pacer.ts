/**
 * Feeds are paced by storage, never by consumers. What arrived is taken in slices, all feeds together at most 16 KiB in a
 * turn of the event loop, and not at all while too much waits to be stored: two bytes of a feed may become 124 on a
 * channel, and the kernel hands over 2 MiB at once.
 */

/** Bytes taken in one turn, over all feeds. */
const TURN_BYTES = 16 << 10

/** Bytes between two looks at what waits to be stored: of 2-byte values for 1,000 channels they make 32 MB. */
const PIECE_BYTES = 512

/** Bytes that one feed may hold here before it has to stop reading. */
const PENDING_BYTES = 64 << 10

/** How far storage is behind. */
export interface Storage {
  /** More waits to be stored than feeds may add to. */
  behind(): boolean
  /** Calls back once, when something was stored. */
  whenStored(resume: () => void): void
}

/** Where a feed's bytes go. */
export interface Taker {
  push(bytes: Uint8Array): void
  /** Everything was taken. */
  end(): void
}

/** The side that reads. */
export interface Reading {
  pause(): void
  resume(): void
}

/** One feed: chunks in, slices out. */
export interface Paced {
  /** The chunk is the feed's from now on. */
  push(chunk: Uint8Array): void
  /** Nothing more comes; what is here is taken first. */
  end(): void
}

export class Pacer {
  readonly #storage: Storage
  /** Feeds with something to take, in their order. */
  readonly #waiting: Feed[] = []
  #scheduled = false

  constructor(storage: Storage) {
    this.#storage = storage
  }

  feed(taker: Taker, reading: Reading): Paced {
    return new Feed(taker, reading, (feed) => this.#enter(feed))
  }

  #enter(feed: Feed): void {
    this.#waiting.push(feed)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return
    this.#scheduled = true
    const go = (): void => {
      this.#scheduled = false
      this.#turn()
    }
    if (this.#storage.behind()) this.#storage.whenStored(go)
    else setImmediate(go)
  }

  /** A piece of each feed by turns. */
  #turn(): void {
    const waiting = this.#waiting
    for (let left = TURN_BYTES; left > 0 && waiting.length > 0 && !this.#storage.behind(); ) {
      const feed = waiting.shift() as Feed
      left -= feed.take(PIECE_BYTES)
      if (feed.waits) waiting.push(feed)
    }
    this.#schedule()
  }
}

class Feed implements Paced {
  readonly #taker: Taker
  readonly #reading: Reading
  readonly #enter: (feed: Feed) => void
  #chunks: Uint8Array[] = []
  /** Bytes taken of the first chunk, and bytes not taken of all. */
  #at = 0
  #pending = 0
  #paused = false
  #ending = false
  #ended = false
  /** Whether the pacer has it in its queue. */
  #entered = false

  constructor(taker: Taker, reading: Reading, enter: (feed: Feed) => void) {
    this.#taker = taker
    this.#reading = reading
    this.#enter = enter
  }

  get waits(): boolean {
    return this.#entered
  }

  push(chunk: Uint8Array): void {
    if (this.#ending || chunk.length === 0) return
    this.#chunks.push(chunk)
    this.#pending += chunk.length
    if (this.#pending >= PENDING_BYTES && !this.#paused) {
      this.#paused = true
      this.#reading.pause()
    }
    if (this.#entered) return
    this.#entered = true
    this.#enter(this)
  }

  end(): void {
    this.#ending = true
    this.#finish()
  }

  /** Hands on up to `most` bytes; gives how many. */
  take(most: number): number {
    let taken = 0
    for (let chunk = this.#chunks[0]; chunk !== undefined && taken < most; chunk = this.#chunks[0]) {
      const end = Math.min(chunk.length, this.#at + most - taken)
      this.#taker.push(chunk.subarray(this.#at, end))
      taken += end - this.#at
      this.#at = end === chunk.length ? 0 : end
      if (this.#at === 0) this.#chunks.shift()
    }
    this.#pending -= taken
    this.#entered = this.#pending > 0
    if (this.#paused && this.#pending < PENDING_BYTES) {
      this.#paused = false
      this.#reading.resume()
    }
    this.#finish()
    return taken
  }

  #finish(): void {
    if (!this.#ending || this.#ended || this.#pending > 0) return
    this.#ended = true
    this.#taker.end()
  }
}
