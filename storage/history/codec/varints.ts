/**
 * Bytes of chunks and pages: whole numbers as varints (seven bits a byte, the lowest first), signed ones as zigzag. A reader never
 * leaves its bytes: whatever is cut or damaged ends with DamagedPage.
 */

/** The bytes are no page, or no longer. */
export class DamagedPage extends Error {
  override readonly name = 'DamagedPage'
}

/** The most bytes of a varint: 2^53 needs eight. */
const MAX_VARINT = 8

export class VarintWriter {
  bytes: Uint8Array
  length = 0

  constructor(capacity = 1 << 16) {
    this.bytes = new Uint8Array(capacity)
  }

  /** Makes room for so many bytes: what follows does not check it. */
  ensure(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(2 * this.bytes.length, this.length + more))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
  }

  byte(value: number): void {
    this.bytes[this.length++] = value
  }

  /** A whole number below 2^53; needs room for eight bytes. */
  varint(value: number): void {
    const { bytes } = this
    while (value >= 0x80000000) {
      bytes[this.length++] = (value % 128) | 128
      value = Math.floor(value / 128)
    }
    while (value >= 128) {
      bytes[this.length++] = (value & 127) | 128
      value >>>= 7
    }
    bytes[this.length++] = value
  }

  /** A whole number between -2^52 and 2^52; needs room for eight bytes. */
  signed(value: number): void {
    this.varint(value < 0 ? -2 * value - 1 : 2 * value)
  }

  /** Appends bytes, and makes room for them. */
  append(bytes: Uint8Array): void {
    this.ensure(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  /** The bytes so far. They are valid until the next change. */
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }
}

export class VarintReader {
  readonly bytes: Uint8Array
  readonly end: number
  at: number

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    if (at < 0 || end > bytes.length || at > end) throw new DamagedPage('a part is outside of its page')
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  byte(): number {
    if (this.at >= this.end) throw new DamagedPage('bytes are missing')
    return this.bytes[this.at++]!
  }

  varint(): number {
    const first = this.byte()
    if (first < 128) return first
    let value = first & 127
    let scale = 128
    for (let count = 1; count < MAX_VARINT; count++) {
      const byte = this.byte()
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
    throw new DamagedPage('a number has too many bytes')
  }

  signed(): number {
    const value = this.varint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** A number from 0 to `most`. */
  upTo(most: number, what: string): number {
    const value = this.varint()
    if (value > most) throw new DamagedPage(`${value} ${what}, and ${most} is the most`)
    return value
  }

  /** The position of the next so many bytes, which are passed over. */
  skip(length: number): number {
    const { at } = this
    if (length > this.end - at) throw new DamagedPage('bytes are missing')
    this.at = at + length
    return at
  }
}
