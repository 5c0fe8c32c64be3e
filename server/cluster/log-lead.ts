/**
 * Which nats-server leads the log. NATS 2.9 elects one that has less of the log than another if it was cut off and was still catching
 * up when the one before was lost. The log then seems to have lost its end, and would have to be founded by all nodes although a
 * server that is there has all of it. So while nodes are missing, the nats-servers are asked to choose another.
 */
import type { LogPlace } from '../../storage/replicated/place.ts'
import { type Founder, mostAdvancedFirst } from './founding.ts'
import type { ClusterNodeOptions } from './node-options.ts'
import type { LogEnd } from './replica.ts'

/** Longer than the nats-servers need to elect another one. */
const EVERY_MS = 10_000

export interface LogLeadOptions extends Pick<ClusterNodeOptions, 'config' | 'log' | 'replica'> {
  /** ms, by a clock that only goes on. */
  readonly now: () => number
}

export class LogLead {
  readonly #options: LogLeadOptions
  #asksAt = Number.NEGATIVE_INFINITY
  /** Why nobody could be asked the last time: a single nats-server refuses it again and again. */
  #refusal = ''

  constructor(options: LogLeadOptions) {
    this.#options = options
  }

  /** `heard` are the nodes that are there, this one among them. One of them asks, and not too often. Never rejects. */
  async consider(end: LogEnd, heard: readonly Founder[]): Promise<void> {
    const { replica, log, now, config } = this.#options
    const ahead = heard.filter(({ place }) => isCutShort(end, place)).toSorted(mostAdvancedFirst)
    if (ahead[0]?.node !== config.node || now() < this.#asksAt) return
    this.#asksAt = now() + EVERY_MS
    try {
      await replica.moveLog(end.log)
      log.warn(
        { log: end.log, last: end.last },
        'the log is shorter than a database: another nats-server was asked to lead it',
      )
      this.#refusal = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== this.#refusal)
        log.warn({ reason: message }, 'no other nats-server could be asked to lead the log')
      this.#refusal = message
    }
  }
}

/** Whether a database has more of the log than its leader. */
function isCutShort(end: LogEnd, { log, sequence }: LogPlace): boolean {
  return end.log > 0 && log === end.log && sequence > end.last
}
