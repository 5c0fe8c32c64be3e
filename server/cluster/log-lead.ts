/**
 * Which nats-server leads the log. NATS 2.9 elects one that has less of the log than another if it was cut off and was still catching
 * up when the one before was lost, or one that has kept a record which no other has. The log then seems to have lost its end, or not
 * to be that of a database, although a server that is there has all of it. So while nobody leads the cluster, the nats-servers are
 * asked to choose another.
 */
import type { LogPlace } from '../../storage/replicated/place.ts'
import { type Founder, mostAdvancedFirst } from './founding.ts'
import type { ClusterNodeOptions } from './node-options.ts'
import type { LogEnd } from './replica.ts'

/** Longer than the nats-servers need to elect another one. */
const EVERY_MS = 10_000

/** How long a database has to be foreign while nobody leads. */
const DOUBT_LEASES = 3
/** One less than there are nats-servers with the log, at most. */
const MAX_MOVES = 4

interface Doubt {
  readonly sequence: number
  /** When it began, and when it was there the last time. */
  readonly since: number
  readonly last: number
  readonly moves: number
}

export interface LogLeadOptions extends Pick<ClusterNodeOptions, 'config' | 'log' | 'replica'> {
  /** ms, by a clock that only goes on. */
  readonly now: () => number
}

export class LogLead {
  readonly #options: LogLeadOptions
  #asksAt = Number.NEGATIVE_INFINITY
  #doubt: Doubt | undefined
  /** Why nobody could be asked the last time: a single nats-server refuses it again and again. */
  #refusal = ''

  constructor(options: LogLeadOptions) {
    this.#options = options
  }

  /** `heard` are the nodes that are there, this one among them. One of them asks, and not too often. Never rejects. */
  async consider(end: LogEnd, heard: readonly Founder[]): Promise<void> {
    const ahead = heard.filter(({ place }) => isCutShort(end, place)).toSorted(mostAdvancedFirst)
    if (ahead[0]?.node === this.#options.config.node) await this.#move(end.log, 'the log is shorter than a database')
  }

  /**
   * No leader is known, and the database at `place` is not part of the log; to be called at least once a lease while that is so. A node
   * that is about to lead is given time, and for one place this is asked a few times only: the database may be foreign indeed. Never
   * rejects.
   */
  async doubt(end: LogEnd, place: LogPlace): Promise<void> {
    if (place.log !== end.log) return
    const { now, config } = this.#options
    const [at, doubt] = [now(), this.#doubt]
    const isSame = doubt?.sequence === place.sequence && at - doubt.last < DOUBT_LEASES * config.leaseMs
    const { since, moves } = isSame ? doubt : { since: at, moves: 0 }
    const isToMove = at - since >= DOUBT_LEASES * config.leaseMs && moves < MAX_MOVES && at >= this.#asksAt
    this.#doubt = { sequence: place.sequence, since, last: at, moves: moves + (isToMove ? 1 : 0) }
    if (isToMove) await this.#move(end.log, 'the log has another record than the database of this node')
  }

  /** Asks for another nats-server to lead log `number`, but not too often; `why` is a sentence. */
  async #move(number: number, why: string): Promise<void> {
    const { replica, log, now } = this.#options
    if (now() < this.#asksAt) return
    this.#asksAt = now() + EVERY_MS
    try {
      await replica.moveLog(number)
      log.warn({ log: number }, `${why}: another nats-server was asked to lead it`)
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
