/**
 * Field tables (AMQP 0-10 `map`), which QMF uses too. A value keeps its meaning, not its octet: texts of every width are
 * strings, binary ones too where they are UTF-8.
 *
 * map    uint32 size | uint32 count | count x (str8 key | octet | value); size 0: empty, there is no count
 * list   uint32 size | uint32 count | count x (octet | value)
 * array  uint32 size | octet | uint32 count | values
 */
import { ProtocolError } from '../errors.ts'
import { type Cursor, decodeLatin1, decodeText, decodeUtf8 } from './cursor.ts'
import type { Writer } from './writer.ts'

/** number: up to 32 bits, float, double; bigint: 64 bits and datetime; null: void. */
export type FieldValue = number | bigint | boolean | string | Uint8Array | null | FieldTable | readonly FieldValue[]
export type FieldTable = ReadonlyMap<string, FieldValue>

/** Tables, lists and arrays in each other. */
export const MAX_DEPTH = 16
/** Items of arrays whose type has no bytes, in all that one cursor reads: their count alone says how many are made. */
export const MAX_EMPTY_ITEMS = 1024

export const Octet = {
  INT8: 0x01,
  UINT8: 0x02,
  CHAR: 0x04,
  BOOLEAN: 0x08,
  INT16: 0x11,
  UINT16: 0x12,
  INT32: 0x21,
  UINT32: 0x22,
  FLOAT: 0x23,
  CHAR_UTF32: 0x27,
  INT64: 0x31,
  UINT64: 0x32,
  DOUBLE: 0x33,
  DATETIME: 0x38,
  UUID: 0x48,
  VBIN8: 0x80,
  STR8_LATIN: 0x84,
  STR8: 0x85,
  STR8_UTF16: 0x86,
  VBIN16: 0x90,
  STR16_LATIN: 0x94,
  STR16: 0x95,
  STR16_UTF16: 0x96,
  VBIN32: 0xa0,
  MAP: 0xa8,
  LIST: 0xa9,
  ARRAY: 0xaa,
  STRUCT32: 0xab,
  VOID: 0xf0,
  BIT: 0xf1,
} as const

const EMPTY_TABLE: FieldTable = new Map()
const utf8 = new TextEncoder()

/** Reads a table; of a key that stands twice the last counts, values of unknown octets are left out. */
export function readFieldTable(cursor: Cursor, depth = 0): FieldTable {
  return sized(cursor, depth, EMPTY_TABLE, () => {
    const count = boundedCount(cursor, 2)
    const table = new Map<string, FieldValue>()
    for (let i = 0; i < count; i++) {
      const key = cursor.str8()
      const value = readFieldValue(cursor, cursor.uint8(), depth + 1)
      if (value !== undefined) table.set(key, value)
    }
    return table
  })
}

/** Reads a list; values of unknown octets are null, so that the others keep their places. */
export function readFieldList(cursor: Cursor, depth = 0): readonly FieldValue[] {
  return sized(cursor, depth, [], () => {
    const count = boundedCount(cursor, 1)
    const list: FieldValue[] = []
    for (let i = 0; i < count; i++) list.push(readFieldValue(cursor, cursor.uint8(), depth + 1) ?? null)
    return list
  })
}

/** An array (capabilities, mechanisms, locales): one octet for all its values. */
export function readFieldArray(cursor: Cursor, depth = 0): readonly FieldValue[] {
  return sized(cursor, depth, [], () => {
    const octet = cursor.uint8()
    const width = leastBytes(octet)
    const at = cursor.offset
    const count = boundedCount(cursor, width)
    if (width === 0) cursor.emptyItems += count
    if (cursor.emptyItems > MAX_EMPTY_ITEMS) {
      throw new ProtocolError('BAD_COUNT', `more than ${MAX_EMPTY_ITEMS} items without bytes`, at)
    }
    const list: FieldValue[] = []
    for (let i = 0; i < count; i++) list.push(readFieldValue(cursor, octet, depth + 1) ?? null)
    return list
  })
}

/** The value behind `octet`. Undefined: the octet is unknown, its bytes were skipped. */
export function readFieldValue(cursor: Cursor, octet: number, depth = 0): FieldValue | undefined {
  switch (octet) {
    case Octet.INT8:
      return cursor.int8()
    case Octet.UINT8:
      return cursor.uint8()
    case Octet.CHAR:
      return decodeLatin1(cursor.view(1))
    case Octet.BOOLEAN:
      return cursor.uint8() !== 0
    case Octet.INT16:
      return cursor.int16()
    case Octet.UINT16:
      return cursor.uint16()
    case Octet.INT32:
      return cursor.int32()
    case Octet.UINT32:
      return cursor.uint32()
    case Octet.FLOAT:
      return cursor.float()
    case Octet.CHAR_UTF32:
      return codePoint(cursor.uint32())
    case Octet.INT64:
      return cursor.int64()
    case Octet.UINT64:
    case Octet.DATETIME:
      return cursor.uint64()
    case Octet.DOUBLE:
      return cursor.double()
    case Octet.UUID:
      return readUuid(cursor)
    case Octet.MAP:
      return readFieldTable(cursor, depth)
    case Octet.LIST:
      return readFieldList(cursor, depth)
    case Octet.ARRAY:
      return readFieldArray(cursor, depth)
    case Octet.STRUCT32:
      return cursor.vbin32()
    case Octet.VOID:
      return null
    case Octet.BIT:
      return true
    default:
      return readText(cursor, octet)
  }
}

