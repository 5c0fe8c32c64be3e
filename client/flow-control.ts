/**
 * Decides when a connection reads, and notices a dead producer. Reading pauses while its reader is slow, but never while a
 * response is outstanding: a reader that waits for one before it takes the next value would wait for ever.
 */
import type { ClientClock, ClientTimer } from './clock.ts'
import type { Transport } from './transport.ts'

/** A producer that has sent nothing for so long is probed, and given the same time again to answer [MON 15]. */
const SILENCE_MS = 15_000
/**
 * A slow reader still reads a little at this interval: the producer closes a connection that takes nothing for 30 s while
 * data waits for it [MON 15].
 */
const SLOW_READ_MS = 10_000
/** What the producer hands to a connection at once [MON 8 Window], since it counts whole writes. */
const SLOW_READ_BYTES = 256 << 10

export interface FlowControlOptions {
  readonly clock: ClientClock
  readonly transport: Pick<Transport, 'pause' | 'resume'>
  readonly isResponseDue: () => boolean
  /** Sends something that the producer has to answer. */
  readonly probe: () => void
  readonly dead: () => void
}

export class FlowControl {
  readonly #options: FlowControlOptions
  readonly #slowReader: SlowReaderKeepAlive
  #isHeld = false
  #isPaused = false
  #isOver = false
  #heardMs = 0
  #isProbing = false
  #silence: ClientTimer | undefined

  constructor(options: FlowControlOptions) {
    this.#options = options
    this.#slowReader = new SlowReaderKeepAlive(options.clock, () => this.update())
    this.#watch()
  }

  /** Whether reading may pause. `isBounded`: a window bounds what can come, so that a little is read now and then. */
  hold(isHeld: boolean, isBounded: boolean): void {
    this.#isHeld = isHeld
    if (isHeld && isBounded) this.#slowReader.start()
    else this.#slowReader.stop()
    this.update()
  }

  received(bytes: number): void {
    this.#heard()
    this.#slowReader.received(bytes)
  }

  /** To be called when `isResponseDue` has changed. */
  update(): void {
    const { isResponseDue, transport } = this.#options
    const isPaused = this.#isHeld && !this.#slowReader.isReading && !isResponseDue()
    if (this.#isOver || this.#isPaused === isPaused) return
    this.#isPaused = isPaused
    if (isPaused) {
      // Silence that we cause ourselves proves nothing.
      this.#silence?.cancel()
      transport.pause()
    } else {
      this.#watch()
      transport.resume()
    }
  }

  end(): void {
    this.#isOver = true
    this.#silence?.cancel()
    this.#slowReader.stop()
  }

  #heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs()
    this.#isProbing = false
  }

  #watch(): void {
    this.#silence?.cancel()
    this.#heard()
    this.#checkIn(SILENCE_MS)
  }

  #checkIn(delayMs: number): void {
    this.#silence = this.#options.clock.setTimeout(() => this.#check(), delayMs)
  }

  #check(): void {
    const silentMs = this.#options.clock.monotonicMs() - this.#heardMs
    if (this.#isProbing) {
      this.#options.dead()
    } else if (silentMs < SILENCE_MS) {
      this.#checkIn(SILENCE_MS - silentMs)
    } else {
      this.#isProbing = true
      this.#checkIn(SILENCE_MS)
      this.#options.probe()
    }
  }
}

/** Lets a reader that has paused read a little at intervals. */
class SlowReaderKeepAlive {
  readonly #clock: ClientClock
  readonly #changed: () => void
  #timer: ClientTimer | undefined
  #left = 0

  constructor(clock: ClientClock, changed: () => void) {
    this.#clock = clock
    this.#changed = changed
  }

  get isReading(): boolean {
    return this.#left > 0
  }

  start(): void {
    this.#timer?.cancel()
    this.#set(0)
    this.#timer = this.#clock.setTimeout(() => {
      this.start()
      this.#set(SLOW_READ_BYTES)
    }, SLOW_READ_MS)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#set(0)
  }

  received(bytes: number): void {
    if (this.#left > 0) this.#set(Math.max(0, this.#left - bytes))
  }

  #set(left: number): void {
    const wasReading = this.isReading
    this.#left = left
    if (this.isReading !== wasReading) this.#changed()
  }
}
