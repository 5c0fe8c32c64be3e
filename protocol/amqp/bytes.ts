/**
 * A reader and a writer of the bytes of AMQP 0-10 and QMF: big-endian, without padding. Text that is not UTF-8 is read
 * as Latin-1 and never refused: the name of a queue may be any bytes, and one odd name must not cost the rest of its
 * message.
 */
import { ProtocolError } from '../errors.ts'

const utf8Decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const utf8Encoder = new TextEncoder()

/** Every read is checked against the bytes that are left before anything is allocated. */
export class ByteReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #end: number
  /** The position of the next field, counted from the start of the given bytes. */
  offset: number
  /**
   * The number of items without bytes of their own that were read so far. The code that reads them counts and limits
   * them.
   */
  emptyItems = 0

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.offset = start
    this.#end = end
  }

  get remaining(): number {
    return this.#end - this.offset
  }

  uint8(): number {
    return this.#view.getUint8(this.#advance(1))
  }

  uint16(): number {
    return this.#view.getUint16(this.#advance(2))
  }

  uint32(): number {
    return this.#view.getUint32(this.#advance(4))
  }

  uint64(): bigint {
    return this.#view.getBigUint64(this.#advance(8))
  }

  int8(): number {
    return this.#view.getInt8(this.#advance(1))
  }

  int16(): number {
    return this.#view.getInt16(this.#advance(2))
  }

  int32(): number {
    return this.#view.getInt32(this.#advance(4))
  }

  int64(): bigint {
    return this.#view.getBigInt64(this.#advance(8))
  }

  float(): number {
    return this.#view.getFloat32(this.#advance(4))
  }

  double(): number {
    return this.#view.getFloat64(this.#advance(8))
  }

  /** Returns the next bytes as a view of the given ones: copy what must outlive them. */
  view(length: number): Uint8Array {
    const start = this.#advance(length)
    return this.#bytes.subarray(start, start + length)
  }

  /** Returns the next bytes as a copy. (By the constructor: slice() of Node's Buffer returns a view.) */
  copy(length: number): Uint8Array {
    return new Uint8Array(this.view(length))
  }

  /** Returns the next bytes as lower-case hexadecimal digits. */
  hex(length: number): string {
    let text = ''
    for (const byte of this.view(length)) text += byte.toString(16).padStart(2, '0')
    return text
  }

  str8(): string {
    return decodeText(this.view(this.uint8()))
  }

  str16(): string {
    return decodeText(this.view(this.uint16()))
  }

  vbin16(): Uint8Array {
    return this.copy(this.uint16())
  }

  vbin32(): Uint8Array {
    return this.copy(this.uint32())
  }

  /** Limits `read` to the next `length` bytes, all of which it has to read. */
  within<T>(length: number, read: () => T): T {
    const outer = this.#end
    const start = this.#advance(length)
    this.offset = start
    this.#end = start + length
    try {
      const value = read()
      this.finish()
      return value
    } finally {
      this.#end = outer
    }
  }

  /** Refuses bytes after the last field. */
  finish(): void {
    if (this.remaining > 0) {
      throw new ProtocolError('TRAILING_BYTES', `${this.remaining} bytes left over after the last field`, this.offset)
    }
  }

  #advance(length: number): number {
    const at = this.offset
    if (length > this.#end - at) {
      throw new ProtocolError('TRUNCATED', `${length} bytes expected, ${this.#end - at} left`, at)
    }
    this.offset = at + length
    return at
  }
}

/** Writes into one growing buffer. Integers are cut to their width: check those that come from outside before. */
export class ByteWriter {
  #bytes: Uint8Array
  #view: DataView
  length = 0

  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity)
    this.#view = new DataView(this.#bytes.buffer)
  }

  /** Returns everything written so far as a view, which further writing invalidates. */
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

  /** Writes a negative number as its two's complement. */
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

  /** Writes the bytes of an even number of hexadecimal digits. */
  hex(digits: string): this {
    for (let i = 0; i < digits.length; i += 2) this.uint8(Number.parseInt(digits.slice(i, i + 2), 16))
    return this
  }

  /** Throws ProtocolError (TOO_LONG) above 255 bytes of UTF-8. */
  str8(value: string): this {
    const bytes = utf8Encoder.encode(value)
    return this.uint8(checkLength(bytes.length, 0xff)).raw(bytes)
  }

  /** Throws ProtocolError (TOO_LONG) above 65,535 bytes of UTF-8. */
  str16(value: string): this {
    return this.vbin16(utf8Encoder.encode(value))
  }

  vbin16(value: Uint8Array): this {
    return this.uint16(checkLength(value.length, 0xffff)).raw(value)
  }

  vbin32(value: Uint8Array): this {
    return this.uint32(value.length).raw(value)
  }

  /** Puts the size of what `write` writes in front of it, as uint32. */
  sized32(write: () => void): this {
    const at = this.#reserve(4)
    write()
    this.#view.setUint32(at, this.length - at - 4)
    return this
  }

  /** As `sized32`, with a uint16. Throws ProtocolError (TOO_LONG) above 65,535 bytes. */
  sized16(write: () => void): this {
    const at = this.#reserve(2)
    write()
    this.#view.setUint16(at, checkLength(this.length - at - 2, 0xffff))
    return this
  }

  #reserve(count: number): number {
    const at = this.length
    this.length += count
    if (this.length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.length, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, at))
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    return at
  }
}

function checkLength(length: number, maxLength: number): number {
  if (length <= maxLength) return length
  throw new ProtocolError('TOO_LONG', `${length} bytes where at most ${maxLength} fit`)
}

export function encodeUtf8(text: string): Uint8Array {
  return utf8Encoder.encode(text)
}

function decodeText(bytes: Uint8Array): string {
  return decodeUtf8(bytes) ?? decodeLatin1(bytes)
}

/**
 * Returns undefined if the bytes are not UTF-8. (Without a decoder that throws: a throw costs 5 us, and a body may hold
 * many.)
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  const text = utf8Decoder.decode(bytes)
  if (!text.includes('\ufffd')) return text
  const again = utf8Encoder.encode(text)
  return again.length === bytes.length && again.every((byte, i) => byte === bytes[i]) ? text : undefined
}

/** Reads real Latin-1, in which every byte is a character; a TextDecoder of that name reads windows-1252. */
export function decodeLatin1(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}
