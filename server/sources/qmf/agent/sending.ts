/**
 * What an agent sends, made piece by piece as the broker takes it: the answer to one small question may have megabytes, and
 * whoever can ask can ask often. After each portion the broker says that it has it; where it does not in time (it holds back
 * who fills a queue that nobody reads) the next portion is sent all the same, so that one console cannot silence the agent.
 */

import type { Outgoing } from '../../../../protocol/amqp/client.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'

export interface Sent {
  readonly to: Outgoing
  readonly body: Uint8Array
}

/** Undefined: some work was done and nothing came of it. */
export type Job = Iterator<Sent | undefined, unknown>

interface Link {
  transfer(to: Outgoing, body: Uint8Array): void
  sync(done: () => void): void
}

/** Then the broker has to have taken it. */
const PORTION_BYTES = 32 << 10
/** Pieces of work without a result, in a portion: other parts of the server have their turn too. */
const PORTION_PIECES = 4
/** From one tick to the next: however much is asked for, this takes a small part of the server's time. */
const TICK_BYTES = 1 << 20
/** A piece of work without a result takes as long as so many bytes. */
const PIECE_BYTES = 16 << 10
const PATIENCE_MS = 5_000
const MOST_JOBS = 64
/** The broker asks for each class once, and must not be refused because consoles ask a lot. */
const MOST_JOBS_WITH_BROKER = 80
/** Portions that the broker may not have told of; beyond them only time counts. */
const MOST_SYNCS = 100

export class Sending {
  readonly #link: Link
  readonly #nowMs: () => number
  readonly #failed: () => void
  #jobs: Job[] = []
  /** When the next portion is sent anyway, monotonic; undefined: nothing is awaited. */
  #untilMs: number | undefined
  /** What the broker has not said it has. */
  #syncs = 0
  /** Until the next tick. */
  #bytesLeft = TICK_BYTES

  /** `failed`: something did not fit into its field, and the rest of its job is left out. */
  constructor(link: Link, nowMs: () => number, failed: () => void) {
    this.#link = link
    this.#nowMs = nowMs
    this.#failed = failed
  }

  /** Done after those before it, or next, where the broker asks. False: too many wait. */
  offer(job: Job, isForBroker = false): boolean {
    if (this.#jobs.length >= (isForBroker ? MOST_JOBS_WITH_BROKER : MOST_JOBS)) return false
    if (isForBroker) this.urge(job)
    else this.#jobs.push(job)
    this.#send()
    return true
  }

  /** Done next, however many wait. */
  urge(job: Job): void {
    this.#jobs.splice(1, 0, job)
    this.#send()
  }

  /** To be called every second. */
  tick(nowMs: number): void {
    this.#bytesLeft = TICK_BYTES
    if (this.#untilMs !== undefined && nowMs < this.#untilMs) return
    this.#untilMs = undefined
    this.#send()
  }

  end(): void {
    this.#jobs = []
    this.#untilMs = undefined
  }

  #send(): void {
    if (this.#untilMs !== undefined) return
    let bytes = 0
    let pieces = 0
    while (bytes < PORTION_BYTES && pieces < PORTION_PIECES && this.#bytesLeft > 0) {
      const job = this.#jobs[0]
      if (job === undefined) break
      const sent = this.#step(job)
      if (sent === undefined) pieces++
      else bytes += sent
      this.#bytesLeft -= sent ?? PIECE_BYTES
    }
    if (bytes > 0 || pieces > 0) this.#await()
  }

  /** Bytes that were sent; undefined: none, though it was work. */
  #step(job: Job): number | undefined {
    try {
      const { done, value } = job.next()
      if (done) this.#jobs.shift()
      else if (value === undefined) return undefined
      else {
        const { to, body } = value as Sent
        this.#link.transfer(to, body)
        return body.length
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#jobs.shift()
      job.return?.()
      this.#failed()
    }
    return 0
  }

  #await(): void {
    const untilMs = this.#nowMs() + PATIENCE_MS
    this.#untilMs = untilMs
    if (this.#syncs >= MOST_SYNCS) return
    this.#syncs++
    this.#link.sync(() => {
      this.#syncs--
      if (this.#untilMs !== untilMs) return
      this.#untilMs = undefined
      this.#send()
    })
  }
}
