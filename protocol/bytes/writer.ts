/**
 * Writers of big-endian bytes into one growing buffer, in general and for XDR (RFC 4506). Further writing may make the view
 * that `bytes()` returned stale. They use DataView because Buffer.write* measured ten times slower in hot loops on Node 20.
 */
const utf8 = new TextEncoder()
/** Up to here, one character after the other takes a fifth of the time of the encoder: names of fields are short, and many. */
const SHORT = 32

/** The numbers that all formats here write alike. */
export class ByteWriter {
  protected output: Uint8Array
  protected data: DataView
  length = 0

  constructor(capacity = 256) {
    this.output = new Uint8Array(capacity)
    this.data = new DataView(this.output.buffer)
  }

  /** A view of everything written so far. */
  bytes(): Uint8Array {
    return this.output.subarray(0, this.length)
  }

  uint32(value: number): this {
    const at = this.reserve(4)
    this.data.setUint32(at, value)
    return this
  }

  uint64(value: bigint): this {
    const at = this.reserve(8)
    this.data.setBigUint64(at, value)
    return this
  }

  float(value: number): this {
    const at = this.reserve(4)
    this.data.setFloat32(at, value)
    return this
  }

  double(value: number): this {
    const at = this.reserve(8)
    this.data.setFloat64(at, value)
    return this
  }

  /** Appends bytes that are encoded already. */
  raw(value: Uint8Array): this {
    const at = this.reserve(value.length)
    this.output.set(value, at)
    return this
  }

  /** Makes room for the next bytes and returns their position. Throws TypeError if the count is no number. */
  protected reserve(count: number): number {
    const at = this.length
    const need = at + count
    // Written so that NaN, the length of something that is no bytes, comes here: it costs nothing for others.
    if (!(need <= this.output.length)) {
      if (Number.isNaN(need)) throw new TypeError('cannot write a value that has no length in bytes')
      const grown = new Uint8Array(Math.max(need, this.output.length * 2))
      grown.set(this.output.subarray(0, at))
      this.output = grown
      this.data = new DataView(grown.buffer)
    }
    this.length = need
    return at
  }
}

export class XdrWriter extends ByteWriter {
  clear(): this {
    this.length = 0
    return this
  }

  /** A copy of everything written so far. */
  copy(): Uint8Array {
    return this.output.slice(0, this.length)
  }

  /** Five words at once, for the frames of which there are most. */
  words(first: number, second: number, third: number, fourth: number, fifth: number): this {
    const at = this.reserve(20)
    const { data } = this
    data.setUint32(at, first)
    data.setUint32(at + 4, second)
    data.setUint32(at + 8, third)
    data.setUint32(at + 12, fourth)
    data.setUint32(at + 16, fifth)
    return this
  }

  int32(value: number): this {
    const at = this.reserve(4)
    this.data.setInt32(at, value)
    return this
  }

  int64(value: bigint): this {
    const at = this.reserve(8)
    this.data.setBigInt64(at, value)
    return this
  }

  /** A number below 2^53 as uint64. */
  uint53(value: number): this {
    const at = this.reserve(8)
    const high = Math.floor(value / 0x100000000)
    this.data.setUint32(at, high)
    this.data.setUint32(at + 4, value - high * 0x100000000)
    return this
  }

  /** Numbers of 64 bits, one after the other, that stand there in the other order of bytes: as bits, whatever they mean. */
  swapped(view: DataView, from: number, count: number): this {
    const at = this.reserve(8 * count)
    const { data } = this
    for (let offset = 0; offset < 8 * count; offset += 8) {
      data.setUint32(at + offset, view.getUint32(from + offset + 4, true))
      data.setUint32(at + offset + 4, view.getUint32(from + offset, true))
    }
    return this
  }

  boolean(value: boolean): this {
    return this.uint32(value ? 1 : 0)
  }

  opaque(value: Uint8Array): this {
    const length = value.length
    const at = this.reserve(4 + length + (-length & 3))
    this.data.setUint32(at, length)
    this.output.set(value, at + 4)
    this.output.fill(0, at + 4 + length, this.length)
    return this
  }

  string(value: string): this {
    const { length } = value
    if (length > SHORT) return this.opaque(utf8.encode(value))
    const at = this.reserve(4 + length + (-length & 3))
    let end = at + 4
    for (let index = 0; index < length; index++) {
      const unit = value.charCodeAt(index)
      if (unit >= 0x80) {
        this.length = at
        return this.opaque(utf8.encode(value))
      }
      this.output[end++] = unit
    }
    this.data.setUint32(at, length)
    while (end < this.length) this.output[end++] = 0
    return this
  }

  /** Has a frame written whole or not at all: half a frame would spoil everything after it. Throws what `write` throws. */
  whole(write: (writer: XdrWriter) => void): void {
    const { length } = this
    try {
      write(this)
    } catch (error) {
      this.length = length
      throw error
    }
  }

  /** Leaves room for a frame's length; `endFrame` fills it in. */
  beginFrame(): number {
    return this.reserve(4)
  }

  endFrame(at: number): this {
    this.data.setUint32(at, this.length - at - 4)
    return this
  }
}
