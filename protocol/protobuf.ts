/**
 * Reading messages of protocol buffers field by field. The library has the wire format; what stands here is what a server needs
 * besides: bounds on what a few bytes can be turned into, and errors with their place.
 */
import { BinaryReader, type WireType } from '@bufbuild/protobuf/wire'
import { ProtocolError } from './errors.ts'

/** The wire types, by the numbers of the encoding. */
export const VARINT = 0
export const FIXED64 = 1
export const BYTES = 2

const NANOSECONDS = 1_000
/** 2^32 is 4,294,967 thousands and 296. */
const THOUSANDS = 4_294_967
const REST = 296

/** A byte order mark at the beginning is a character like others: without it two texts would become one. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** What is read in one step of a message that is read in steps, and the most that a message may have which is not. */
const ELEMENTS_PER_STEP = 512
export const MAX_MESSAGE_ELEMENTS = 32_768
/** Up to here, one character after the other is faster than the decoder. */
const SHORT_BYTES = 32

/**
 * What stands for bytes that are no UTF-8: half of a pair, which is no text either. It costs what it belongs to, as a lone half
 * in JSON does, and not the whole request.
 */
const NO_TEXT = '\ud800'

function decodeText(bytes: Uint8Array): string {
  if (bytes.length > SHORT_BYTES) return decodeLong(bytes)
  let text = ''
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte >= 0x80) return decodeLong(bytes)
    text += String.fromCharCode(byte)
  }
  return text
}

function decodeLong(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    return NO_TEXT
  }
}

/** Thrown where something costs the message that `within` reads, and not the whole: nobody else sees it, so it needs no stack. */
export class Unfit {
  /** What is wrong, for people. */
  readonly problem: string

  constructor(problem: string) {
    this.problem = problem
  }
}

/** Reads a field; returns false if it does not know the field, which is then skipped. */
type TakeField = (field: number, wire: WireType) => boolean

export class MessageReader {
  readonly #reader: BinaryReader
  readonly #view: DataView
  /** Fields and packed numbers that may still be read: a few bytes must not become many objects, nor much work. */
  #left: number
  /** The number that was left when the last step ended. */
  #leftBefore: number
  /** Where that number ends for the message that `within` reads. */
  #least = Number.NEGATIVE_INFINITY
  /** Where the innermost message ends that is read at once. */
  #end = 0
  #tooMany: Unfit | undefined

  constructor(bytes: Uint8Array, mostElements: number) {
    this.#reader = new BinaryReader(bytes, decodeText)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#left = mostElements
    this.#leftBefore = mostElements
  }

  get offset(): number {
    return this.#reader.pos
  }

  /** Whether fields are left of the whole. */
  get isAtEnd(): boolean {
    return this.#reader.pos >= this.#reader.len
  }

