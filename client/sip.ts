/**
 * A slow reader still takes a little now and then: the producer closes a peer that takes no byte for 30 s while bytes
 * wait for it [MON 15]. How much that can come to is bounded by the channel's window.
 */
import type { ClientClock, ClientTimer } from './clock.ts'

const EVERY_MS = 10_000
/** As much as the producer hands to a connection at once [MON 8 Window]: it counts whole writes. */
const BYTES = 256 << 10

export class Sip {
  readonly #clock: ClientClock
  readonly #sip: (isSipping: boolean) => void
  #timer: ClientTimer | undefined
  #left = 0

  constructor(clock: ClientClock, sip: (isSipping: boolean) => void) {
    this.#clock = clock
    this.#sip = sip
  }

  /** Reading rests from now on. */
  start(): void {
    this.stop()
    this.#timer = this.#clock.setTimeout(() => this.#due(), EVERY_MS)
  }

  /** Reading goes on. */
  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#end()
  }

  took(bytes: number): void {
    if (this.#left === 0) return
    this.#left -= Math.min(this.#left, bytes)
    if (this.#left === 0) this.#sip(false)
  }

  #due(): void {
    this.#end()
    this.start()
    this.#left = BYTES
    this.#sip(true)
  }

  #end(): void {
    if (this.#left === 0) return
    this.#left = 0
    this.#sip(false)
  }
}
