/**
 * How often each identity failed within about a minute, from wherever. It is counted in whole minutes, and of the one before
 * as much as still lies within the last sixty seconds. What failed least recently is forgotten first: whoever is guessed
 * at fast enough to matter is never at that end.
 */
const MINUTE_MS = 60_000

interface Count {
  readonly minute: number
  readonly failures: number
  /** In the minute before. */
  readonly before: number
}

export class FailureRate {
  readonly #maxIdentities: number
  /** In the order of the latest failure. */
  readonly #counts = new Map<string, Count>()

  constructor(maxIdentities: number) {
    this.#maxIdentities = maxIdentities
  }

  /** `now` in milliseconds, monotonic. */
  count(identity: string, now: number): void {
    const { minute, failures, before } = this.#at(identity, now)
    this.#counts.delete(identity)
    for (const [other, count] of this.#counts) {
      if (this.#counts.size < this.#maxIdentities && minute - count.minute < 2) break
      this.#counts.delete(other)
    }
    this.#counts.set(identity, { minute, failures: failures + 1, before })
  }

  /** Failures within the last minute. */
  of(identity: string, now: number): number {
    const { minute, failures, before } = this.#at(identity, now)
    return failures + before * (1 - (now / MINUTE_MS - minute))
  }

  #at(identity: string, now: number): Count {
    const minute = Math.floor(now / MINUTE_MS)
    const count = this.#counts.get(identity)
    if (count?.minute === minute) return count
    return { minute, failures: 0, before: count?.minute === minute - 1 ? count.failures : 0 }
  }
}
