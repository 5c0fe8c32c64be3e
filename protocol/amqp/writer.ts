/**
 * Writes the bytes of AMQP 0-10 and QMF into one growing buffer: big-endian, nothing is padded. `bytes()` is a view that
 * further writing makes stale. Integers are cut to their width: whoever has them from outside checks them before.
 */
import { ProtocolError } from '../errors.ts'

const utf8 = new TextEncoder()

export class Writer {
  #bytes: Uint8Array
  #view: DataView
  length = 0

  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity)
    this.#view = new DataView(this.#bytes.buffer)
  }

  /** What was written, as a view. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  uint8(value: number): this {
    const at = this.#reserve(1)
    this.#view.setUint8(at, value)
    return this
  }

  uint16(value: number): this {
    const at = this.#reserve(2)
    this.#view.setUint16(at, value)
    return this
  }

  uint32(value: number): this {
    const at = this.#reserve(4)
    this.#view.setUint32(at, value)
    return this
  }

  /** Takes a negative one too, as its two's complement. */
  uint64(value: bigint): this {
    const at = this.#reserve(8)
    this.#view.setBigUint64(at, value)
    return this
  }

  float(value: number): this {
    const at = this.#reserve(4)
    this.#view.setFloat32(at, value)
    return this
  }

  double(value: number): this {
    const at = this.#reserve(8)
    this.#view.setFloat64(at, value)
    return this
  }

  raw(value: Uint8Array): this {
    const at = this.#reserve(value.length)
    this.#bytes.set(value, at)
    return this
  }

  /** An even number of hexadecimal digits, as bytes. */
  hex(digits: string): this {
    for (let i = 0; i < digits.length; i += 2) this.uint8(Number.parseInt(digits.slice(i, i + 2), 16))
    return this
  }

  /** Throws ProtocolError (TOO_LONG) above 255 bytes of UTF-8. */
  str8(value: string): this {
    const bytes = atMost(0xff, utf8.encode(value))
    return this.uint8(bytes.length).raw(bytes)
  }

  /** Throws ProtocolError (TOO_LONG) above 65,535 bytes of UTF-8. */
  str16(value: string): this {
    return this.vbin16(utf8.encode(value))
  }

  vbin16(value: Uint8Array): this {
    return this.uint16(atMost(0xffff, value).length).raw(value)
  }

  vbin32(value: Uint8Array): this {
    return this.uint32(value.length).raw(value)
  }

  /** What `write` writes, behind its size as uint32. */
  sized32(write: () => void): this {
    const at = this.#reserve(4)
    write()
    this.#view.setUint32(at, this.length - at - 4)
    return this
  }

  /** What `write` writes, behind its size as uint16. Throws ProtocolError (TOO_LONG) above 65,535 bytes. */
  sized16(write: () => void): this {
    const at = this.#reserve(2)
    write()
    atMost(0xffff, this.#bytes.subarray(at + 2, this.length))
    this.#view.setUint16(at, this.length - at - 2)
    return this
  }

  #reserve(count: number): number {
    const at = this.length
    const need = at + count
    if (need > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(need, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, at))
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    this.length = need
    return at
  }
}

function atMost(maxBytes: number, bytes: Uint8Array): Uint8Array {
  if (bytes.length <= maxBytes) return bytes
  throw new ProtocolError('TOO_LONG', `${bytes.length} bytes where at most ${maxBytes} may stand`)
}
