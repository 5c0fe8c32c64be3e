/** What the consumer checks: each of the numbers 1, 2, 3 … has to come exactly once and in order. */
export class Count {
  handled = 0
  /** Passed over. One that comes after all is in `repeated` as well: out of order is no success. */
  lost = 0
  /** Not above the one before. */
  repeated = 0
  #last = 0

  take(number: number): void {
    this.handled++
    if (number <= this.#last) {
      this.repeated++
      return
    }
    this.lost += number - this.#last - 1
    this.#last = number
  }
}
