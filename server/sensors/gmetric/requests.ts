/**
 * When metadata is asked for: a value came, and nobody said what it is. Bounded twice, since an answer may never come and
 * whoever is asked did not ask for it: a metric once a minute, and all together so many in a second.
 */
import type { Series } from './host.ts'

const AGAIN_MS = 60_000
const PER_SECOND = 100

export class Requests {
  readonly #asked = new WeakMap<Series, number>()
  #secondMs = Number.NEGATIVE_INFINITY
  #inSecond = 0

  /** Whether to ask for the metadata of `series` now. */
  due(series: Series, nowMs: number): boolean {
    if (series.metadata !== undefined) return false
    const asked = this.#asked.get(series)
    if (asked !== undefined && nowMs - asked < AGAIN_MS) return false
    if (nowMs - this.#secondMs >= 1000) {
      this.#secondMs = nowMs
      this.#inSecond = 0
    }
    if (this.#inSecond++ >= PER_SECOND) return false
    this.#asked.set(series, nowMs)
    return true
  }
}
