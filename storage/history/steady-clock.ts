/**
 * Whether the clock of the day can be trusted as far as age goes: it has not been set for an hour. Until then nothing is deleted for its
 * age, since a clock that jumps forward, even for a moment, would make everything too old.
 */

/** Small corrections are usual. */
const MOST_DRIFT_MS = 60_000
const STEADY_MS = 3_600_000

export class SteadyClock {
  readonly #wallMs: () => number
  readonly #monotonicMs: () => number
  /** How far the clock of the day is before the monotonic one. */
  #aheadMs: number
  #sinceMs: number

  constructor(wallMs: () => number, monotonicMs: () => number) {
    this.#wallMs = wallMs
    this.#monotonicMs = monotonicMs
    this.#sinceMs = monotonicMs()
    this.#aheadMs = wallMs() - this.#sinceMs
  }

  /** To be asked every few minutes at least: a clock that was set and set back between two questions has done no harm. */
  isSteady(): boolean {
    const monotonicMs = this.#monotonicMs()
    const aheadMs = this.#wallMs() - monotonicMs
    if (Math.abs(aheadMs - this.#aheadMs) > MOST_DRIFT_MS) this.#sinceMs = monotonicMs
    this.#aheadMs = aheadMs
    return monotonicMs - this.#sinceMs >= STEADY_MS
  }
}
