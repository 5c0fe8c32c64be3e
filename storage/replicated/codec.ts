/**
 * The primitives of records of the replicated log: docs/protocol/replicated-log.md has every byte. All is little-endian, since
 * that is how the arrays of a batch lie in memory: they are copied as blocks. Every length is checked against the bytes that are
 * left before anything is allocated.
 */
import { endianness } from 'node:os'
import { RECORD_HASH_BYTES } from './place.ts'

export type RecordErrorCode =
  /** A newer version has written the record. */
  | 'TOO_NEW'
  /** The bytes are no record, or a batch cannot be made one. */
  | 'MALFORMED'
  /** The frames that a block of the record continues are not stored here, or are others. */
  | 'NO_BASE'

export class RecordError extends Error {
  override readonly name = 'RecordError'
  readonly code: RecordErrorCode
  /** Where in the record, in bytes; undefined if there is none yet. */
  readonly offset: number | undefined

  constructor(code: RecordErrorCode, message: string, offset?: number) {
    super(offset === undefined ? message : `${message} (byte ${offset} of the record)`)
    this.code = code
    this.offset = offset
  }
}

const IS_LITTLE_ENDIAN = endianness() === 'LE'
const DOUBLE_BYTES = 8
const utf8 = new TextEncoder()
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export class RecordWriter {
  #output: Uint8Array<ArrayBuffer>
  #view: DataView
  #length = 0

  /** `capacity` in bytes: if it is that of the whole record, nothing is copied twice. */
  constructor(capacity = 256) {
    this.#output = new Uint8Array(capacity)
    this.#view = new DataView(this.#output.buffer)
  }

  /** A view of everything written so far; further writing may make it stale. */
  bytes(): Uint8Array {
    return this.#output.subarray(0, this.#length)
  }

  uint8(value: number): void {
    const at = this.#reserve(1)
    this.#view.setUint8(at, value)
  }

  uint32(value: number): void {
    const at = this.#reserve(4)
    this.#view.setUint32(at, value, true)
  }

  double(value: number): void {
    const at = this.#reserve(DOUBLE_BYTES)
    this.#view.setFloat64(at, value, true)
  }

  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length)
    this.#output.set(bytes, at)
  }

  doubles(numbers: Float64Array): void {
    const at = this.#reserve(numbers.byteLength)
    const written = this.#output.subarray(at, at + numbers.byteLength)
    written.set(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength))
    turn(written)
  }

  /** Makes room for the next bytes; returns their position. */
  #reserve(count: number): number {
    const at = this.#length
    const need = at + count
    if (need > this.#output.length) {
      const grown = new Uint8Array(Math.max(need, this.#output.length * 2))
      grown.set(this.#output.subarray(0, at))
      this.#output = grown
      this.#view = new DataView(grown.buffer)
    }
    this.#length = need
    return at
  }
}

export class RecordReader {
  readonly #input: Uint8Array
  readonly #view: DataView
  #offset = 0

  constructor(bytes: Uint8Array) {
    // `slice` of a Buffer would copy nothing.
    this.#input = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** The position of the next field. */
  get offset(): number {
    return this.#offset
  }

  get remaining(): number {
    return this.#input.length - this.#offset
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1))
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  double(): number {
    return this.#view.getFloat64(this.#take(DOUBLE_BYTES), true)
  }

  /** A view of the next bytes. */
  view(length: number): Uint8Array {
    const at = this.#take(length)
    return this.#input.subarray(at, at + length)
  }

  /** A copy of the next bytes. */
  raw(length: number): Uint8Array {
    const at = this.#take(length)
    return this.#input.slice(at, at + length)
  }

  /** A copy of the next `count` numbers, in memory of its own. */
  doubles(count: number): Float64Array<ArrayBuffer> {
    const bytes = this.view(count * DOUBLE_BYTES)
    const numbers = new Float64Array(count)
    const copy = new Uint8Array(numbers.buffer)
    copy.set(bytes)
    turn(copy)
    return numbers
  }

  /** Advances by `length` bytes; returns the position of the first. */
  #take(length: number): number {
    const at = this.#offset
    if (length > this.remaining)
      throw new RecordError('MALFORMED', `the record ends early: ${length} bytes expected, ${this.remaining} left`, at)
    this.#offset = at + length
    return at
  }
}

