/**
 * How far a consumer has come on its channel: which transaction ids it has received, handled and may COMMIT [MON 5, 8].
 * Ids ascend in the order of sending, also when sent again, so that a repeat is known by the highest id received.
 * `through` covers only what was sent on this connection: what comes again behind a COMMIT is committed again.
 */
export interface Due {
  /** To be committed one by one. */
  readonly singles: readonly number[]
  /** To be committed with everything before it; 0 for nothing. */
  readonly through: number
}

/** At most so many COMMITs go out before the first is answered. */
const MAX_SINGLES = 4096

export class Progress {
  /** The highest id that ever came. */
  #received: number
  /** Everything up to here was handled, but for what was passed over. */
  #handled: number
  /** Everything up to here may be committed by one `through`. */
  #through: number
  /** Handled out of order: results of controls. */
  readonly #ahead = new Set<number>()
  /** Nobody wanted these. They are not committed, nor is anything behind them by `through`. */
  readonly #passed = new Set<number>()
  #singles: number[] = []
  /** The highest id that came on this connection, and the highest that went into a `through` on it. */
  #seen = 0
  #committed = 0

  /** `after`: the highest id that an earlier run has handled. */
  constructor(after = 0) {
    this.#received = this.#handled = this.#through = after
  }

  /** Whether this one is new; a repeat is taken note of and needs no handling. 0 is always new. */
  arrived(transaction: number): boolean {
    if (transaction === 0) return true
    if (transaction > this.#seen) this.#seen = transaction
    if (transaction > this.#received) {
      this.#received = transaction
      return true
    }
    const isHandled = transaction <= this.#handled || this.#ahead.has(transaction)
    if (isHandled && transaction > this.#through && !this.#passed.has(transaction)) this.#singles.push(transaction)
    return false
  }

  /** In the order of arrival. */
  handled(transaction: number): void {
    if (transaction <= this.#handled) return
    this.#handled = transaction
    if (this.#passed.size === 0) this.#through = transaction
    else this.#singles.push(transaction)
  }

  /** Before those that arrived earlier. */
  handledAhead(transaction: number): void {
    if (transaction === 0) return
    this.#ahead.add(transaction)
    this.#singles.push(transaction)
  }

  get hasPassedOver(): boolean {
    return this.#passed.size > 0
  }

  /** Left uncommitted: it comes again on the next connection of this channel that does not know it. */
  passedOver(transaction: number): void {
    if (transaction <= this.#handled) return
    this.#handled = transaction
    this.#passed.add(transaction)
  }

  /** A COMMIT of everything up to here is on its way from elsewhere; what never came is not part of it. */
  committingThrough(last: number): void {
    const transaction = Math.min(last, this.#received)
    if (transaction <= this.#through) return
    this.#handled = Math.max(this.#handled, transaction)
    this.#through = transaction
    this.#committed = Math.min(transaction, this.#seen)
    for (const passed of this.#passed) if (passed <= transaction) this.#passed.delete(passed)
  }

  /** A new connection has taken the channel up. */
  connected(): void {
    this.#seen = 0
    this.#committed = 0
    this.#singles = []
  }

  /** Takes what is to be committed now; undefined for nothing. */
  due(): Due | undefined {
    const through = Math.min(this.#through, this.#seen)
    const isBehind = through > this.#committed
    if (!isBehind && this.#singles.length === 0) return undefined
    if (isBehind) this.#committed = through
    const singles = this.#singles.splice(0, MAX_SINGLES)
    for (const transaction of this.#ahead) if (transaction <= this.#through) this.#ahead.delete(transaction)
    return { singles, through: isBehind ? through : 0 }
  }
}
