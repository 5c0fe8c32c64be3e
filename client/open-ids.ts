/**
 * Ids in ascending order, of which mostly the first is taken. To take one costs about the same however many there are: a program
 * may let as many values wait for its COMMIT as the window allows, and commit them in any order.
 */

/** Ids that are taken are only removed when there are so many, and they are half of all. */
const MIN_REMOVED = 1024

export class OpenIds {
  /** In place of an id that was taken before its turn stands its negative. */
  #ids: number[] = []
  /** Everything before this index is taken. */
  #first = 0

  /** It must be higher than every earlier one. */
  add(id: number): void {
    this.#ids.push(id)
  }

  /** Returns whether it was the first that is left, or a later one; undefined if it is none of them. */
  take(id: number): 'first' | 'later' | undefined {
    const index = this.#find(id)
    if (this.#ids[index] !== id) return undefined
    if (index > this.#first) {
      this.#ids[index] = -id
      return 'later'
    }
    this.takeThrough(id)
    return 'first'
  }

  /** Takes all up to this one. */
  takeThrough(id: number): void {
    // Those that were taken before their turn go with them: their negatives are less.
    while (this.#first < this.#ids.length && (this.#ids[this.#first] as number) <= id) this.#first++
    if (this.#first < MIN_REMOVED || this.#first * 2 < this.#ids.length) return
    this.#ids = this.#ids.slice(this.#first)
    this.#first = 0
  }

  /** Where the id is, or would be. */
  #find(id: number): number {
    let low = this.#first
    if (this.#ids[low] === id) return low
    let high = this.#ids.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (Math.abs(this.#ids[middle] as number) < id) low = middle + 1
      else high = middle
    }
    return low
  }
}
