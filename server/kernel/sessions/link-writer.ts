/**
 * Writes to the link of a session and counts the bytes that the peer has not taken. Values are counted over all channels
 * that the connection has had: leaving a channel and returning to it does not reset the count.
 */
import type { Link } from '../../../protocol/link/link.ts'
import type { Clock, Timer } from '../core/clock.ts'
import { guarded } from '../core/faults.ts'

export type WriteKind = 'responses' | 'answers' | 'values'

export interface WritingSession {
  /** The current link, which changes with the layers of the connection. */
  readonly link: Link
  /** Takes what a callback after a write has thrown. */
  crashed(error: unknown): void
}

/** A peer that takes no byte for so long while bytes wait is closed [MON 15]; its channel stays. */
const WRITE_TIMEOUT_MS = 30_000

export class LinkWriter {
  readonly #session: WritingSession
  readonly #clock: Clock
  readonly #undrained: Record<WriteKind, number> = { responses: 0, answers: 0, values: 0 }
  /** Writes that have not left this process. */
  #pendingWrites = 0
  #whenDrained: (() => void) | undefined
  /** The last time at which a write began on an idle link, or left this process. */
  #lastProgressMs = 0
  #timeout: Timer | undefined

  constructor(session: WritingSession, clock: Clock) {
    this.#session = session
    this.#clock = clock
  }

  /** Bytes that were written and have not left this process. */
  undrained(kind: WriteKind): number {
    return this.#undrained[kind]
  }

  /** `drained` is called when the bytes have left this process, or never will. */
  write(kind: WriteKind, bytes: Uint8Array, drained: () => void): void {
    if (this.#pendingWrites++ === 0) this.#lastProgressMs = this.#clock.monotonicMs()
    if (this.#timeout === undefined) this.#watch(WRITE_TIMEOUT_MS)
    this.#undrained[kind] += bytes.length
    const written = (): void => {
      this.#lastProgressMs = this.#clock.monotonicMs()
      this.#undrained[kind] -= bytes.length
      this.#pendingWrites--
      drained()
      if (this.#pendingWrites === 0) this.#notifyDrained()
    }
    this.#session.link.write(
      bytes,
      guarded(written, (error) => this.#session.crashed(error)),
    )
  }

  /** Calls `act` once, as soon as everything written has left this process. */
  whenDrained(act: () => void): void {
    this.#whenDrained = act
    if (this.#pendingWrites === 0) this.#notifyDrained()
  }

  #notifyDrained(): void {
    const act = this.#whenDrained
    this.#whenDrained = undefined
    act?.()
  }

  /** There is one timer while anything waits, not one per write. */
  #watch(delayMs: number): void {
    this.#timeout = this.#clock.setTimeout(() => {
      this.#timeout = undefined
      if (this.#pendingWrites === 0) return
      const leftMs = WRITE_TIMEOUT_MS - (this.#clock.monotonicMs() - this.#lastProgressMs)
      if (leftMs <= 0) this.#session.link.destroy()
      else this.#watch(leftMs)
    }, delayMs)
  }

  /** The link is closed. */
  end(): void {
    this.#whenDrained = undefined
    this.#clock.clear(this.#timeout)
    this.#timeout = undefined
  }
}
