/**
 * What an agent sends, made piece by piece as the broker takes it: the answer to one small question may have megabytes, and
 * whoever can ask can ask often. After each portion the broker says that it has it; where it does not in time (it holds back
 * who fills a queue that nobody reads) the next portion is sent all the same, so that one console cannot silence the agent.
 */
import { ProtocolError } from '../../protocol/errors.ts'
import type { Outgoing } from '../../protocol/qmf/amqp/client.ts'

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
const PATIENCE_MS = 5_000
const MOST_JOBS = 64

export class Sending {
  readonly #link: Link
  readonly #nowMs: () => number
  readonly #failed: () => void
  #jobs: Job[] = []
  /** When the next portion is sent anyway, monotonic; undefined: nothing is awaited. */
  #untilMs: number | undefined

  /** `failed`: something did not fit into its field, and the rest of its job is left out. */
  constructor(link: Link, nowMs: () => number, failed: () => void) {
    this.#link = link
    this.#nowMs = nowMs
    this.#failed = failed
  }

  /** Done after those before it. False: too many wait. */
  offer(job: Job): boolean {
    if (this.#jobs.length >= MOST_JOBS) return false
    this.#jobs.push(job)
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
    if (this.#untilMs === undefined || nowMs < this.#untilMs) return
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
    while (bytes < PORTION_BYTES && pieces < PORTION_PIECES) {
      const job = this.#jobs[0]
      if (job === undefined) break
      const sent = this.#step(job)
      if (sent === undefined) pieces++
      else bytes += sent
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
    this.#link.sync(() => {
      if (this.#untilMs !== untilMs) return
      this.#untilMs = undefined
      this.#send()
    })
  }
}
