/**
 * Whether a node that leads can still be the one that does. A node that is cut off from NATS hears nothing, not even itself. A
 * machine that is cut off from the others may go on reaching the nats-server on itself, which then has no majority: nothing can be
 * appended, and another node leads by now. As long as another node is heard, that one would say so.
 */
import type { ClusterNodeOptions } from './node-options.ts'
import type { Replica } from './replica.ts'

/** Leases without NATS, or without the others, after which a leader gives up: another one leads by then. */
export const CUT_OFF_LEASES = 3

export interface SupportOptions {
  readonly config: Pick<ClusterNodeOptions['config'], 'nodes' | 'leaseMs'>
  readonly replica: Pick<Replica, 'end'>
  /** Ms; see `AwakeTime`. */
  readonly now: () => number
  /** How long this node has not heard itself, in ms. */
  readonly cutOffMs: () => number
  readonly isAnyoneHeard: () => boolean
}

export class Support {
  readonly #options: SupportOptions
  /** When another node was heard, or a majority of the nats-servers answered. */
  #knownAt = 0
  #askedAt = 0
  #isAsking = false

  constructor(options: SupportOptions) {
    this.#options = options
  }

  /** This node begins to lead. */
  begin(): void {
    this.#knownAt = this.#options.now()
  }

  /** Why this node has to give up, as a sentence; undefined if it may lead. To be read several times a lease. */
  get missing(): string | undefined {
    const { now, cutOffMs, isAnyoneHeard, config } = this.#options
    const { nodes, leaseMs } = config
    const limitMs = CUT_OFF_LEASES * leaseMs
    if (cutOffMs() > limitMs) return 'the nats-servers are out of reach'
    if (nodes.length === 1 || isAnyoneHeard()) this.#knownAt = now()
    else if (!this.#isAsking && now() - this.#askedAt >= leaseMs) void this.#ask()
    if (now() - this.#knownAt <= limitMs) return undefined
    return 'no other node is heard, and no majority of the nats-servers answers'
  }

  async #ask(): Promise<void> {
    const { replica, now, config } = this.#options
    const at = now()
    this.#isAsking = true
    this.#askedAt = at
    try {
      await replica.end(config.leaseMs)
      this.#knownAt = Math.max(this.#knownAt, at)
    } catch {
      // Whatever the reason is, there is no answer.
    } finally {
      this.#isAsking = false
    }
  }
}
