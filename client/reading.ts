/**
 * When a connection reads, and whether the other end is still there. Reading rests while its reader is slow, and goes on
 * while a response is owed: a reader that waits for one before it takes the next value would wait for ever.
 */
import type { ClientClock } from './clock.ts'
import { KeepAlive } from './keep-alive.ts'
import { Sip } from './sip.ts'
import type { Transport } from './transport.ts'

export interface ReadingOptions {
  readonly clock: ClientClock
  readonly transport: Pick<Transport, 'pause' | 'resume'>
  readonly isOwed: () => boolean
  /** Sends something that the producer has to answer. */
  readonly probe: () => void
  readonly dead: () => void
}

export class Reading {
  readonly #options: ReadingOptions
  readonly #keepAlive: KeepAlive
  readonly #sip: Sip
  #isHeld = false
  #isSipping = false
  #isPaused = false
  #isOver = false

  constructor(options: ReadingOptions) {
    this.#options = options
    const { clock, probe, dead } = options
    this.#sip = new Sip(clock, (isSipping) => {
      this.#isSipping = isSipping
      this.flow()
    })
    this.#keepAlive = new KeepAlive({ clock, probe, dead })
  }

  /** Whether reading may rest. `sips`: what is taken now and then while it rests is bounded by a window. */
  hold(isHeld: boolean, sips: boolean): void {
    this.#isHeld = isHeld
    if (isHeld && sips) this.#sip.start()
    else this.#sip.stop()
    this.flow()
  }

  took(bytes: number): void {
    this.#keepAlive.heard()
    this.#sip.took(bytes)
  }

  /** To be called when what is owed has changed. */
  flow(): void {
    const { isOwed, transport } = this.#options
    const isPaused = this.#isHeld && !this.#isSipping && !isOwed()
    if (this.#isOver || this.#isPaused === isPaused) return
    this.#isPaused = isPaused
    if (isPaused) {
      this.#keepAlive.sleep()
      transport.pause()
    } else {
      this.#keepAlive.wake()
      transport.resume()
    }
  }

  end(): void {
    this.#isOver = true
    this.#keepAlive.sleep()
    this.#sip.stop()
  }
}
