/** Datagrams of a socket, which are taken in the turns of feeds. A socket cannot be paused: what has no room is dropped. */
import type { Address } from '../../../kernel/core/address.ts'
import type { Steps } from '../../../kernel/core/fair-work.ts'
import { type FeedTurns, type PacedFeed, PIECE_MS } from '../pacer.ts'
import type { Datagram } from './batch.ts'

export interface SocketOptions {
  /** `host` is an IP address. */
  readonly address: Address
  /** If set, `address` is a multicast group to join on the interface with this address, or on one that the system chooses if ''. */
  readonly groupOn: string | undefined
  /** Of the buffer in the kernel; less where the system does not allow so many. */
  readonly bufferBytes: number
  /** Something waits that did not before. */
  readonly received: () => void
  /** Nothing is received any more, since this has failed; it has to be closed. */
  readonly failed: (error: Error) => void
}

/** A socket that is bound, with the datagrams of it that wait. */
export interface DatagramSocket {
  readonly address: Address
  /** The next one; undefined if none waits. */
  next(): Datagram | undefined
  readonly isEmpty: boolean
  /** Datagrams that found no room here. */
  readonly dropped: number
  /** Joins a group. Throws what the system says. */
  join(group: string, groupOn: string): void
  /** Sends a datagram. Errors are ignored. `host` is an IP address. */
  send(packet: Uint8Array, host: string, port: number): void
  /** What waits is dropped. It is called once. */
  close(): Promise<void>
}

export class DatagramFeed implements PacedFeed {
  readonly #turns: FeedTurns
  readonly #take: (datagram: Datagram) => Steps<void> | undefined | void
  #socket: Pick<DatagramSocket, 'next' | 'isEmpty'> | undefined
  /** The rest of the one that was begun. */
  #begun: Steps<void> | undefined
  #isQueued = false

  /** `take` returns the steps that are left to do of a datagram, if any. Neither it nor they ever throw. */
  constructor(turns: FeedTurns, take: (datagram: Datagram) => Steps<void> | undefined | void) {
    this.#turns = turns
    this.#take = take
  }

  /** Takes what waits of a socket now. */
  received(socket: Pick<DatagramSocket, 'next' | 'isEmpty'>): void {
    this.#socket = socket
    if (this.#isQueued) return
    this.#isQueued = true
    this.#turns.enqueue(this)
  }

  step(): boolean {
    const { clock } = this.#turns
    const endMs = clock.monotonicMs() + PIECE_MS
    do this.#isQueued = this.#proceed()
    while (this.#isQueued && clock.monotonicMs() < endMs)
    return this.#isQueued
  }

  /** Does a step of the datagram that was begun, or begins the next. Returns whether there is more to do. */
  #proceed(): boolean {
    if (this.#begun !== undefined) {
      if (this.#begun.next().done === true) this.#begun = undefined
    } else {
      const datagram = this.#socket?.next()
      if (datagram === undefined) return false
      this.#begun = this.#take(datagram) ?? undefined
    }
    return this.#begun !== undefined || this.#socket?.isEmpty === false
  }
}
