/**
 * Budgets of the memory that smon streams cost: tokens, bytes and indexes. Whatever holds some of it takes it here and gives
 * it back, so a budget of which everybody has gone is unused.
 */
import type { SmonShare } from '../../../protocol/smon/decode.ts'

export class SmonBudget implements SmonShare {
  readonly limit: number
  readonly #refused: () => void
  readonly #whole: SmonBudget | undefined
  #used = 0

  /** `refused` is called whenever it is not sufficient. `whole` is the budget that this one is a part of, if any. */
  constructor(limit: number, refused: () => void, whole?: SmonBudget) {
    this.limit = limit
    this.#refused = refused
    this.#whole = whole
  }

  get used(): number {
    return this.#used
  }

  take(amount: number): boolean {
    if (amount > 0 && this.#used + amount > this.limit) {
      this.#refused()
      return false
    }
    if (this.#whole?.take(amount) === false) return false
    this.#used += amount
    return true
  }
}
