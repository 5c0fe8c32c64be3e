/**
 * How far a follower is behind the log, as time: the age of the oldest record that it does not have. The log says only how
 * long it is now, so this remembers when it was how long.
 */

/** Marks that are kept: a follower that is further behind is at least as far behind as the oldest. */
const MAX_MARKS = 200

interface Mark {
  /** The length of the log. */
  readonly last: number
  /** When it was known to be so long. */
  readonly at: number
}

export class Lag {
  readonly #now: () => number
  readonly #everyMs: number
  /** The oldest first. */
  #marks: Mark[] = []

  /** A mark is made every `everyMs`, so that is how exact the lag is. */
  constructor(now: () => number, everyMs: number) {
    this.#now = now
    this.#everyMs = everyMs
  }

  /** The database has everything up to `sequence`, and the log is as long as `last`. */
  reached(sequence: number, last: number): void {
    this.#marks = this.#marks.filter((mark) => mark.last > sequence)
    const newest = this.#marks.at(-1)
    const at = this.#now()
    if (last <= Math.max(sequence, newest?.last ?? 0) || this.#marks.length >= MAX_MARKS) return
    if (newest === undefined || at - newest.at >= this.#everyMs) this.#marks.push({ last, at })
  }

  /** The log ends at `last`: what was beyond was lost with the nats-server that had it, and will not come. */
  endsAt(last: number): void {
    this.#marks = this.#marks.filter((mark) => mark.last <= last)
  }

  /** In ms; 0 if the database has all that the log was known to have. */
  get ms(): number {
    const [oldest] = this.#marks
    return oldest === undefined ? 0 : this.#now() - oldest.at
  }
}