/** Turns numbers between the order of this machine and that of the log. */
function turn(doubles: Uint8Array): void {
  if (!IS_LITTLE_ENDIAN) Buffer.from(doubles.buffer, doubles.byteOffset, doubles.length).swap64()
}

/** How a value is written and read. `write` throws RecordError for values that no reader would take. */
export interface RecordField<Value> {
  write(writer: RecordWriter, value: Value): void
  read(reader: RecordReader): Value
}

/** The fields of an object. They are written in the order in which they are spelled out. */
export type RecordFields<Row> = { readonly [Name in keyof Row]-?: RecordField<Row[Name]> }

/** Any number but NaN, which no row has. */
export const double: RecordField<number> = numeric((value) => !Number.isNaN(value), 'a number')

/** 0 .. 2^53 - 1 */
export const whole: RecordField<number> = numeric(
  (value) => Number.isSafeInteger(value) && value >= 0,
  'a whole number',
)

function numeric(isValid: (value: number) => boolean, kind: string): RecordField<number> {
  return {
    write(writer, value) {
      if (!isValid(value)) throw new RecordError('MALFORMED', `${value} is not ${kind}`)
      writer.double(value)
    },
    read(reader) {
      const at = reader.offset
      const value = reader.double()
      if (!isValid(value)) throw new RecordError('MALFORMED', `${value} is not ${kind}`, at)
      return value
    },
  }
}

export const flag: RecordField<boolean> = {
  write(writer, value) {
    writer.uint8(value ? 1 : 0)
  },
  read(reader) {
    const at = reader.offset
    const value = reader.uint8()
    if (value > 1) throw new RecordError('MALFORMED', `a flag is 0 or 1, not ${value}`, at)
    return value === 1
  },
}

export const opaque: RecordField<Uint8Array> = {
  write(writer, value) {
    writer.uint32(value.length)
    writer.raw(value)
  },
  read(reader) {
    return reader.raw(reader.uint32())
  },
}

/** Half of a surrogate pair becomes U+FFFD. */
export const text: RecordField<string> = {
  write(writer, value) {
    opaque.write(writer, utf8.encode(value))
  },
  read(reader) {
    const at = reader.offset
    const bytes = opaque.read(reader)
    try {
      return strictUtf8.decode(bytes)
    } catch {
      throw new RecordError('MALFORMED', 'a text is not UTF-8', at)
    }
  },
}

/** A hash or a secret. */
export const hash32: RecordField<Uint8Array> = {
  write(writer, value) {
    if (value.length !== RECORD_HASH_BYTES)
      throw new RecordError('MALFORMED', `${value.length} bytes where ${RECORD_HASH_BYTES} belong`)
    writer.raw(value)
  },
  read(reader) {
    return reader.raw(RECORD_HASH_BYTES)
  },
}

/** A value that may be undefined: a flag, then the value if there is one. */
export function orNothing<Value>(field: RecordField<Value>): RecordField<Value | undefined> {
  return {
    write(writer, value) {
      flag.write(writer, value !== undefined)
      if (value !== undefined) field.write(writer, value)
    },
    read(reader) {
      return flag.read(reader) ? field.read(reader) : undefined
    },
  }
}

/** One of a few words, as a number that never changes. */
export function word<Word extends string>(numbers: Readonly<Record<Word, number>>): RecordField<Word> {
  const words = new Map(Object.entries<number>(numbers).map(([name, number]) => [number, name as Word]))
  return {
    write(writer, value) {
      const number: number | undefined = numbers[value]
      if (number === undefined) throw new RecordError('MALFORMED', `"${value}" is none of ${Object.keys(numbers)}`)
      writer.uint8(number)
    },
    read(reader) {
      const at = reader.offset
      const number = reader.uint8()
      const found = words.get(number)
      if (found === undefined) throw new RecordError('MALFORMED', `${number} is none of ${Object.keys(numbers)}`, at)
      return found
    },
  }
}

export function object<Row extends object>(fields: RecordFields<Row>): RecordField<Row> {
  const entries = Object.entries(fields) as [keyof Row & string, RecordField<unknown>][]
  return {
    write(writer, row) {
      for (const [name, field] of entries) field.write(writer, row[name])
    },
    read(reader) {
      return Object.fromEntries(entries.map(([name, field]) => [name, field.read(reader)])) as Row
    },
  }
}
