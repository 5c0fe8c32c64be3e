/**
 * Cursors over big-endian bytes, in general and for XDR (RFC 4506), which pads everything to 4 bytes. Every length is
 * checked against the bytes that are left before anything is allocated.
 */
import { ProtocolError } from '../errors.ts'

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const NO_BYTES = new Uint8Array(0)

/** The numbers that all formats here read alike. */
export class ByteReader {
  protected input: Uint8Array
  protected data: DataView
  protected end: number
  /** The position of the next field, counted from the start of the given bytes. */
  offset: number
  /** The number of items without bytes of their own that were read so far: their readers count and limit them. */
  emptyItems = 0

  constructor(bytes: Uint8Array = NO_BYTES, start = 0, end = bytes.length) {
    this.input = bytes
    this.data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.offset = start
    this.end = end
  }

  get remaining(): number {
    return this.end - this.offset
  }

  uint32(): number {
    return this.data.getUint32(this.take(4))
  }

  int32(): number {
    return this.data.getInt32(this.take(4))
  }

  uint64(): bigint {
    return this.data.getBigUint64(this.take(8))
  }

  int64(): bigint {
    return this.data.getBigInt64(this.take(8))
  }

  float(): number {
    return this.data.getFloat32(this.take(4))
  }

  double(): number {
    return this.data.getFloat64(this.take(8))
  }

  /** Refuses bytes after the last field. */
  finish(): void {
    if (this.remaining > 0) {
      throw new ProtocolError('TRAILING_BYTES', `${this.remaining} bytes left over after the last field`, this.offset)
    }
  }

  /** Advances by `length` bytes and returns the position of the first. */
  protected take(length: number): number {
    const at = this.offset
    if (length > this.end - at) {
      throw new ProtocolError('TRUNCATED', `${length} bytes expected, ${this.end - at} left`, at)
    }
    this.offset = at + length
    return at
  }
}

/** One reader serves many frames: `reset` points it at the next. */
export class XdrReader extends ByteReader {
  #opaqueEnd = 0

  /** Points the reader at `bytes[start..end)`. A caller that already has a `view` of the same bytes can pass it. */
  reset(bytes: Uint8Array, start = 0, end = bytes.length, view?: DataView): this {
    this.input = bytes
    this.data = view ?? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.offset = start
    this.emptyItems = 0
    this.end = end
    return this
  }

  /** A uint64 as a number: exact below 2^53, which transaction ids and times never reach; above it the nearest double. */
  uint53(): number {
    const at = this.take(8)
    return this.data.getUint32(at) * 0x100000000 + this.data.getUint32(at + 4)
  }

  boolean(): boolean {
    const at = this.offset
    const value = this.uint32()
    if (value > 1) throw new ProtocolError('BAD_BOOLEAN', `a boolean is 0 or 1, not ${value}`, at)
    return value === 1
  }

  /** The bytes of a string or opaque field, as a view of the frame. What must outlive the turn has to be copied. */
  opaqueView(maxBytes?: number): Uint8Array {
    const start = this.#opaque(maxBytes)
    return this.input.subarray(start, this.#opaqueEnd)
  }

  /** A copy of the bytes of a string or opaque field. (Made by the constructor: slice() of Node's Buffer gives a view.) */
  opaque(maxBytes?: number): Uint8Array {
    return new Uint8Array(this.opaqueView(maxBytes))
  }

  /** A string that must be UTF-8. */
  string(maxBytes?: number): string {
    const at = this.offset
    try {
      const start = this.#opaque(maxBytes)
      return this.decodeText(start, this.#opaqueEnd)
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      throw new ProtocolError('BAD_UTF8', 'the string is not UTF-8', at)
    }
  }

  /** A string, or a copy of its bytes if it is not UTF-8. */
  stringOrBytes(): string | Uint8Array {
    const start = this.#opaque()
    const end = this.#opaqueEnd
    try {
      return this.decodeText(start, end)
    } catch {
      return new Uint8Array(this.input.subarray(start, end))
    }
  }

  /** Throws TypeError if it is not UTF-8. */
  protected decodeText(start: number, end: number): string {
    return strictUtf8.decode(this.input.subarray(start, end))
  }

  /** Passes a string or opaque field over. Returns where its bytes begin; they go up to `#opaqueEnd`. */
  #opaque(maxBytes = Number.MAX_SAFE_INTEGER): number {
    const at = this.offset
    const length = this.uint32()
    if (length > maxBytes)
      throw new ProtocolError('TOO_LONG', `${length} bytes where at most ${maxBytes} are allowed`, at)
    const start = this.take(length)
    this.#opaqueEnd = start + length
    this.#padding(length)
    return start
  }

  #padding(length: number): void {
    const count = -length & 3
    const at = this.take(count)
    for (let i = at; i < at + count; i++) {
      if (this.input[i] !== 0) throw new ProtocolError('BAD_PADDING', 'the padding is not zero', i)
    }
  }
}
