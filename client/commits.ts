/**
 * Sends the COMMITs that are due: one group at a time, so that many values need few commands while the disk is busy.
 * A connection that ends takes nothing along: what was not stored comes again, and is due again.
 */
import { ConnectionError } from './errors.ts'
import type { Due, Progress } from './progress.ts'

export interface CommitsOptions {
  readonly progress: Progress
  /** Rejects with StatusError or ConnectionError. */
  readonly send: (transaction: number, through: boolean) => Promise<unknown>
  /** The producer refused a COMMIT, which it never should. */
  readonly failed: (error: Error) => void
}

export class Commits {
  readonly #options: CommitsOptions
  #running: Promise<void> | undefined
  #isResting = false

  constructor(options: CommitsOptions) {
    this.#options = options
  }

  /** Sends what is due, unless a group is on its way: then it follows behind that. */
  flush(): void {
    if (this.#running !== undefined || this.#isResting) return
    const due = this.#options.progress.due()
    if (due) this.#running = this.#run(due)
  }

  /** Whether nothing more goes out: behind a SET_CHANNEL it would be for another channel. */
  rest(isResting: boolean): void {
    this.#isResting = isResting
  }

  /** Settles when everything that was due is stored, or the connection has ended. Never rejects. */
  settled(): Promise<void> {
    this.flush()
    return this.#running ?? Promise.resolve()
  }

  async #run(first: Due): Promise<void> {
    const { progress, send, failed } = this.#options
    try {
      for (let due: Due | undefined = first; due; due = this.#isResting ? undefined : progress.due()) {
        const sent = due.singles.map((transaction) => send(transaction, false))
        if (due.through > 0) sent.push(send(due.through, true))
        await Promise.all(sent)
      }
    } catch (error) {
      if (!(error instanceof ConnectionError)) failed(error as Error)
    } finally {
      this.#running = undefined
    }
  }
}

/** Sends one COMMIT until it is answered: to send it twice is harmless. `isOver`: there will be no further connection. */
export async function commitSurely(send: () => Promise<unknown>, isOver: () => boolean): Promise<void> {
  for (;;) {
    try {
      await send()
      return
    } catch (error) {
      const isLost = error instanceof ConnectionError && error.code !== 'TIMEOUT'
      if (!isLost || isOver()) throw error
    }
  }
}
