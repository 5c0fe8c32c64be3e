/**
 * When metadata is asked for: a value came, and nobody said what it is. Bounded twice, since an answer may never come and
 * whoever is asked did not ask for it: a metric once a minute, and so many in a second, of one source and of all.
 */
import { RateLimits } from './budget.ts'
import type { HostMetric } from './host.ts'

const AGAIN_MS = 60_000
const PER_SECOND = 100
const PER_SECOND_OF_SOURCE = 50

export class MetadataRequests {
  readonly #asked = new WeakMap<HostMetric, number>()
  readonly #bySource = new RateLimits(PER_SECOND_OF_SOURCE)
  readonly #all = new RateLimits(PER_SECOND)

  /** Whether to ask for the metadata of `series`, of which a value came from `source`, now. */
  isDue(series: HostMetric, source: string, nowMs: number): boolean {
    if (series.metadata !== undefined) return false
    const asked = this.#asked.get(series)
    if (asked !== undefined && nowMs - asked < AGAIN_MS) return false
    if (!this.#bySource.take(source, nowMs) || !this.#all.take('', nowMs)) return false
    this.#asked.set(series, nowMs)
    return true
  }
}
