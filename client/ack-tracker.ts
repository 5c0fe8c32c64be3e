/** Which values of a channel have come, which are handled or committed, and which COMMITs are due. */
import { OpenIds } from './open-ids.ts'

export interface DueCommits {
  /** Ids to commit one by one. */
  readonly singles: readonly number[]
  /** The id to commit together with everything before it; 0 if there is none. */
  readonly through: number
}

/** The largest number of single COMMITs that are sent before the first is answered. */
const MAX_SINGLES = 4096

/**
 * How far a consumer has come on its channel: which transaction ids it has received and handled, and which of them a
 * COMMIT is due for [MON 5, 8]. Ids ascend in the order of sending, also when they are sent again, so an id that is not
 * higher than every earlier one is a repeat. `through` covers only what was sent on the present connection: a value that is
 * sent again after its COMMIT was lost is committed again.
 */
export class AckTracker {
  /** Where the program commits each value itself: the ids that came and are not committed. The window of the channel bounds them. */
  readonly #open: OpenIds | undefined
  /** The highest id ever received. */
  #received: number
  /** Everything up to this id was handled, except for what was skipped. */
  #handled: number
  /** Everything up to this id may be committed by one `through`. */
  #through: number
  /** Ids handled out of order: the results of controls, and what the program has committed before something that came earlier. */
  readonly #outOfOrder = new Set<number>()
  /** Ids that nobody wanted. Neither they nor anything after them may be committed by `through`. */
  readonly #skipped = new Set<number>()
  #singles: number[] = []
  /** The highest id received on this connection, and the highest that a `through` on it covers. */
  #seen = 0
  #committed = 0

  /** `after` is the highest id that an earlier run has handled. `isExplicit`: only the program commits. */
  constructor(after = 0, isExplicit = false) {
    this.#received = this.#handled = this.#through = after
    this.#open = isExplicit ? new OpenIds() : undefined
  }

  get hasSkipped(): boolean {
    return this.#skipped.size > 0
  }

  /** Returns whether the id is new. A repeat needs no handling and is committed again if it was handled. 0 is always new. */
  received(transaction: number): boolean {
    if (transaction === 0) return true
    if (transaction > this.#seen) this.#seen = transaction
    if (transaction > this.#received) {
      this.#received = transaction
      this.#open?.add(transaction)
      return true
    }
    const isHandled = transaction <= this.#handled || this.#outOfOrder.has(transaction)
    if (isHandled && transaction > this.#through && !this.#skipped.has(transaction)) this.#singles.push(transaction)
    return false
  }

  /** To be called in the order of arrival. */
  handled(transaction: number): void {
    if (transaction <= this.#handled) return
    this.#handled = transaction
    if (this.#skipped.size === 0) this.#through = transaction
    else this.#singles.push(transaction)
  }

  /** The value was handled before others that arrived earlier. */
  handledOutOfOrder(transaction: number): void {
    if (transaction === 0) return
    this.#outOfOrder.add(transaction)
    this.#singles.push(transaction)
  }

  /**
   * The program commits this value, whatever becomes of the others. If everything before it is committed, too, one `through` covers
   * it, and all that are committed before that is sent.
   */
  committed(transaction: number): void {
    const isUnhandled = transaction > this.#handled && transaction <= this.#received
    const place = this.#open === undefined ? isUnhandled && 'later' : this.#open.take(transaction)
    if (place === 'first') this.handled(transaction)
    else if (place === 'later') this.handledOutOfOrder(transaction)
  }

  /** The caller itself sends a COMMIT of this id alone. */
  committing(transaction: number): void {
    this.#open?.take(transaction)
  }

  /** The producer has stored these: they do not come again. */
  stored({ singles }: DueCommits): void {
    if (this.#outOfOrder.size > 0) for (const transaction of singles) this.#outOfOrder.delete(transaction)
  }

  /** The value stays uncommitted: another program that takes up the channel receives it again. */
  skipped(transaction: number): void {
    if (transaction <= this.#handled) return
    this.#handled = transaction
    this.#skipped.add(transaction)
  }

  /** The caller itself sends a COMMIT of everything up to this id. Ids that have not arrived yet are not covered. */
  committingThrough(last: number): void {
    const transaction = Math.min(last, this.#received)
    if (transaction <= this.#through) return
    this.#handled = Math.max(this.#handled, transaction)
    this.#through = transaction
    this.#committed = Math.min(transaction, this.#seen)
    this.#open?.takeThrough(transaction)
    for (const skipped of this.#skipped) if (skipped <= transaction) this.#skipped.delete(skipped)
  }

  /** A new connection has taken up the channel. */
  reconnected(): void {
    this.#seen = 0
    this.#committed = 0
    this.#singles = []
  }

  /** Takes what is to be committed now; undefined if that is nothing. */
  takeDue(): DueCommits | undefined {
    const through = Math.min(this.#through, this.#seen)
    const isBehind = through > this.#committed
    if (!isBehind && this.#singles.length === 0) return undefined
    if (isBehind) this.#committed = through
    const singles = this.#singles.splice(0, MAX_SINGLES)
    for (const transaction of this.#outOfOrder) if (transaction <= this.#through) this.#outOfOrder.delete(transaction)
    return { singles, through: isBehind ? through : 0 }
  }
}
