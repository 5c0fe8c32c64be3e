/**
 * Cuts a byte stream into frames: uint32 length + payload [MON 1]. A frame that is incomplete is `false`, never an error;
 * a length out of bounds is refused from the length field alone, before anything is kept for it.
 * A frame is a pair of positions in `bytes`, valid until the next `push` or `settle`.
 */
import { ProtocolError } from '../errors.ts'

export const MIN_FRAME_BYTES = 8
export const MAX_FRAME_BYTES = 1 << 20
export const MAX_FRAME_BYTES_BEFORE_AUTH = 1 << 16
const NO_BYTES = new Uint8Array(0)

export class Framer {
  maxFrameBytes: number
  /** The buffer of the current frame; its payload, without the length field, lies from `start` to `end`. */
  bytes: Uint8Array = NO_BYTES
  view: DataView = new DataView(NO_BYTES.buffer)
  start = 0
  end = 0
  #next = 0
  #limit = 0
  #owned = false

  constructor(maxFrameBytes: number) {
    this.maxFrameBytes = maxFrameBytes
  }

  /** The number of bytes after the current frame. */
  get pending(): number {
    return this.#limit - this.#next
  }

  /** Takes the next piece of the stream. It is not copied before `settle`, and then only the rest of it. */
  push(chunk: Uint8Array): void {
    if (this.pending === 0) {
      this.#point(chunk, chunk.length, false)
    } else {
      this.#append(chunk)
    }
  }

  /** Moves to the next whole frame. Returns false if some of its bytes have not arrived. */
  next(): boolean {
    const at = this.#next
    if (this.#limit - at < 4) return false
    const length = this.view.getUint32(at)
    if (length > this.maxFrameBytes) {
      throw new ProtocolError('FRAME_TOO_LONG', `a frame of ${length} bytes; the limit is ${this.maxFrameBytes}`, at)
    }
    if (length < MIN_FRAME_BYTES)
      throw new ProtocolError('FRAME_TOO_SHORT', `a frame of ${length} bytes; the least is 8`, at)
    if ((length & 3) !== 0)
      throw new ProtocolError('FRAME_UNALIGNED', `a frame of ${length} bytes, which is not a multiple of 4`, at)
    if (this.#limit - at - 4 < length) return false
    this.start = at + 4
    this.end = this.#next = at + 4 + length
    return true
  }

  /** Passes over the next `bytes`, which the caller has read: whole frames that have arrived. */
  skip(bytes: number): void {
    this.#next += bytes
  }

  /** Copies the rest out of the receive buffer: to be called at the end of a turn. */
  settle(): void {
    if (this.#owned && this.pending > 0) return
    // A constructor, not slice(): that of Node's Buffer gives a view.
    const rest = new Uint8Array(this.bytes.subarray(this.#next, this.#limit))
    this.#point(rest, rest.length, rest.length > 0)
  }

  #append(chunk: Uint8Array): void {
    const pending = this.pending
    const need = pending + chunk.length
    if (this.#owned && this.#limit + chunk.length <= this.bytes.length) {
      this.bytes.set(chunk, this.#limit)
      this.#limit += chunk.length
      return
    }
    const grown = new Uint8Array(this.#owned ? Math.max(need, Math.min(2 * pending, this.maxFrameBytes + 4)) : need)
    grown.set(this.bytes.subarray(this.#next, this.#limit))
    grown.set(chunk, pending)
    this.#point(grown, need, true)
  }

  #point(bytes: Uint8Array, limit: number, owned: boolean): void {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#next = 0
    this.#limit = limit
    this.#owned = owned
  }
}
