/**
 * The limits that keep one sender from harming the others: packets per second, capacity for hosts, metrics and bytes, and
 * the rate at which metadata is requested.
 */
import type { HostMetric } from './host.ts'

/** The share of each kind that is reserved for small sources, and that makes a source small. */
const SHARE = 0.1
const KINDS = ['hosts', 'metrics', 'bytes'] as const

export type Amount = Readonly<Record<(typeof KINDS)[number], number>>
const NOTHING: Amount = { hosts: 0, metrics: 0, bytes: 0 }

/**
 * The capacity for hosts, metrics and bytes, and who uses it. The last tenth of each is reserved for sources that use less
 * than a tenth: a sender that invents names without end must not keep others out.
 */
export class Capacity {
  readonly #limits: Amount
  readonly #bySource = new Map<string, Amount>()
  #taken = NOTHING

  constructor(limits: Amount) {
    this.#limits = limits
  }

  get taken(): Amount {
    return this.#taken
  }

  /** The kind that has not enough capacity for `more` from a source; undefined if all have. Shrinking is always possible. */
  findFull(source: string, more: Amount): keyof Amount | undefined {
    const own = this.#bySource.get(source) ?? NOTHING
    return KINDS.find((kind) => {
      const limit = this.#limits[kind]
      const isModest = own[kind] + more[kind] <= limit * SHARE
      return more[kind] > 0 && this.#taken[kind] + more[kind] > (isModest ? limit : Math.ceil(limit * (1 - SHARE)))
    })
  }

  /** Books `more` for a source; negative amounts are given back by the source that took them. */
  book(source: string, more: Amount): void {
    this.#taken = sum(this.#taken, more)
    const own = sum(this.#bySource.get(source) ?? NOTHING, more)
    if (KINDS.every((kind) => own[kind] === 0)) this.#bySource.delete(source)
    else this.#bySource.set(source, own)
  }
}

function sum(a: Amount, b: Amount): Amount {
  return { hosts: a.hosts + b.hosts, metrics: a.metrics + b.metrics, bytes: a.bytes + b.bytes }
}

const MAX_SOURCES = 4096
const WINDOW_MS = 1000

/**
 * The number of packets that each source may send in a second. Packets beyond it are not even decoded, so that one faulty
 * sender costs the others nothing. The number of sources is bounded: all others, such as forged addresses, share one limit.
 */
export class RateLimits {
  readonly #perSecond: number
  readonly #taken = new Map<string, { packets: number }>()
  #others = 0
  #windowMs = Number.NEGATIVE_INFINITY

  /** A `perSecond` of 0 means no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Counts a packet; returns false if it must be discarded. `nowMs` is monotonic. */
  take(source: string, nowMs: number): boolean {
    if (this.#perSecond === 0) return true
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      this.#windowMs = nowMs
      this.#taken.clear()
      this.#others = 0
    }
    const taken = this.#taken.get(source)
    if (taken === undefined && this.#taken.size >= MAX_SOURCES) return this.#others++ < this.#perSecond
    if (taken !== undefined) return taken.packets++ < this.#perSecond
    this.#taken.set(source, { packets: 1 })
    return true
  }
}

const AGAIN_MS = 60_000
const PER_SECOND = 100
const PER_SECOND_AND_SOURCE = 50

/**
 * Decides when to request the metadata of a value that came without. Requests are bounded, because an answer may never come
 * and the recipient did not ask for them: one per metric and minute, and a number per second, per source and in total.
 */
export class MetadataRequests {
  readonly #requestedMs = new WeakMap<HostMetric, number>()
  readonly #bySource = new RateLimits(PER_SECOND_AND_SOURCE)
  readonly #all = new RateLimits(PER_SECOND)

  /** Whether to request the metadata of `series` now, after a value for it came from `source`. */
  isDue(series: HostMetric, source: string, nowMs: number): boolean {
    if (series.metadata !== undefined) return false
    const requestedMs = this.#requestedMs.get(series)
    if (requestedMs !== undefined && nowMs - requestedMs < AGAIN_MS) return false
    if (!this.#bySource.take(source, nowMs) || !this.#all.take('', nowMs)) return false
    this.#requestedMs.set(series, nowMs)
    return true
  }
}
