/**
 * How long values take from one end to the other, where they arrive in the order in which they were sent: a value belongs to the
 * tick that it was sent in. Times are milliseconds.
 */
export class Latencies {
  readonly #sentMs: number[] = []
  /** How many values were sent until the end of each tick. */
  readonly #sentUntil: number[] = []
  readonly #took: number[] = []
  readonly #weights: number[] = []
  #tick = 0
  sent = 0
  received = 0

  /** `count` values are handed over now. */
  send(count: number, nowMs: number): void {
    this.sent += count
    this.#sentMs.push(nowMs)
    this.#sentUntil.push(this.sent)
  }

  /** `count` values have come. */
  receive(count: number, nowMs: number): void {
    let left = count
    while (left > 0 && this.#tick < this.#sentMs.length) {
      const some = Math.min(left, (this.#sentUntil[this.#tick] as number) - this.received)
      this.#took.push(nowMs - (this.#sentMs[this.#tick] as number))
      this.#weights.push(some)
      this.received += some
      left -= some
      if (this.received === this.#sentUntil[this.#tick]) this.#tick++
    }
  }

  /** The time within which this share of the values has come; undefined if none has. */
  within(share: number): number | undefined {
    const order = this.#took
      .map((_, index) => index)
      .sort((a, b) => (this.#took[a] as number) - (this.#took[b] as number))
    let left = share * this.received
    for (const index of order) {
      left -= this.#weights[index] as number
      if (left <= 0) return this.#took[index]
    }
    return undefined
  }
}
