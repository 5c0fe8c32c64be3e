/** A peer that takes no byte for 30 s while bytes wait is closed [MON 15]; its channel stays. */
import type { Clock, Timer } from '../core/clock.ts'

const STALL_MS = 30_000

export class Stall {
  readonly #clock: Clock
  readonly #stalled: () => void
  #waiting = 0
  #since = 0
  #timer: Timer | undefined

  constructor(clock: Clock, stalled: () => void) {
    this.#clock = clock
    this.#stalled = stalled
  }

  /** Bytes were handed to the link; the returned function says that they are out. */
  wrote(): () => void {
    if (this.#waiting++ === 0) this.#since = this.#clock.monotonicMs()
    if (this.#timer === undefined) this.#watch(STALL_MS)
    return this.#drained
  }

  readonly #drained = (): void => {
    this.#waiting--
    this.#since = this.#clock.monotonicMs()
  }

  /** One timer while anything waits, not one per write. */
  #watch(delayMs: number): void {
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined
      if (this.#waiting === 0) return
      const left = STALL_MS - (this.#clock.monotonicMs() - this.#since)
      if (left <= 0) this.#stalled()
      else this.#watch(left)
    }, delayMs)
  }

  end(): void {
    this.#clock.clear(this.#timer)
    this.#timer = undefined
  }
}
