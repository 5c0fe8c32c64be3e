/** Sums that keep what rounding would lose (Neumaier's form of Kahan's), and means that do not overflow where sums would. */

/** A running sum; `value` is the sum. */
export class CompensatedSum {
  #sum = 0
  #lost = 0

  add(value: number): void {
    const next = this.#sum + value
    if (next === Number.POSITIVE_INFINITY || next === Number.NEGATIVE_INFINITY) this.#lost = 0
    else if (Math.abs(this.#sum) >= Math.abs(value)) this.#lost += this.#sum - next + value
    else this.#lost += value - next + this.#sum
    this.#sum = next
  }

  get value(): number {
    return this.#sum + this.#lost
  }
}

/** The sum of a part of a column. */
export function sumOfValues(values: Float64Array, from: number, to: number): number {
  let sum = 0
  let lost = 0
  for (let index = from; index < to; index++) {
    const value = values[index] ?? 0
    const next = sum + value
    if (Math.abs(sum) >= Math.abs(value)) lost += sum - next + value
    else lost += value - next + sum
    if (next === Number.POSITIVE_INFINITY || next === Number.NEGATIVE_INFINITY) lost = 0
    sum = next
  }
  return sum + lost
}

/** A running mean: of the sum while that is finite, and from mean to mean once it would not be. */
export class RunningMean {
  #sum = 0
  #lost = 0
  #count = 0
  #isOfMeans = false

  add(value: number): void {
    this.#count++
    if (this.#count === 1) {
      this.#sum = value
      return
    }
    if (!this.#isOfMeans) {
      const [sum, lost] = increased(value, this.#sum, this.#lost)
      if (sum !== Number.POSITIVE_INFINITY && sum !== Number.NEGATIVE_INFINITY) {
        this.#sum = sum
        this.#lost = lost
        return
      }
      this.#isOfMeans = true
      this.#sum /= this.#count - 1
      this.#lost /= this.#count - 1
    }
    const share = (this.#count - 1) / this.#count
    const [mean, lost] = increased(value / this.#count, share * this.#sum, share * this.#lost)
    this.#sum = mean
    this.#lost = lost
  }

  get value(): number {
    if (this.#isOfMeans) return this.#sum + this.#lost
    return this.#sum / this.#count + this.#lost / this.#count
  }
}

/** A sum, and what it has lost so far, with one value more. */
export function increased(value: number, sum: number, lost: number): [sum: number, lost: number] {
  const next = sum + value
  if (next === Number.POSITIVE_INFINITY || next === Number.NEGATIVE_INFINITY) return [next, 0]
  if (Math.abs(sum) >= Math.abs(value)) return [next, lost + (sum - next + value)]
  return [next, lost + (value - next + sum)]
}
