/**
 * The connections of a listener. Once it is closed they end by themselves, after what was written to them; a peer that takes nothing
 * would keep it open for ever, and with it a node that is to hand over, so what is left after a while is cut off.
 */
import type { Socket } from 'node:net'
import type { Clock } from './clock.ts'

/** Longer than a peer has to close its side. */
const LINGER_MS = 2_000

export class OpenConnections {
  readonly #clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly #sockets = new Set<Socket>()

  constructor(clock: Pick<Clock, 'setTimeout' | 'clear'>) {
    this.#clock = clock
  }

  add(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** `closed` resolves when the listener is closed and all its connections have ended; so does this, at most 2 s later than begun. */
  async end(closed: Promise<void>): Promise<void> {
    const late = this.#clock.setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, LINGER_MS)
    try {
      await closed
    } finally {
      this.#clock.clear(late)
    }
  }
}
