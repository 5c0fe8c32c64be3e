/**
 * The queue of what an agent sends, made piece by piece as the broker takes it: the answer to one small question may
 * have megabytes, and anybody may ask often. The broker confirms each portion. If it does not in time (it slows down
 * senders whose messages fill a queue that nobody reads), the next portion is sent all the same, so that one console
 * cannot silence the agent.
 */
import type { AmqpTransfer } from '../../../../protocol/amqp/client.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'

export interface AgentTransfer {
  readonly to: AmqpTransfer
  readonly body: Uint8Array
}

/** Yields undefined after work without a result. */
export type SendJob = Iterator<AgentTransfer | undefined, unknown>

interface SendLink {
  transfer(to: AmqpTransfer, body: Uint8Array): void
  sync(done: () => void): void
}

/** After this many bytes the broker has to confirm. */
const PORTION_BYTES = 32 << 10
/** The limit for pieces of work without a result in a portion: other parts of the server get their turn too. */
const PORTION_PIECES = 4
/** The limit from one tick to the next: whatever is asked for, this takes a small part of the server's time. */
const TICK_BYTES = 1 << 20
/** A piece of work without a result takes as long as this many bytes. */
const PIECE_BYTES = 16 << 10
const CONFIRMATION_TIMEOUT_MS = 5_000
const MAX_JOBS = 64
/** The broker requests each class once, and must not be refused because consoles ask a lot. */
const MAX_JOBS_WITH_BROKER = 80
/** The limit for unconfirmed portions; beyond it only the time counts. */
const MAX_SYNCS = 100

export class SendQueue {
  readonly #link: SendLink
  readonly #nowMs: () => number
  readonly #failed: () => void
  #jobs: SendJob[] = []
  /** The monotonic time when the next portion is sent without a confirmation, undefined if none is awaited. */
  #awaitedUntilMs: number | undefined
  #unconfirmed = 0
  /** The rest of TICK_BYTES. */
  #bytesLeft = TICK_BYTES

  /** `failed` is called for a message that does not fit its fields; the rest of its job is left out. */
  constructor(link: SendLink, nowMs: () => number, failed: () => void) {
    this.#link = link
    this.#nowMs = nowMs
    this.#failed = failed
  }

  /** Adds a job at the end, or next if it is for the broker. Returns false if there are too many. */
  add(job: SendJob, isForBroker = false): boolean {
    if (this.#jobs.length >= (isForBroker ? MAX_JOBS_WITH_BROKER : MAX_JOBS)) return false
    if (isForBroker) this.addNext(job)
    else this.#jobs.push(job)
    this.#send()
    return true
  }

  /** Adds a job after the current one, however many there are. */
  addNext(job: SendJob): void {
    this.#jobs.splice(1, 0, job)
    this.#send()
  }

  /** Call it every second. */
  tick(nowMs: number): void {
    this.#bytesLeft = TICK_BYTES
    if (this.#awaitedUntilMs !== undefined && nowMs < this.#awaitedUntilMs) return
    this.#awaitedUntilMs = undefined
    this.#send()
  }

  close(): void {
    this.#jobs = []
    this.#awaitedUntilMs = undefined
  }

  #send(): void {
    if (this.#awaitedUntilMs !== undefined) return
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
    if (bytes > 0 || pieces > 0) this.#awaitConfirmation()
  }

  /** Returns the number of bytes that were sent, undefined for work without a result. */
  #step(job: SendJob): number | undefined {
    try {
      const { done, value } = job.next()
      if (done) this.#jobs.shift()
      else if (value === undefined) return undefined
      else {
        const { to, body } = value as AgentTransfer
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

  #awaitConfirmation(): void {
    const untilMs = this.#nowMs() + CONFIRMATION_TIMEOUT_MS
    this.#awaitedUntilMs = untilMs
    if (this.#unconfirmed >= MAX_SYNCS) return
    this.#unconfirmed++
    this.#link.sync(() => {
      this.#unconfirmed--
      if (this.#awaitedUntilMs !== untilMs) return
      this.#awaitedUntilMs = undefined
      this.#send()
    })
  }
}
