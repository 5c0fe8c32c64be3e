/** Collects the frames of one segment. One frame is kept as it is; with more the buffer grows as bytes come in. */
export class Segment {
  readonly maxBytes: number
  #bytes: Uint8Array = new Uint8Array(0)
  #length = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** False: it would be longer than allowed; nothing was taken. The payload must be nobody else's. */
  append(payload: Uint8Array): boolean {
    const need = this.#length + payload.length
    if (need > this.maxBytes) return false
    if (this.#length === 0) {
      this.#bytes = payload
    } else {
      if (need > this.#bytes.length) {
        const grown = new Uint8Array(Math.min(Math.max(need, 2 * this.#bytes.length), this.maxBytes))
        grown.set(this.#bytes.subarray(0, this.#length))
        this.#bytes = grown
      }
      this.#bytes.set(payload, this.#length)
    }
    this.#length = need
    return true
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }
}
