/**
 * Field tables (AMQP 0-10 `map`), which QMF uses too. A value keeps its meaning but not its type code: text of every
 * width becomes a string, and so do binary values that are UTF-8.
 *
 * map    uint32 size | uint32 count | count x (str8 key | type code | value); an empty one may be a size of 0 alone
 * list   uint32 size | uint32 count | count x (type code | value)
 * array  uint32 size | type code | uint32 count | values
 */
import { ProtocolError } from '../errors.ts'
import { type AmqpReader, type AmqpWriter, decodeLatin1, decodeUtf8, encodeUtf8 } from './bytes.ts'

/** number: up to 32 bits, float, double; bigint: 64 bits and datetime; null: void. */
export type FieldValue = number | bigint | boolean | string | Uint8Array | null | FieldTable | readonly FieldValue[]
export type FieldTable = ReadonlyMap<string, FieldValue>

/** The limit for tables, lists and arrays inside each other. */
export const MAX_DEPTH = 16
/**
 * The limit for tables, lists and arrays inside one that is inside nothing: an empty one is five bytes on the wire, and
 * forty times as many in memory.
 */
export const MAX_NESTED = 4096
/** The limit for items of arrays whose type has no bytes, per reader: their count alone decides how many are made. */
export const MAX_EMPTY_ITEMS = 1024

/** The codes of the types that are written. */
export const TypeCode = {
  UINT8: 0x02,
  BOOLEAN: 0x08,
  INT32: 0x21,
  UINT32: 0x22,
  INT64: 0x31,
  UINT64: 0x32,
  DOUBLE: 0x33,
  UUID: 0x48,
  VBIN16: 0x90,
  STR16: 0x95,
  VBIN32: 0xa0,
  MAP: 0xa8,
  LIST: 0xa9,
  VOID: 0xf0,
} as const

/** Readers by type code. */
const readers = new Map<number, (reader: AmqpReader, depth: number) => FieldValue>([
  [0x01, (reader) => reader.int8()],
  [TypeCode.UINT8, (reader) => reader.uint8()],
  [0x04, (reader) => decodeLatin1(reader.view(1))], // char
  [TypeCode.BOOLEAN, (reader) => reader.uint8() !== 0],
  [0x11, (reader) => reader.int16()],
  [0x12, (reader) => reader.uint16()],
  [TypeCode.INT32, (reader) => reader.int32()],
  [TypeCode.UINT32, (reader) => reader.uint32()],
  [0x23, (reader) => reader.float()],
  [0x27, (reader) => codePoint(reader.uint32())], // char-utf32
  [TypeCode.INT64, (reader) => reader.int64()],
  [TypeCode.UINT64, (reader) => reader.uint64()],
  [TypeCode.DOUBLE, (reader) => reader.double()],
  [0x38, (reader) => reader.uint64()], // datetime
  [TypeCode.UUID, (reader) => readUuid(reader)],
  [0x80, (reader) => decodeBinary(reader.view(reader.uint8()))], // vbin8
  [0x84, (reader) => decodeLatin1(reader.view(reader.uint8()))], // str8-latin
  [0x85, (reader) => reader.str8()],
  [0x86, (reader) => decodeUtf16(reader.view(reader.uint8()))], // str8-utf16
  [TypeCode.VBIN16, (reader) => decodeBinary(reader.view(reader.uint16()))],
  [0x94, (reader) => decodeLatin1(reader.view(reader.uint16()))], // str16-latin
  [TypeCode.STR16, (reader) => reader.str16()],
  [0x96, (reader) => decodeUtf16(reader.view(reader.uint16()))], // str16-utf16
  [TypeCode.VBIN32, (reader) => decodeBinary(reader.view(reader.uint32()))],
  [TypeCode.MAP, (reader, depth) => readFieldTable(reader, depth)],
  [TypeCode.LIST, (reader, depth) => readFieldList(reader, depth)],
  [0xaa, (reader, depth) => readFieldArray(reader, depth)],
  [0xab, (reader) => reader.vbin32()], // struct32
  [TypeCode.VOID, () => null],
  [0xf1, () => true], // bit
])

/** Reads a table. The last value of a repeated key counts; values of unknown types are left out. */
export function readFieldTable(reader: AmqpReader, depth = 0): FieldTable {
  const table = new Map<string, FieldValue>()
  sized(reader, depth, () => {
    const count = boundedCount(reader, 2)
    for (let i = 0; i < count; i++) {
      const key = reader.str8()
      const value = readFieldValue(reader, reader.uint8(), depth + 1)
      if (value !== undefined) table.set(key, value)
    }
  })
  return table
}

/** Reads a list. Values of unknown types become null, so that the others keep their places. */
export function readFieldList(reader: AmqpReader, depth = 0): readonly FieldValue[] {
  const list: FieldValue[] = []
  sized(reader, depth, () => {
    const count = boundedCount(reader, 1)
    for (let i = 0; i < count; i++) list.push(readFieldValue(reader, reader.uint8(), depth + 1) ?? null)
  })
  return list
}

/** Reads an array (capabilities, mechanisms, locales): one type code for all its values. */
export function readFieldArray(reader: AmqpReader, depth = 0): readonly FieldValue[] {
  const list: FieldValue[] = []
  sized(reader, depth, () => {
    const code = reader.uint8()
    const width = minBytes(code)
    const at = reader.offset
    const count = boundedCount(reader, width)
    if (width === 0) reader.emptyItems += count
    if (reader.emptyItems > MAX_EMPTY_ITEMS) {
      throw new ProtocolError('BAD_COUNT', `more than ${MAX_EMPTY_ITEMS} items without bytes`, at)
    }
    for (let i = 0; i < count; i++) list.push(readFieldValue(reader, code, depth + 1) ?? null)
  })
  return list
}

/** Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
export function readUuid(reader: AmqpReader): string {
  return [4, 2, 2, 2, 6].map((bytes) => reader.hex(bytes)).join('-')
}

export function writeFieldTable(writer: AmqpWriter, table: FieldTable): void {
  writer.sized32(() => {
    writer.uint32(table.size)
    for (const [key, value] of table) {
      writer.str8(key)
      writeFieldValue(writer, value)
    }
  })
}

export function writeFieldList(writer: AmqpWriter, list: readonly FieldValue[]): void {
  writer.sized32(() => {
    writer.uint32(list.length)
    for (const value of list) writeFieldValue(writer, value)
  })
}

/**
 * Writes the type code and the value: integers as int32 if they fit, otherwise uint32, bigints as int64 if they fit,
 * otherwise uint64, text as str16 (which a broker accepts for `_class`), above 65,535 bytes as vbin32, other numbers as
 * double.
 */
export function writeFieldValue(writer: AmqpWriter, value: FieldValue): void {
  if (value === null) writer.uint8(TypeCode.VOID)
  else if (typeof value === 'boolean') writer.uint8(TypeCode.BOOLEAN).uint8(value ? 1 : 0)
  else if (typeof value === 'number') writeNumber(writer, value)
  else if (typeof value === 'bigint') writeBigint(writer, value)
  else if (typeof value === 'string') writeBinary(writer, TypeCode.STR16, encodeUtf8(value))
  else if (value instanceof Uint8Array) writeBinary(writer, TypeCode.VBIN16, value)
  else if (value instanceof Map) writeFieldTable(writer.uint8(TypeCode.MAP), value)
  else writeFieldList(writer.uint8(TypeCode.LIST), value as readonly FieldValue[])
}

function writeNumber(writer: AmqpWriter, value: number): void {
  if (value === (value | 0) && !Object.is(value, -0)) writer.uint8(TypeCode.INT32).uint32(value)
  else if (value === value >>> 0 && !Object.is(value, -0)) writer.uint8(TypeCode.UINT32).uint32(value)
  else writer.uint8(TypeCode.DOUBLE).double(value)
}

function writeBigint(writer: AmqpWriter, value: bigint): void {
  if (value === BigInt.asIntN(64, value)) writer.uint8(TypeCode.INT64).uint64(value)
  else if (value === BigInt.asUintN(64, value)) writer.uint8(TypeCode.UINT64).uint64(value)
  else throw new ProtocolError('BAD_NUMBER', `${value} does not fit into 64 bits`)
}

function writeBinary(writer: AmqpWriter, code: number, bytes: Uint8Array): void {
  if (bytes.length > 0xffff) writer.uint8(TypeCode.VBIN32).vbin32(bytes)
  else writer.uint8(code).vbin16(bytes)
}

/** Checks the size before anything inside is read. A size of 0 means empty, without a count. */
function sized(reader: AmqpReader, depth: number, read: () => void): void {
  if (depth >= MAX_DEPTH) {
    throw new ProtocolError('TOO_DEEP', `tables and lists more than ${MAX_DEPTH} deep`, reader.offset)
  }
  reader.nestedItems = depth === 0 ? 0 : reader.nestedItems + 1
  if (reader.nestedItems > MAX_NESTED) {
    throw new ProtocolError('BAD_COUNT', `more than ${MAX_NESTED} tables and lists in one`, reader.offset)
  }
  const size = reader.uint32()
  if (size > 0) reader.within(size, read)
}

/** Reads a count of items that take at least `itemBytes` each. */
function boundedCount(reader: AmqpReader, itemBytes: number): number {
  const at = reader.offset
  const count = reader.uint32()
  if (count * itemBytes > reader.remaining) {
    throw new ProtocolError('BAD_COUNT', `${count} items where ${reader.remaining} bytes are left`, at)
  }
  return count
}

/** Returns undefined if the type is unknown; its bytes are skipped. */
function readFieldValue(reader: AmqpReader, code: number, depth: number): FieldValue | undefined {
  const read = readers.get(code)
  if (read !== undefined) return read(reader, depth)
  const nibble = code >> 4
  if (nibble === 0xb || nibble === 0xe) {
    throw new ProtocolError('BAD_TYPE', `a value of type 0x${code.toString(16)}, which has no length`, reader.offset)
  }
  const width = minBytes(code)
  const hasLength = nibble >= 8 && nibble <= 0xa
  if (hasLength) reader.view(width === 1 ? reader.uint8() : width === 2 ? reader.uint16() : reader.uint32())
  else reader.view(width)
  return undefined
}

/** The bytes of a value, or of its length field, which the high nibble of every type code gives, known or not. */
function minBytes(code: number): number {
  const nibble = code >> 4
  if (nibble < 8) return 1 << nibble
  if (nibble <= 0xa) return 1 << (nibble - 8)
  if (nibble === 0xc) return 5
  return nibble === 0xd ? 9 : 0
}

function decodeBinary(bytes: Uint8Array): FieldValue {
  return decodeUtf8(bytes) ?? new Uint8Array(bytes)
}

/** Reads big-endian UTF-16; a value that ends with half a character stays bytes. */
function decodeUtf16(bytes: Uint8Array): FieldValue {
  if (bytes.length % 2 !== 0) return new Uint8Array(bytes)
  let text = ''
  for (let i = 0; i < bytes.length; i += 2) text += String.fromCharCode((bytes[i]! << 8) | bytes[i + 1]!)
  return text
}

function codePoint(value: number): string {
  return String.fromCodePoint(value <= 0x10ffff ? value : 0xfffd)
}
