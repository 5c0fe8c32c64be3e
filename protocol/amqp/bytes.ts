/**
 * A reader and a writer of the bytes of AMQP 0-10 and QMF: big-endian, without padding. Text that is not UTF-8 is read
 * as Latin-1 and never refused: the name of a queue may be any bytes, and one odd name must not cost the rest of its
 * message.
 */
import { ByteReader } from '../bytes/reader.ts'
import { ByteWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'

const utf8Decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const utf8Encoder = new TextEncoder()

export class AmqpReader extends ByteReader {
  /** How many tables, lists and arrays are inside the one that is being read. */
  nestedItems = 0

  uint8(): number {
    return this.data.getUint8(this.take(1))
  }

  uint16(): number {
    return this.data.getUint16(this.take(2))
  }

  int8(): number {
    return this.data.getInt8(this.take(1))
  }

  int16(): number {
    return this.data.getInt16(this.take(2))
  }

  /** Returns the next bytes as a view of the given ones: copy what must outlive them. */
  view(length: number): Uint8Array {
    const start = this.take(length)
    return this.input.subarray(start, start + length)
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
    const outer = this.end
    const start = this.take(length)
    this.offset = start
    this.end = start + length
    try {
      const value = read()
      this.finish()
      return value
    } finally {
      this.end = outer
    }
  }
}

/** Integers are cut to their width, negative ones to their two's complement: check those that come from outside before. */
export class AmqpWriter extends ByteWriter {
  uint8(value: number): this {
    const at = this.reserve(1)
    this.data.setUint8(at, value)
    return this
  }

  uint16(value: number): this {
    const at = this.reserve(2)
    this.data.setUint16(at, value)
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
    const at = this.reserve(4)
    write()
    this.data.setUint32(at, this.length - at - 4)
    return this
  }

  /** As `sized32`, with a uint16. Throws ProtocolError (TOO_LONG) above 65,535 bytes. */
  sized16(write: () => void): this {
    const at = this.reserve(2)
    write()
    this.data.setUint16(at, checkLength(this.length - at - 2, 0xffff))
    return this
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
