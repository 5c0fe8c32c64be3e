/**
 * How many packets each source may bring in a second. What is beyond is not even decoded, so that one sender gone wild
 * costs others nothing. Forged addresses share what is left: only so many sources are told apart.
 */
const MAX_SOURCES = 4096
const WINDOW_MS = 1000

export class RateLimits {
  readonly #perSecond: number
  readonly #taken = new Map<string, { packets: number }>()
  #elsewhere = 0
  #windowMs = Number.NEGATIVE_INFINITY

  /** `perSecond`: 0 is no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** One comes in; false: it has to stay out. `nowMs`: monotonic. */
  take(source: string, nowMs: number): boolean {
    if (this.#perSecond === 0) return true
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      this.#windowMs = nowMs
      this.#taken.clear()
      this.#elsewhere = 0
    }
    const taken = this.#taken.get(source)
    if (taken === undefined && this.#taken.size >= MAX_SOURCES) return this.#elsewhere++ < this.#perSecond
    if (taken !== undefined) return taken.packets++ < this.#perSecond
    this.#taken.set(source, { packets: 1 })
    return true
  }
}
