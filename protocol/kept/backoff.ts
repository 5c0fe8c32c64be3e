/**
 * The pauses between attempts. They double, because a peer that is down may stay down for long, and are shortened by up to a
 * half at random, because everybody who has lost the same peer would come back at the same moment otherwise. All intervals of
 * the project are here, each with its reason.
 */

export interface Intervals {
  /** The pause after the first failure. */
  readonly firstMs: number
  /** No pause is longer. */
  readonly maxMs: number
  /** A connection that lasted for so long was a good one: the next pause is the first again. */
  readonly steadyMs: number
}

/**
 * A consumer and its producer, which may be an upstream. Somebody waits for the values, and a server that is restarted is back in
 * seconds, so attempts come quickly and are never far apart (docs/client.md).
 */
export const TO_PRODUCER: Intervals = { firstMs: 100, maxMs: 10_000, steadyMs: 5_000 }

/**
 * A peer of another kind that a server connects to or delivers to: a channel's consumer [MON 14], a broker, the destination of a
 * drain. It may be gone for good, and be shared by thousands of servers; nothing is lost meanwhile, since values wait. A login
 * takes up to 10 s, so what ends before that may never have worked.
 */
export const TO_PEER: Intervals = { firstMs: 1_000, maxMs: 60_000, steadyMs: 10_000 }

/** A main monitor to which a server announces itself (docs/hierarchy.md): as above, but it waits and cannot connect by itself. */
export const TO_MAIN_MONITOR: Intervals = { firstMs: 1_000, maxMs: 30_000, steadyMs: 10_000 }

/**
 * The nats-servers of a cluster, until the first connection: a lost one is made again by the client of NATS, and faster, since nodes
 * that do not hear from each other elect another leader. The pauses do not grow: a cluster has few nodes, and waits for each.
 */
export const TO_NATS: Intervals = { firstMs: 250, maxMs: 250, steadyMs: 0 }

export class Backoff {
  readonly #intervals: Pick<Intervals, 'firstMs' | 'maxMs'>
  readonly #random: () => number
  #pauses = 0

  /** `random`: 0..1 */
  constructor(intervals: Pick<Intervals, 'firstMs' | 'maxMs'>, random = Math.random) {
    this.#intervals = intervals
    this.#random = random
  }

  /** How many pauses there were in a row. */
  get pauses(): number {
    return this.#pauses
  }

  /** The next pause: between half of the interval and all of it. */
  next(): number {
    const { firstMs, maxMs } = this.#intervals
    const intervalMs = Math.min(firstMs * 2 ** this.#pauses++, maxMs)
    return Math.ceil(intervalMs * (1 - this.#random() / 2))
  }

  /** An attempt has succeeded. */
  reset(): void {
    this.#pauses = 0
  }
}
