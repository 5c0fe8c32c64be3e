/**
 * Which tenant a source sends for. Each tenant has a sensor of its own, with its own hosts, limits and counters, so that
 * nothing one of them sends can be seen, renamed or crowded out by another.
 */
import type { Network } from '../core/address.ts'
import { Sources } from './allowed.ts'

/** How many values a tenant's feeds may bring in. */
export interface Meter {
  /** One comes in; false: it has to stay out. */
  take(): boolean
  /** Milliseconds until more may come in; 0: now. For feeds that can wait. */
  readonly waitMs: number
}

export const UNMETERED: Meter = { take: () => true, waitMs: 0 }

/** What a feed is called in `producer.sensors`: that of the section's own tenant by its kind alone. */
export function feedName(kind: string, tenant: string | undefined): string {
  return tenant === undefined ? kind : `${kind}/${tenant}`
}

export interface FeedOptions<S> {
  /** For all sources that are nobody else's: its own `allow` decides. */
  readonly own: S
  readonly others: readonly { readonly allow: readonly Network[]; readonly sensor: S }[]
}

export class Feeds<S> {
  /** Of the section's own tenant. */
  readonly own: S
  readonly #others: readonly { readonly sources: Sources; readonly sensor: S }[]

  constructor({ own, others }: FeedOptions<S>) {
    this.own = own
    this.#others = others.map(({ allow, sensor }) => ({ sources: new Sources(allow), sensor }))
  }

  /** The sensor for a source; `address` as Node gives it. */
  of(address: string): S {
    for (const { sources, sensor } of this.#others) if (sources.of(address).allowed) return sensor
    return this.own
  }

  all(): S[] {
    return [this.own, ...this.#others.map(({ sensor }) => sensor)]
  }
}
