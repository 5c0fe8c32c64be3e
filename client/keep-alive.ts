/**
 * Notices a producer that has gone without a word [MON 15]: after 15 s of silence it is probed, and given another 15 s.
 * To be asleep while we ourselves do not read: that silence is ours.
 */
import type { ClientClock, ClientTimer } from './clock.ts'

export const SILENCE_MS = 15_000
export const GRACE_MS = 15_000

export interface KeepAliveOptions {
  readonly clock: ClientClock
  /** Sends something that the producer has to answer. */
  readonly probe: () => void
  readonly dead: () => void
}

export class KeepAlive {
  readonly #options: KeepAliveOptions
  #heardMs = 0
  #isProbing = false
  #timer: ClientTimer | undefined

  constructor(options: KeepAliveOptions) {
    this.#options = options
    this.wake()
  }

  heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs()
    this.#isProbing = false
  }

  sleep(): void {
    this.#timer?.cancel()
  }

  wake(): void {
    this.sleep()
    this.heard()
    this.#arm(SILENCE_MS)
  }

  #arm(delayMs: number): void {
    this.#timer = this.#options.clock.setTimeout(() => this.#due(), delayMs)
  }

  #due(): void {
    const silentMs = this.#options.clock.monotonicMs() - this.#heardMs
    if (this.#isProbing) {
      this.#options.dead()
    } else if (silentMs < SILENCE_MS) {
      this.#arm(SILENCE_MS - silentMs)
    } else {
      this.#isProbing = true
      this.#arm(GRACE_MS)
      this.#options.probe()
    }
  }
}
