/**
 * Bytes that are kept for long, many of them in one buffer. A buffer for each would cost more than it holds: it is allocated by
 * itself, and the garbage collector counts it again and again. A buffer is given back when nobody has bytes of it any more.
 */

/** The first buffer. Each is twice as large as the one before, so that a few bytes take little room. */
const LEAST_BUFFER = 1 << 10
const MOST_BUFFER = 64 << 10

export class BytePool {
  readonly #mostBuffer: number
  #buffer = new DataView(new ArrayBuffer(0))
  #used = 0

  /** `mostBuffer`: bytes of the largest buffer. A quarter of that, and more, has a buffer of its own. */
  constructor(mostBuffer = MOST_BUFFER) {
    this.#mostBuffer = mostBuffer
  }

  /** Copies `length` bytes, which begin at `start` of a view. They stand in `view` from `at` on. */
  keep(from: DataView, start: number, length: number): { readonly view: DataView; readonly at: number } {
    const view = 4 * length > this.#mostBuffer ? new DataView(new ArrayBuffer(length)) : this.#room(length)
    const at = view === this.#buffer ? this.#used : 0
    new Uint8Array(view.buffer, at, length).set(new Uint8Array(from.buffer, from.byteOffset + start, length))
    if (view === this.#buffer) this.#used += length
    return { view, at }
  }

  /** Copies bytes; gives the copy. */
  keepBytes({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
    const { view, at } = this.keep(new DataView(buffer, byteOffset, length), 0, length)
    return new Uint8Array(view.buffer, at, length)
  }

  #room(length: number): DataView {
    if (this.#used + length > this.#buffer.byteLength) {
      const bytes = Math.min(Math.max(2 * this.#buffer.byteLength, LEAST_BUFFER, 4 * length), this.#mostBuffer)
      this.#buffer = new DataView(new ArrayBuffer(bytes))
      this.#used = 0
    }
    return this.#buffer
  }
}
