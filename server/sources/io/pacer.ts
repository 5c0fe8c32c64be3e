/**
 * Incoming streams are paced by storage, never by consumers. Data is processed in slices: at most 16 KiB of all streams
 * together in a turn of the event loop, and nothing while the storage backlog is too large. Two bytes of a stream may become
 * 124 on a channel, and the kernel delivers 2 MiB at once.
 */
import type { Clock } from '../../core/clock.ts'

/** Bytes processed in one turn, of all streams together. */
const TURN_BYTES = 16 << 10

/** Bytes processed before the backlog is checked again: as 2-byte values for 1,000 channels, they make 32 MB. */
const PIECE_BYTES = 512

/** Bytes of one stream that may wait here before its reader is paused. */
const PENDING_BYTES = 64 << 10

/** The backlog of the storage. */
export interface StorageBacklog {
  /** Whether the backlog is too large to process more data. */
  behind(): boolean
  /** Calls `resume` once, after something was stored. */
  whenStored(resume: () => void): void
}

/** Takes the bytes of a stream. */
export interface StreamTaker {
  push(bytes: Uint8Array): void
  /** The stream has ended, and all its bytes were pushed. */
  end(): void
}

/** The side that reads from the network or a file. */
export interface PausableReader {
  pause(): void
  resume(): void
}

/** One stream: chunks in, slices out. */
export interface PacedStream {
  /** Takes ownership of the chunk. */
  push(chunk: Uint8Array): void
  /** Ends the stream after the pending bytes were processed. */
  end(): void
}

export class Pacer {
  readonly #storage: StorageBacklog
  /** Streams with pending bytes, in their order. */
  readonly #waiting: Stream[] = []
  #scheduled = false

  constructor(storage: StorageBacklog) {
    this.#storage = storage
  }

  feed(taker: StreamTaker, reading: PausableReader): PacedStream {
    return new Stream(taker, reading, (stream) => this.#enqueue(stream))
  }

  #enqueue(stream: Stream): void {
    this.#waiting.push(stream)
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

  /** Processes a piece of each stream in turn. */
  #turn(): void {
    const waiting = this.#waiting
    for (let left = TURN_BYTES; left > 0 && waiting.length > 0 && !this.#storage.behind(); ) {
      const stream = waiting.shift() as Stream
      left -= stream.take(PIECE_BYTES)
      if (stream.isWaiting) waiting.push(stream)
    }
    this.#schedule()
  }
}

export interface Pacing {
  readonly clock: Pick<Clock, 'setTimeout'>
  /** Whether the backlog is too large to process more data. */
  readonly behind: () => boolean
  readonly journal: { wait(waiting: { durable: () => void }): void }
}

/** Returns the pacer of each sensor: its streams wait for storage and for the quota of its own tenant only. */
export function pacersOf<S extends { readonly meter: { readonly waitMs: number } }>(
  sensors: readonly S[],
  { clock, behind, journal }: Pacing,
): (sensor: S) => Pacer {
  const pacers = new Map<S, Pacer>()
  for (const sensor of sensors) {
    const { meter } = sensor
    const whenStored = (resume: () => void): void => {
      if (meter.waitMs > 0) clock.setTimeout(resume, meter.waitMs)
      else journal.wait({ durable: resume })
    }
    pacers.set(sensor, new Pacer({ behind: () => meter.waitMs > 0 || behind(), whenStored }))
  }
  return (sensor) => pacers.get(sensor) as Pacer
}

class Stream implements PacedStream {
  readonly #taker: StreamTaker
  readonly #reading: PausableReader
  readonly #enqueue: (stream: Stream) => void
  #chunks: Uint8Array[] = []
  /** Bytes taken from the first chunk, and bytes left in all chunks. */
  #offset = 0
  #pending = 0
  #paused = false
  #ending = false
  #ended = false
  /** Whether it is in the queue of the pacer. */
  #isQueued = false

  constructor(taker: StreamTaker, reading: PausableReader, enqueue: (stream: Stream) => void) {
    this.#taker = taker
    this.#reading = reading
    this.#enqueue = enqueue
  }

  get isWaiting(): boolean {
    return this.#isQueued
  }

  push(chunk: Uint8Array): void {
    if (this.#ending || chunk.length === 0) return
    this.#chunks.push(chunk)
    this.#pending += chunk.length
    if (this.#pending >= PENDING_BYTES && !this.#paused) {
      this.#paused = true
      this.#reading.pause()
    }
    if (this.#isQueued) return
    this.#isQueued = true
    this.#enqueue(this)
  }

  end(): void {
    this.#ending = true
    this.#finish()
  }

  /** Hands over up to `most` bytes; returns how many. */
  take(most: number): number {
    let taken = 0
    for (let chunk = this.#chunks[0]; chunk !== undefined && taken < most; chunk = this.#chunks[0]) {
      const end = Math.min(chunk.length, this.#offset + most - taken)
      this.#taker.push(chunk.subarray(this.#offset, end))
      taken += end - this.#offset
      this.#offset = end === chunk.length ? 0 : end
      if (this.#offset === 0) this.#chunks.shift()
    }
    this.#pending -= taken
    this.#isQueued = this.#pending > 0
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
