/** When classes, and objects that nobody wants, are looked for again. Monotonic milliseconds. */

const EVERY_MS = 60_000
/** At least between two of them, where a call may have made objects. */
const SOON_MS = 10_000

export class Rounds {
  #begunMs = Number.POSITIVE_INFINITY
  #dueMs = Number.POSITIVE_INFINITY

  begin(nowMs: number): void {
    this.#begunMs = nowMs
    this.#dueMs = nowMs + EVERY_MS
  }

  /** The next one comes earlier. */
  hasten(): void {
    this.#dueMs = Math.min(this.#dueMs, this.#begunMs + SOON_MS)
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#dueMs
  }
}
