/**
 * What a session has written, and how much of it the peer has not taken. Values are counted over all channels that the
 * connection has had: a channel that is left and taken again starts no new account.
 */
import type { Link } from '../../protocol/link/link.ts'
import type { Clock } from '../clock.ts'
import { Stall } from './stall.ts'

export type OutgoingKind = 'responses' | 'answers' | 'values'

export class Outgoing {
  readonly #link: Link
  readonly #stall: Stall
  readonly #undrained: Record<OutgoingKind, number> = { responses: 0, answers: 0, values: 0 }

  constructor(link: Link, clock: Clock) {
    this.#link = link
    this.#stall = new Stall(clock, () => link.destroy())
  }

  /** Bytes that were written and are not out of this process. */
  undrained(kind: OutgoingKind): number {
    return this.#undrained[kind]
  }

  /** `drained` is called when the bytes are out, or never will be. */
  write(kind: OutgoingKind, bytes: Uint8Array, drained: () => void): void {
    const noted = this.#stall.wrote()
    this.#undrained[kind] += bytes.length
    this.#link.write(bytes, () => {
      noted()
      this.#undrained[kind] -= bytes.length
      drained()
    })
  }

  /** The link is closed. */
  end(): void {
    this.#stall.end()
  }
}
