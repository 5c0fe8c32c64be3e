/**
 * How many values a chunk of a benchmark's smon stream has: it looks at the first byte of each pair, since whoever does not
 * find where a value begins cannot take it. What the streams consist of is in durable-stream.ts and smon-feed.ts.
 */
const FIRST_OF_THREE = 0xe8

export class SmonValues {
  #definitionBytes: number
  #definitionValues: number
  /** Of the pair that the last chunk has cut. */
  #missing = 0

  constructor({ bytes, values }: { readonly bytes: number; readonly values: number }) {
    this.#definitionBytes = bytes
    this.#definitionValues = values
  }

  count(chunk: Uint8Array): number {
    let at = Math.min(this.#definitionBytes, chunk.length)
    let count = 0
    if (at > 0) {
      this.#definitionBytes -= at
      if (this.#definitionBytes > 0) return 0
      count = this.#definitionValues
      this.#definitionValues = 0
    }
    at += this.#missing
    while (at < chunk.length) {
      at += chunk[at] === FIRST_OF_THREE ? 3 : 2
      count++
    }
    this.#missing = at - chunk.length
    return count
  }
}
