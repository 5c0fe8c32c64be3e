/**
 * Bytes that are kept for long, many of them in one buffer. A buffer for each would cost more than it holds: it is allocated by
 * itself, and the garbage collector counts it again and again. A buffer is given back when nobody has bytes of it any more.
 */

const BUFFER_BYTES = 64 << 10
/** Bytes of which so many fill a buffer, and longer ones, have one of their own. */
const OWN_BUFFER = BUFFER_BYTES / 4

export class BytePool {
  #buffer = new DataView(new ArrayBuffer(0))
  #used = 0

  /** Copies `length` bytes, which begin at `start` of a view. They stand in `view` from `at` on. */
  keep(from: DataView, start: number, length: number): { readonly view: DataView; readonly at: number } {
    const view = length >= OWN_BUFFER ? new DataView(new ArrayBuffer(length)) : this.#room(length)
    const at = view === this.#buffer ? this.#used : 0
    new Uint8Array(view.buffer, at, length).set(new Uint8Array(from.buffer, from.byteOffset + start, length))
    if (view === this.#buffer) this.#used += length
    return { view, at }
  }

  #room(length: number): DataView {
    if (this.#used + length > this.#buffer.byteLength) {
      this.#buffer = new DataView(new ArrayBuffer(BUFFER_BYTES))
      this.#used = 0
    }
    return this.#buffer
  }
}
