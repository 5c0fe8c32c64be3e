/**
 * What a session has written, and how much of it the peer has not taken. Values are counted over all channels that the
 * connection has had: a channel that is left and taken again starts no new account.
 */
import type { Link } from '../../protocol/link/link.ts'
import type { Clock } from '../core/clock.ts'
import { Stall } from './stall.ts'

export type OutgoingKind = 'responses' | 'answers' | 'values'

export class Outgoing {
  readonly #layers: { readonly link: Link }
  readonly #stall: Stall
  readonly #undrained: Record<OutgoingKind, number> = { responses: 0, answers: 0, values: 0 }
  /** Writes that are not out of this process. */
  #writes = 0
  #whenDrained: (() => void) | undefined

  /** `layers`: whose link may become another one. */
  constructor(layers: { readonly link: Link }, clock: Clock) {
    this.#layers = layers
    this.#stall = new Stall(clock, () => layers.link.destroy())
  }

  /** Bytes that were written and are not out of this process. */
  undrained(kind: OutgoingKind): number {
    return this.#undrained[kind]
  }

  /** `drained` is called when the bytes are out, or never will be. */
  write(kind: OutgoingKind, bytes: Uint8Array, drained: () => void): void {
    const noted = this.#stall.wrote()
    this.#undrained[kind] += bytes.length
    this.#writes++
    this.#layers.link.write(bytes, () => {
      noted()
      this.#undrained[kind] -= bytes.length
      this.#writes--
      drained()
      if (this.#writes === 0) this.#tell()
    })
  }

  /** Calls once, as soon as everything that was written is out. */
  whenDrained(act: () => void): void {
    this.#whenDrained = act
    if (this.#writes === 0) this.#tell()
  }

  #tell(): void {
    const act = this.#whenDrained
    this.#whenDrained = undefined
    act?.()
  }

  /** The link is closed. */
  end(): void {
    this.#whenDrained = undefined
    this.#stall.end()
  }
}
