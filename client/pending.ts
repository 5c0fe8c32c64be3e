/**
 * Commands that wait for their response, by seq, each with the same deadline: the first is always the first to be late.
 * The response to one that was given up may still come, and is not taken for one to a command that was never sent.
 */
import type { Response } from '../protocol/monitor/message.ts'
import type { ClientClock, ClientTimer } from './clock.ts'

export interface Waiting {
  response(response: Response): void
  reject(error: Error): void
}

interface Entry {
  readonly waiting: Waiting
  readonly dueMs: number
}

export interface PendingOptions {
  readonly clock: ClientClock
  readonly deadlineMs: number
  readonly late: () => Error
}

export class Pending {
  readonly #options: PendingOptions
  readonly #entries = new Map<number, Entry>()
  readonly #givenUp = new Set<number>()
  #timer: ClientTimer | undefined
  #seq = 0

  constructor(options: PendingOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** The seq of the next command; none that still has a response to come. */
  nextSeq(): number {
    do this.#seq = (this.#seq + 1) >>> 0
    while (this.#entries.has(this.#seq) || this.#givenUp.has(this.#seq))
    return this.#seq
  }

  add(seq: number, waiting: Waiting): void {
    const { clock, deadlineMs } = this.#options
    this.#entries.set(seq, { waiting, dueMs: clock.monotonicMs() + deadlineMs })
    this.#timer ??= clock.setTimeout(() => this.#due(), deadlineMs)
  }

  /** False where nobody ever waited for that. */
  take(response: Response): boolean {
    const entry = this.#entries.get(response.seq)
    if (entry === undefined) return this.#givenUp.delete(response.seq)
    this.#entries.delete(response.seq)
    entry.waiting.response(response)
    return true
  }

  rejectAll(error: Error): void {
    this.#timer?.cancel()
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    for (const { waiting } of entries) waiting.reject(error)
  }

  #due(): void {
    const { clock, late } = this.#options
    this.#timer = undefined
    const now = clock.monotonicMs()
    for (const [seq, { waiting, dueMs }] of this.#entries) {
      if (dueMs > now) {
        this.#timer = clock.setTimeout(() => this.#due(), dueMs - now)
        return
      }
      this.#entries.delete(seq)
      this.#givenUp.add(seq)
      waiting.reject(late())
    }
  }
}