  /** True now and then, when enough was read since the last time: a place to pause. */
  get isStepOver(): boolean {
    if (this.#leftBefore - this.#left < ELEMENTS_PER_STEP) return false
    this.#leftBefore = this.#left
    return true
  }

  /** Runs what reads, so that errors of the library have their place. Throws ProtocolError. */
  attempt<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      throw new ProtocolError('BAD_PROTOBUF', error instanceof Error ? error.message : String(error), this.offset)
    }
  }

  /** Reads one field of a message that is read in steps. */
  field(take: TakeField): void {
    const tag = this.#reader.uint32()
    const [field, wire] = [tag >>> 3, (tag & 7) as WireType]
    if (field === 0) throw this.bad('a field with the number 0')
    this.#count()
    if (!take(field, wire)) this.#reader.skip(wire, field)
  }

  /**
   * Where a run of messages under one number (1 to 15) ends that begins here, in a message that ends there. Nothing is read; `skip`
   * passes over it.
   */
  endOfRun(field: number, end: number): number {
    const { pos } = this.#reader
    const tag = (field << 3) | BYTES
    let at = pos
    while (at < end && this.#view.getUint8(at) === tag) {
      this.#reader.pos = at + 1
      const next = this.#reader.uint32() + this.#reader.pos
      if (next > end) break
      at = next
    }
    this.#reader.pos = pos
    return at
  }

  /** The same for a run whose first tag was just read, up to the end of the message that is read at once. -1 if that tag is longer. */
  endOfRunBegun(field: number): number {
    const start = this.#reader.pos - 1
    if (this.#view.getUint8(start) !== ((field << 3) | BYTES)) return -1
    this.#reader.pos = start
    const end = this.endOfRun(field, this.#end)
    this.#reader.pos = start + 1
    return end
  }

  /** Goes on there: what stands before is known. It counts as so many elements. */
  skip(end: number, elements: number): void {
    this.weigh(elements)
    this.#reader.pos = end
  }

  /** Goes back to there. What was read since stays counted. */
  back(start: number): void {
    this.#reader.pos = start
  }

  /** Elements that may still be read. */
  get left(): number {
    return this.#left
  }

  /** What is read. */
  get view(): DataView {
    return this.#view
  }

  /** The end of a message that begins here, with its length. */
  messageEnd(): number {
    const end = this.#reader.uint32() + this.#reader.pos
    if (end > this.#reader.len) throw this.bad('a message that is longer than what is left')
    return end
  }

  /** Reads a message inside of another one, at once. */
  message(take: TakeField): void {
    this.restOfMessage(this.messageEnd(), take)
  }

  /** Reads what is left of a message that ends there; so many of its elements are read already. */
  restOfMessage(end: number, take: TakeField, elements = 0): void {
    const least = this.#left + elements - MAX_MESSAGE_ELEMENTS
    const outer = this.#end
    this.#end = end
    while (this.#reader.pos < end) {
      this.field(take)
      if (this.#left < least) throw new ProtocolError('BAD_COUNT', 'too many elements in one message', this.offset)
    }
    this.#end = outer
    this.endedAt(end)
  }

  /**
   * Reads a message that may have this many elements, with all that is in it; `read` reads it. One that has more, or in which
   * `read` finds something unfit, is passed over.
   */
  within<T>(most: number, tooMany: Unfit, read: () => T): T | Unfit {
    const start = this.#reader.pos
    const end = this.messageEnd()
    const outer = this.#end
    this.#reader.pos = start
    this.#least = this.#left - most
    this.#tooMany = tooMany
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Unfit)) throw error
      this.#reader.pos = end
      this.#end = outer
      return error
    } finally {
      this.#least = Number.NEGATIVE_INFINITY
    }
  }

  /** Checks that a message which was read in steps has ended where its length says. */
  endedAt(end: number): void {
    if (this.#reader.pos !== end) throw this.bad('a field that goes beyond its message')
  }

  #count(): void {
    this.weigh(1)
  }

  /** Counts something that costs as much as so many fields, before it is made. */
  weigh(fields: number): void {
    this.#left -= fields
    if (this.#left < 0) throw new ProtocolError('BAD_COUNT', 'too many elements in one request', this.offset)
    if (this.#left < this.#least) throw this.#tooMany
  }

  text(): string {
    return this.#reader.string()
  }

  bytes(): Uint8Array {
    return this.#reader.bytes()
  }

  uint32(): number {
    return this.#reader.uint32()
  }

  sint32(): number {
    return this.#reader.sint32()
  }

  bool(): boolean {
    return this.#reader.bool()
  }

  double(): number {
    return this.#reader.double()
  }

  /** The place of eight bytes, which are passed over: a NaN keeps its bits only there. */
  eight(): number {
    const at = this.#reader.pos
    if (at + 8 > this.#reader.len) throw this.bad('a number that is cut off')
    this.#reader.pos = at + 8
    return at
  }

  int64(): bigint {
    return BigInt(this.#reader.int64())
  }

  uint64(): bigint {
    return BigInt(this.#reader.uint64())
  }

  fixed64(): bigint {
    return BigInt(this.#reader.fixed64())
  }

  sfixed64(): bigint {
    return BigInt(this.#reader.sfixed64())
  }

  /** A fixed64 of nanoseconds as microseconds, exactly, rounded down. */
  microseconds(): number {
    return this.microsecondsAt(this.eight())
  }

  microsecondsAt(at: number): number {
    const high = this.#view.getUint32(at + 4, true)
    const low = this.#view.getUint32(at, true)
    const rest = high * REST + low
    return high * THOUSANDS + Math.floor(rest / NANOSECONDS)
  }

  /** A varint of milliseconds: a signed number of 64 bits, exact up to 2^53. */
  milliseconds(): number {
    const { pos, len } = this.#reader
    let [number, scale] = [0, 1]
    // Positive numbers of up to 49 bits, which times are, need no BigInt.
    for (let at = pos; at < len && at < pos + 7; at++, scale *= 128) {
      const byte = this.#view.getUint8(at)
      number += (byte & 0x7f) * scale
      if (byte >= 0x80) continue
      this.#reader.pos = at + 1
      return number
    }
    return Number(this.int64())
  }

  /** Numbers one by one, however they are packed. `read` reads one. */
  repeated(wire: WireType, take: () => void): void {
    if (wire !== BYTES) {
      take()
      return
    }
    const end = this.messageEnd()
    const least = this.#left - MAX_MESSAGE_ELEMENTS
    while (this.#reader.pos < end) {
      this.#count()
      take()
      if (this.#left < least) throw new ProtocolError('BAD_COUNT', 'too many numbers in one message', this.offset)
    }
    this.endedAt(end)
  }

  bad(what: string): ProtocolError {
    return new ProtocolError('BAD_PROTOBUF', what, this.offset)
  }
}

/** Nanoseconds of a time in microseconds, for writers. */
export function nanoseconds(microseconds: number): bigint {
  return BigInt(Math.floor(microseconds)) * BigInt(NANOSECONDS)
}
