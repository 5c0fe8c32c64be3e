/**
 * Bytes that grow one by one. What a peer announces is never reserved: memory follows the bytes that really came.
 */
export class ByteString {
  #bytes = new Uint8Array(16)
  #length = 0
  #view: Uint8Array | undefined

  get length(): number {
    return this.#length
  }

  clear(): void {
    this.#length = 0
    this.#view = undefined
  }

  push(byte: number): void {
    if (this.#length === this.#bytes.length) {
      const grown = new Uint8Array(this.#length * 2)
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    this.#bytes[this.#length++] = byte
    this.#view = undefined
  }

  /** A view, the same one until the next change. */
  view(): Uint8Array {
    this.#view ??= this.#bytes.subarray(0, this.#length)
    return this.#view
  }
}
