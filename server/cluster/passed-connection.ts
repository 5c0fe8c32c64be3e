/**
 * A consumer's connection that a front passes on. The bytes go both ways by pipes, which read no more than the other side takes;
 * each side ends when the other one has ended.
 */
import type { Socket } from 'node:net'
import type { Clock, Timer } from '../kernel/core/clock.ts'
import type { Leader } from './leadership.ts'

/** The time that a side has to take the last bytes, and to end, after the other one has ended. */
const LINGER_MS = 30_000

export interface PassedConnectionOptions {
  readonly consumer: Socket
  /** Leads to the node. */
  readonly socket: Socket
  readonly leader: Leader
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
}

export class PassedConnection {
  readonly leader: Leader
  readonly #consumer: Socket
  readonly #socket: Socket
  readonly #clock: PassedConnectionOptions['clock']
  #linger: Timer | undefined

  constructor({ consumer, socket, leader, clock }: PassedConnectionOptions) {
    this.leader = leader
    this.#consumer = consumer
    this.#socket = socket
    this.#clock = clock
    consumer.pipe(socket)
    socket.pipe(consumer)
    consumer.once('close', () => this.#closed(consumer, socket))
    socket.once('close', () => this.#closed(socket, consumer))
    // A consumer may wait for answers after it has ended its side. A node that has ended its own is done.
    socket.once('end', () => this.#lingering())
  }

  /** Calls `ended` when both sides are closed. */
  onEnd(ended: () => void): void {
    const closed = (): void => {
      if (this.#consumer.closed && this.#socket.closed) ended()
    }
    this.#consumer.once('close', closed)
    this.#socket.once('close', closed)
  }

  destroy(): void {
    this.#consumer.destroy()
    this.#socket.destroy()
  }

  /** What a side sent before it ended in order still goes to the other one; after anything else that one ends at once. */
  #closed(side: Socket, other: Socket): void {
    if (other.closed) this.#clock.clear(this.#linger)
    else if (side.readableEnded) {
      this.#lingering()
      other.destroySoon()
    } else other.destroy()
  }

  #lingering(): void {
    this.#linger ??= this.#clock.setTimeout(() => this.destroy(), LINGER_MS)
  }
}
