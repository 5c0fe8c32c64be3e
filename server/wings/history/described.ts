/** Which metrics of the series that are recorded the server is asked about: what they are, it alone knows. */
import type { DescribedNames } from './messages.ts'

/** What is known of a metric is asked for again after this time: its source may say something else by now. */
const ASK_AGAIN_MS = 3_600_000
/** Metrics of one channel of which it is known when they were asked for; with more of them all are asked for again. */
const MAX_ASKED = 200_000
/** Of one message, so that answering it takes the server about a millisecond. */
const AT_ONCE = 256

export class DescribedMetrics {
  /** When a metric was asked for, by its tenant and native name. */
  readonly #asked = new Map<string, number>()
  /** Not asked for yet. */
  readonly #waiting = new Map<string, Set<string>>()

  /** A series of a metric is recorded. */
  recorded(tenant: string, native: string, nowMs: number): void {
    const key = `${tenant} ${native}`
    const asked = this.#asked.get(key)
    // The clock may have been set back.
    if (asked !== undefined && Math.abs(nowMs - asked) < ASK_AGAIN_MS) return
    if (this.#asked.size >= MAX_ASKED) this.#asked.clear()
    this.#asked.set(key, nowMs)
    const waiting = this.#waiting.get(tenant) ?? new Set()
    this.#waiting.set(tenant, waiting.add(native))
  }

  /** Some that wait; undefined if none do. */
  next(): DescribedNames | undefined {
    for (const [tenant, waiting] of this.#waiting) {
      const natives: string[] = []
      for (const native of waiting) {
        if (natives.length === AT_ONCE) break
        natives.push(native)
        waiting.delete(native)
      }
      if (waiting.size === 0) this.#waiting.delete(tenant)
      if (natives.length > 0) return { tenant, natives }
    }
    return undefined
  }
}
