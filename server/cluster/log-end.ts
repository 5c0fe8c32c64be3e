/**
 * Where the log ends, as the nats-servers say. Each question waits a lease at first, and longer after it was in vain: nats-servers on a
 * busy machine may need longer than that, and if every question were given up after a lease, nobody would ever take over there.
 */
import type { StorageError } from '../../storage/store.ts'
import type { ClusterNodeOptions } from './node-options.ts'
import type { LogEnd } from './replica.ts'
import { isOneOf } from './tenure.ts'

/** Leases that a question waits, at most. */
const MAX_LEASES = 4

export interface LogEndQuestionsOptions extends Pick<ClusterNodeOptions, 'replica'> {
  readonly config: Pick<ClusterNodeOptions['config'], 'leaseMs'>
  /** Gives a question up. */
  readonly signal: AbortSignal
}

export class LogEndQuestions {
  readonly #options: LogEndQuestionsOptions
  #leases = 1

  constructor(options: LogEndQuestionsOptions) {
    this.#options = options
  }

  /** The end of the log; a StorageError if no majority of the nats-servers answers in time; undefined if it was given up. */
  async ask(): Promise<LogEnd | StorageError | undefined> {
    const { replica, config, signal } = this.#options
    let giveUp: () => void = () => {}
    const givenUp = new Promise<undefined>((resolve) => {
      giveUp = () => resolve(undefined)
      if (signal.aborted) giveUp()
      signal.addEventListener('abort', giveUp)
    })
    try {
      const end = await Promise.race([replica.end(this.#leases * config.leaseMs), givenUp])
      this.#leases = 1
      return end
    } catch (error) {
      if (!isOneOf(error, 'IO', 'UNREACHABLE')) throw error
      this.#leases = Math.min(2 * this.#leases, MAX_LEASES)
      return error
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }
}