/** `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
export function readUuid(cursor: Cursor): string {
  const digits = cursor.hex(16)
  const at = [8, 12, 16, 20]
  return [0, ...at].map((start, i) => digits.slice(start, at[i])).join('-')
}

export function writeFieldTable(writer: Writer, table: FieldTable): void {
  writer.sized32(() => {
    writer.uint32(table.size)
    for (const [key, value] of table) {
      writer.str8(key)
      writeFieldValue(writer, value)
    }
  })
}

export function writeFieldList(writer: Writer, list: readonly FieldValue[]): void {
  writer.sized32(() => {
    writer.uint32(list.length)
    for (const value of list) writeFieldValue(writer, value)
  })
}

/**
 * The octet and the value: integers as int32 where they fit, else uint32, bigints as int64 where they fit, else uint64,
 * text as str16 (what a broker takes for `_class`), above 65,535 bytes as vbin32, other numbers as double.
 */
export function writeFieldValue(writer: Writer, value: FieldValue): void {
  if (value === null) writer.uint8(Octet.VOID)
  else if (typeof value === 'boolean') writer.uint8(Octet.BOOLEAN).uint8(value ? 1 : 0)
  else if (typeof value === 'number') writeNumber(writer, value)
  else if (typeof value === 'bigint') writeBigint(writer, value)
  else if (typeof value === 'string') writeText(writer, Octet.STR16, utf8.encode(value))
  else if (value instanceof Uint8Array) writeText(writer, Octet.VBIN16, value)
  else if (value instanceof Map) writeFieldTable(writer.uint8(Octet.MAP), value)
  else writeFieldList(writer.uint8(Octet.LIST), value as readonly FieldValue[])
}

function writeNumber(writer: Writer, value: number): void {
  if (value === (value | 0) && !Object.is(value, -0)) writer.uint8(Octet.INT32).uint32(value)
  else if (value === value >>> 0 && !Object.is(value, -0)) writer.uint8(Octet.UINT32).uint32(value)
  else writer.uint8(Octet.DOUBLE).double(value)
}

function writeBigint(writer: Writer, value: bigint): void {
  if (value === BigInt.asIntN(64, value)) writer.uint8(Octet.INT64).uint64(value)
  else if (value === BigInt.asUintN(64, value)) writer.uint8(Octet.UINT64).uint64(value)
  else throw new ProtocolError('BAD_NUMBER', `${value} does not fit into 64 bits`)
}

function writeText(writer: Writer, octet: number, bytes: Uint8Array): void {
  if (bytes.length > 0xffff) writer.uint8(Octet.VBIN32).vbin32(bytes)
  else writer.uint8(octet).vbin16(bytes)
}

/** Sizes are checked before anything inside is looked at; 0 is `empty`. */
function sized<T>(cursor: Cursor, depth: number, empty: T, read: () => T): T {
  if (depth >= MAX_DEPTH) {
    throw new ProtocolError('TOO_DEEP', `tables and lists more than ${MAX_DEPTH} deep`, cursor.offset)
  }
  const size = cursor.uint32()
  return size === 0 ? empty : cursor.within(size, read)
}

/** A count of items that take at least `leastBytes` each. */
function boundedCount(cursor: Cursor, leastBytes: number): number {
  const at = cursor.offset
  const count = cursor.uint32()
  if (count * leastBytes > cursor.remaining) {
    throw new ProtocolError('BAD_COUNT', `${count} items where ${cursor.remaining} bytes are left`, at)
  }
  return count
}

/** What the high nibble says of any octet, known or not: the bytes of the value, or of its length field. */
function leastBytes(octet: number): number {
  const nibble = octet >> 4
  if (nibble < 8) return 1 << nibble
  if (isVariable(nibble)) return 1 << (nibble - 8)
  if (nibble === 0xc) return 5
  if (nibble === 0xd) return 9
  return 0
}

function isVariable(nibble: number): boolean {
  return nibble >= 8 && nibble <= 0xa
}

/** Texts and binary values, and whatever else has a length in front or a width in its octet: that is skipped. */
function readText(cursor: Cursor, octet: number): FieldValue | undefined {
  const nibble = octet >> 4
  if (nibble === 0xb || nibble === 0xe) {
    throw new ProtocolError('BAD_TYPE', `a value of type 0x${octet.toString(16)}, which has no length`, cursor.offset)
  }
  const width = leastBytes(octet)
  if (!isVariable(nibble)) {
    cursor.view(width)
    return undefined
  }
  const bytes = cursor.view(width === 1 ? cursor.uint8() : width === 2 ? cursor.uint16() : cursor.uint32())
  switch (octet) {
    case Octet.VBIN8:
    case Octet.VBIN16:
    case Octet.VBIN32:
      return decodeUtf8(bytes) ?? new Uint8Array(bytes)
    case Octet.STR8:
    case Octet.STR16:
      return decodeText(bytes)
    case Octet.STR8_LATIN:
    case Octet.STR16_LATIN:
      return decodeLatin1(bytes)
    case Octet.STR8_UTF16:
    case Octet.STR16_UTF16:
      return decodeUtf16(bytes) ?? new Uint8Array(bytes)
    default:
      return undefined
  }
}

/** Big-endian; undefined where half a character is left over. */
function decodeUtf16(bytes: Uint8Array): string | undefined {
  if (bytes.length % 2 !== 0) return undefined
  let text = ''
  for (let i = 0; i < bytes.length; i += 2) text += String.fromCharCode((bytes[i]! << 8) | bytes[i + 1]!)
  return text
}

function codePoint(value: number): string {
  return String.fromCodePoint(value <= 0x10ffff ? value : 0xfffd)
}
