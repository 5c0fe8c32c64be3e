/**
 * Decides when a connection reads, and notices a dead producer. Reading pauses while its reader is slow, but never while a
 * response is outstanding: a reader that waits for one before it takes the next value would wait for ever.
 */
import type { ClientClock, ClientTimer } from './clock.ts'
import type { Transport } from './transport.ts'

/** How long a producer may be silent, unless the connection is told another time: half of it until it is probed, half to answer [MON 15]. */
const SILENCE_MS = 30_000
/**
 * The end of that time, in which nothing is decided: the timers of a process that was busy or stopped run before it reads what has
 * come meanwhile.
 */
const LAST_LOOK_MS = 100
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
  /** The producer was silent for so long. */
  readonly dead: (silenceMs: number) => void
}

/** `due`: the answer should have come, and is looked for once more. */
type Hearing = 'heard' | 'probed' | 'due'

export class FlowControl {
  readonly #options: FlowControlOptions
  readonly #slowReader: SlowReaderKeepAlive
  #isHeld = false
  #isPaused = false
  #isOver = false
  #silenceMs = SILENCE_MS
  #heardMs = 0
  #hearing: Hearing = 'heard'
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

  /** How long the producer may be silent from now on. */
  allowSilence(silenceMs: number): void {
    this.#silenceMs = silenceMs
    if (!this.#isOver && !this.#isPaused) this.#watch()
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
    this.#hearing = 'heard'
  }

  #watch(): void {
    this.#silence?.cancel()
    this.#heard()
    this.#checkIn(this.#silenceMs / 2)
  }

  #checkIn(delayMs: number): void {
    this.#silence = this.#options.clock.setTimeout(() => this.#check(), delayMs)
  }

  #check(): void {
    const { clock, dead, probe } = this.#options
    const halfMs = this.#silenceMs / 2
    if (this.#hearing === 'due') {
      dead(this.#silenceMs)
    } else if (this.#hearing === 'probed') {
      this.#hearing = 'due'
      this.#checkIn(LAST_LOOK_MS)
    } else {
      const silentMs = clock.monotonicMs() - this.#heardMs
      if (silentMs < halfMs) {
        this.#checkIn(halfMs - silentMs)
        return
      }
      this.#hearing = 'probed'
      this.#checkIn(halfMs - LAST_LOOK_MS)
      probe()
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
