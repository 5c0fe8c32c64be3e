/**
 * A cursor over the bytes of AMQP 0-10 and QMF: big-endian, nothing is padded. Every take is checked against what is left
 * before anything is allocated. Text that is not UTF-8 is read as Latin-1, never refused: a queue may be named by any
 * bytes, and one odd name must not cost what else stands in its message.
 */
import { ProtocolError } from '../errors.ts'

const fromUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })
const toUtf8 = new TextEncoder()

export class Cursor {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #end: number
  /** Where the next field begins, from the start of the given bytes. */
  offset: number
  /** Items without bytes of their own that were read so far; whoever reads such counts them here and bounds them. */
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
    return this.#view.getUint8(this.#take(1))
  }

  uint16(): number {
    return this.#view.getUint16(this.#take(2))
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4))
  }

  uint64(): bigint {
    return this.#view.getBigUint64(this.#take(8))
  }

  int8(): number {
    return this.#view.getInt8(this.#take(1))
  }

  int16(): number {
    return this.#view.getInt16(this.#take(2))
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4))
  }

  int64(): bigint {
    return this.#view.getBigInt64(this.#take(8))
  }

  float(): number {
    return this.#view.getFloat32(this.#take(4))
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8))
  }

  /** The next bytes as a view of those given: copy what must outlive them. */
  view(length: number): Uint8Array {
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  /** The next bytes as a copy. (By the constructor: slice() of Node's Buffer gives a view.) */
  copy(length: number): Uint8Array {
    return new Uint8Array(this.view(length))
  }

  /** As lower-case hexadecimal digits, two for each byte. */
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

  /** What `read` makes of the next `length` bytes: it can take no more of them, and has to take all. */
  within<T>(length: number, read: () => T): T {
    const outer = this.#end
    const at = this.offset
    this.#take(length)
    this.offset = at
    this.#end = at + length
    try {
      const value = read()
      this.finish()
      return value
    } finally {
      this.#end = outer
    }
  }

  /** Refuses bytes left over behind the last field. */
  finish(): void {
    if (this.remaining > 0) {
      throw new ProtocolError('TRAILING_BYTES', `${this.remaining} bytes left over behind the last field`, this.offset)
    }
  }

  #take(length: number): number {
    const at = this.offset
    if (length > this.#end - at) {
      throw new ProtocolError('TRUNCATED', `${length} bytes expected, ${this.#end - at} left`, at)
    }
    this.offset = at + length
    return at
  }
}

export function decodeText(bytes: Uint8Array): string {
  return decodeUtf8(bytes) ?? decodeLatin1(bytes)
}

/** Undefined where the bytes are not UTF-8. (Not by a decoder that throws: 5 us a throw, and a body may hold many.) */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  const text = fromUtf8.decode(bytes)
  if (!text.includes('\ufffd')) return text
  const again = toUtf8.encode(text)
  return again.length === bytes.length && again.every((byte, i) => byte === bytes[i]) ? text : undefined
}

/** Real Latin-1, every byte its own character; a TextDecoder of that name reads windows-1252. */
export function decodeLatin1(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}
