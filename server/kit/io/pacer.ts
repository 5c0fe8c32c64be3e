/**
 * Feeds, that is incoming streams and datagrams, are paced by time and by storage, never by consumers. All feeds together have
 * 5 ms in a turn of the event loop, and take turns; none is processed while the storage backlog is too large. One value costs a
 * microsecond or, with 1,000 channels, a millisecond: so pieces are measured by the time that they take.
 */
import type { Clock } from '../../kernel/core/clock.ts'
import type { FaultySensor, SensorFaults } from '../../kernel/metrics/sensor-faults.ts'

/**
 * The time of all feeds together in one turn. With 1,000 channels the first values of a turn cost more than the others, since what
 * they touch has left the processor's cache: with 10 ms a turn is longer by 4 to 8 ms at p99, and the rate the same within 3 %.
 */
const TURN_MS = 5

/** The time that a piece of a stream, or some datagrams, are to take: the backlog is checked, and other feeds have their turn, after each. */
export const PIECE_MS = 1

/** Bytes of a piece: of the first of a stream, then up to twice as many as before. 2 are a value of smon: a millisecond, with 1,000 channels. */
const FIRST_PIECE_BYTES = 16
const MIN_PIECE_BYTES = 2
const MAX_PIECE_BYTES = 16 << 10

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
  /** Takes bytes: all, or as many as it returns, at least one. It is given the others again, later. */
  readonly push: ((bytes: Uint8Array) => void) | ((bytes: Uint8Array) => number)
  /**
   * Does a step of what the bytes led to. Returns whether more is left: then it is called again, before any other bytes and
   * before the end. For bytes that may lead to much more work than others.
   */
  work?(): boolean
  /** The stream has ended, and all its bytes were pushed. */
  end(): void
}

/** The side that reads from the network or a file. */
export interface PausableReader {
  pause(): void
  resume(): void
  /** Ends the stream without a confirmation, because its bytes could not be processed. */
  destroy(): void
}

/** One stream: chunks in, slices out. */
export interface PacedStream {
  /** Takes ownership of the chunk. */
  push(chunk: Uint8Array): void
  /** Ends the stream after the pending bytes were processed. */
  end(): void
}

/** Something with data to process. */
export interface PacedFeed {
  /** Processes a piece; returns whether more can be processed now. Never throws. */
  step(): boolean
}

/** What begins and ends with each turn of the feeds. */
interface DuringTurns {
  begin(): void
  end(): void
}

/** The turns of all feeds of the server. */
export class FeedTurns {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly #during: DuringTurns | undefined
  /** Feeds with something to process, in their order. */
  readonly #feeds: PacedFeed[] = []
  #isScheduled = false

  constructor(clock: Pick<Clock, 'monotonicMs'>, during?: DuringTurns) {
    this.clock = clock
    this.#during = during
  }

  /** `feed` has something to process now, and is not waiting for its turn yet. */
  enqueue(feed: PacedFeed): void {
    this.#feeds.push(feed)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#feeds.length === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#run()
      this.#schedule()
    })
  }

  #run(): void {
    const endMs = this.clock.monotonicMs() + TURN_MS
    this.#during?.begin()
    try {
      for (let feed = this.#feeds.shift(); feed !== undefined; feed = this.#feeds.shift()) {
        if (feed.step()) this.#feeds.push(feed)
        if (this.clock.monotonicMs() >= endMs) return
      }
    } finally {
      this.#during?.end()
    }
  }
}

export interface PacerOptions {
  readonly storage: StorageBacklog
  readonly turns: FeedTurns
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Takes what the taker of a stream has thrown: the stream is over. */
  readonly failed: (error: unknown) => void
}

/** The streams of one sensor. */
export class Pacer implements PacedFeed {
  readonly #options: PacerOptions
  /** Streams with pending bytes, in their order. */
  readonly #waiting: Stream[] = []
  /** Whether it waits for its turn, or for storage. */
  #isWaiting = false

  constructor(options: PacerOptions) {
    this.#options = options
  }

  feed(taker: StreamTaker, reading: PausableReader): PacedStream {
    return new Stream(taker, reading, this.#options, (stream) => {
      this.#waiting.push(stream)
      this.#wait()
    })
  }

  #wait(): void {
    if (this.#isWaiting || this.#waiting.length === 0) return
    this.#isWaiting = true
    const { storage, turns } = this.#options
    if (storage.behind()) storage.whenStored(() => this.#resume())
    else turns.enqueue(this)
  }

  #resume(): void {
    this.#isWaiting = false
    this.#wait()
  }

  /** Processes a piece of the next stream. */
  step(): boolean {
    const { storage } = this.#options
    if (!storage.behind()) {
      const stream = this.#waiting.shift()
      stream?.step()
      if (stream?.isWaiting) this.#waiting.push(stream)
      if (this.#waiting.length > 0 && !storage.behind()) return true
    }
    this.#resume()
    return false
  }
}

