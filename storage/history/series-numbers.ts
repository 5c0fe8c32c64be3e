/** A number for each of some series. */

/** 4 MiB. */
const MAX_RANGE = 1 << 20

/** 0 at first. */
export interface SeriesNumbers {
  get(series: number): number
  /** Of a series that is not out of range. */
  set(series: number, number: number): void
  add(series: number): void
  /** Those that are not 0. */
  all(): Iterable<[series: number, number: number]>
}

/** For series from the first to the last: an array where these are near each other, as those of one tenant mostly are, since a map takes several times as long. */
export function numbersBetween(first: number, last: number): SeriesNumbers {
  return last - first < MAX_RANGE ? new NearNumbers(first, last) : new FarNumbers()
}

class NearNumbers implements SeriesNumbers {
  readonly #first: number
  readonly #numbers: Int32Array

  constructor(first: number, last: number) {
    this.#first = first
    this.#numbers = new Int32Array(Math.max(0, last - first + 1))
  }

  get(series: number): number {
    const at = series - this.#first
    return at >= 0 && at < this.#numbers.length ? this.#numbers[at]! : 0
  }

  set(series: number, number: number): void {
    this.#numbers[series - this.#first] = number
  }

  add(series: number): void {
    this.#numbers[series - this.#first]!++
  }

  *all(): Iterable<[number, number]> {
    for (const [index, number] of this.#numbers.entries()) if (number !== 0) yield [this.#first + index, number]
  }
}

class FarNumbers implements SeriesNumbers {
  readonly #numbers = new Map<number, number>()

  get(series: number): number {
    return this.#numbers.get(series) ?? 0
  }

  set(series: number, number: number): void {
    this.#numbers.set(series, number)
  }

  add(series: number): void {
    this.set(series, this.get(series) + 1)
  }

  all(): Iterable<[number, number]> {
    return this.#numbers
  }
}