export interface Pacing {
  readonly clock: Pick<Clock, 'setTimeout' | 'monotonicMs'>
  readonly turns: FeedTurns
  readonly faults: SensorFaults
  /** Whether the backlog is too large to process more data. */
  readonly behind: () => boolean
  readonly journal: { wait(waiting: { durable: () => void }): void }
}

/** The pacer of a sensor: its streams wait for storage and for this quota, which is that of its own tenant, only. */
export function pacerOf(
  sensor: FaultySensor,
  meter: { readonly waitMs: number },
  { clock, turns, faults, behind, journal }: Pacing,
): Pacer {
  const whenStored = (resume: () => void): void => {
    if (meter.waitMs > 0) clock.setTimeout(resume, meter.waitMs)
    else journal.wait({ durable: resume })
  }
  const storage = { behind: () => meter.waitMs > 0 || behind(), whenStored }
  return new Pacer({ storage, turns, clock, failed: (error) => faults.report(sensor, error) })
}

class Stream implements PacedStream {
  readonly #taker: StreamTaker
  readonly #reading: PausableReader
  readonly #options: Pick<PacerOptions, 'clock' | 'failed'>
  readonly #enqueue: (stream: Stream) => void
  #chunks: Uint8Array[] = []
  /** Bytes taken from the first chunk, and bytes left in all chunks. */
  #offset = 0
  #pending = 0
  #pieceBytes = FIRST_PIECE_BYTES
  #paused = false
  #ending = false
  #ended = false
  /** Whether it is in the queue of the pacer. */
  #isQueued = false
  /** Whether the bytes that were taken have led to work that is left. */
  #isWorking = false

  constructor(
    taker: StreamTaker,
    reading: PausableReader,
    options: Pick<PacerOptions, 'clock' | 'failed'>,
    enqueue: (stream: Stream) => void,
  ) {
    this.#taker = taker
    this.#reading = reading
    this.#options = options
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

  /** Processes a piece. */
  step(): void {
    const { clock } = this.#options
    const most = this.#pieceBytes
    const beganMs = clock.monotonicMs()
    try {
      if (!this.#isWorking) {
        const taken = this.#take(most)
        const tookMs = clock.monotonicMs() - beganMs
        if (tookMs > PIECE_MS) this.#pieceBytes = Math.max(MIN_PIECE_BYTES, Math.floor((taken * PIECE_MS) / tookMs))
        else if (taken === most) this.#pieceBytes = Math.min(MAX_PIECE_BYTES, most * 2)
      }
      do this.#isWorking = this.#taker.work?.() === true
      while (this.#isWorking && clock.monotonicMs() - beganMs < PIECE_MS)
    } catch (error) {
      this.#fail(error)
    }
    this.#isQueued = this.#pending > 0 || this.#isWorking
    if (this.#paused && this.#pending < PENDING_BYTES) {
      this.#paused = false
      this.#reading.resume()
    }
    this.#finish()
  }

  /** Hands over up to `most` bytes, or as many as the taker wants now; returns how many. */
  #take(most: number): number {
    let taken = 0
    for (let chunk = this.#chunks[0]; chunk !== undefined && taken < most; chunk = this.#chunks[0]) {
      const piece = chunk.subarray(this.#offset, this.#offset + most - taken)
      const count = this.#taker.push(piece) ?? piece.length
      taken += count
      this.#offset += count
      if (this.#offset === chunk.length) {
        this.#offset = 0
        this.#chunks.shift()
      }
      if (count < piece.length) break
    }
    this.#pending -= taken
    return taken
  }

  /** Where the next item begins is not known any more: the stream is over. */
  #fail(error: unknown): void {
    this.#chunks = []
    this.#pending = 0
    this.#isWorking = false
    this.#ending = true
    this.#options.failed(error)
    this.#reading.destroy()
  }

  #finish(): void {
    if (!this.#ending || this.#ended || this.#pending > 0 || this.#isWorking) return
    this.#ended = true
    try {
      this.#taker.end()
    } catch (error) {
      this.#options.failed(error)
      this.#reading.destroy()
    }
  }
}
