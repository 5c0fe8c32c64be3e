/**
 * Values of the eleven basic types [MON 2] and their XDR form.
 *
 * | type | TypeScript |
 * |---|---|
 * | INT32, UINT32, DOUBLE | number |
 * | INT64, UINT64 | bigint |
 * | BOOLEAN | boolean |
 * | STRING | string, or its bytes if they are not UTF-8: string values pass unchanged |
 * | OPAQUE | Uint8Array |
 * | REC | Field[] in order |
 * | ARRAY | {element, items}: items hold bare values of the element's type |
 * | VOID | null |
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'
import { BasicType, MAX_NAME_BYTES, MAX_NESTING } from './constants.ts'

export type Value =
  | {
      readonly type: typeof BasicType.INT32 | typeof BasicType.UINT32 | typeof BasicType.DOUBLE
      readonly value: number
    }
  | { readonly type: typeof BasicType.INT64 | typeof BasicType.UINT64; readonly value: bigint }
  | { readonly type: typeof BasicType.BOOLEAN; readonly value: boolean }
  | { readonly type: typeof BasicType.STRING; readonly value: string | Uint8Array }
  | { readonly type: typeof BasicType.OPAQUE; readonly value: Uint8Array }
  | { readonly type: typeof BasicType.REC; readonly value: readonly Field[] }
  | { readonly type: typeof BasicType.ARRAY; readonly value: ArrayValue }
  | { readonly type: typeof BasicType.VOID; readonly value: null }

export type Field = { readonly name: string } & Value
export interface ArrayValue {
  readonly element: BasicType
  readonly items: readonly Value['value'][]
  /** The XDR form of the whole array, if it is there already. */
  readonly encoded?: Uint8Array
}

export const VOID: Value = { type: BasicType.VOID, value: null }

/** The fewest bytes one element of an array can have, by type; VOID has none, so those of a frame are counted together. */
const MIN_ELEMENT_BYTES: Readonly<Record<BasicType, number>> = {
  1: 4,
  2: 4,
  3: 8,
  4: 8,
  5: 8,
  6: 4,
  7: 4,
  8: 4,
  9: 4,
  10: 8,
  11: 0,
}
const MAX_VOID_ITEMS = 65_536

const utf8 = new TextEncoder()

/** A name of the wire: UTF-8, 1 to `maxBytes` bytes, none of them below 0x20. */
export function readName(reader: XdrReader, maxBytes = MAX_NAME_BYTES): string {
  const at = reader.offset
  const name = reader.string(maxBytes)
  const problem = nameProblem(name, maxBytes)
  if (problem !== undefined) throw new ProtocolError('BAD_NAME', problem, at)
  return name
}

/** The defect of a name, or undefined if there is none. */
export function nameProblem(name: string, maxBytes = MAX_NAME_BYTES): string | undefined {
  if (name.length === 0) return 'an empty name'
  // A unit of UTF-16 has at most 3 bytes.
  const isLong = name.length > maxBytes || (name.length * 3 > maxBytes && utf8.encode(name).length > maxBytes)
  if (isLong) return `a name of more than ${maxBytes} bytes`
  for (let i = 0; i < name.length; i++) {
    const unit = name.charCodeAt(i)
    if (unit < 0x20) return 'a name with a control character'
    if (unit >= 0xd800 && unit <= 0xdfff && !name.isWellFormed()) return 'a name that is not Unicode'
  }
  return undefined
}

export function readType(reader: XdrReader): BasicType {
  const at = reader.offset
  const type = reader.uint32()
  if (type < 1 || type > 11) throw new ProtocolError('BAD_TYPE', `no basic type has the number ${type}`, at)
  return type as BasicType
}

/** Reads `uint32 type, value`. */
export function readTyped(reader: XdrReader): Value {
  return readBareValue(reader, readType(reader))
}

/** As `readTyped`, with a `yield` between the items of a list. */
export function* readTypedInSteps(reader: XdrReader): Generator<void, Value, void> {
  const type = readType(reader)
  if (type !== BasicType.ARRAY) return readBareValue(reader, type)
  const element = readType(reader)
  const count = readCount(reader, MIN_ELEMENT_BYTES[element])
  const items: Value['value'][] = []
  for (let i = 0; i < count; i++) {
    items.push(readBare(reader, element, 1))
    yield
  }
  return { type, value: { element, items } }
}

/** Reads a value whose type is known. REC and ARRAY count towards `depth`. */
export function readBareValue(reader: XdrReader, type: BasicType, depth = 0): Value {
  return { type, value: readBare(reader, type, depth) } as Value
}

function readBare(reader: XdrReader, type: BasicType, depth: number): Value['value'] {
  switch (type) {
    case BasicType.INT32:
      return reader.int32()
    case BasicType.UINT32:
      return reader.uint32()
    case BasicType.INT64:
      return reader.int64()
    case BasicType.UINT64:
      return reader.uint64()
    case BasicType.DOUBLE:
      return reader.double()
    case BasicType.BOOLEAN:
      return reader.boolean()
    case BasicType.STRING:
      return reader.stringOrBytes()
    case BasicType.OPAQUE:
      return reader.opaque()
    case BasicType.VOID:
      return null
    case BasicType.REC:
      return readRec(reader, depth + 1)
    case BasicType.ARRAY:
      return readArray(reader, depth + 1)
  }
}

function readRec(reader: XdrReader, depth: number): Field[] {
  checkDepth(reader, depth)
  const count = readCount(reader, 12)
  const fields: Field[] = []
  for (let i = 0; i < count; i++) {
    const name = readName(reader)
    const type = readType(reader)
    fields.push({ name, type, value: readBare(reader, type, depth) } as Field)
  }
  return fields
}

function readArray(reader: XdrReader, depth: number): ArrayValue {
  checkDepth(reader, depth)
  const element = readType(reader)
  const count = readCount(reader, MIN_ELEMENT_BYTES[element])
  const items: Value['value'][] = []
  for (let i = 0; i < count; i++) items.push(readBare(reader, element, depth))
  return { element, items }
}

/** Reads a count. It is refused if the bytes left cannot hold as many items, so that nothing is allocated for it. */
export function readCount(reader: XdrReader, minBytes: number): number {
  const at = reader.offset
  const count = reader.uint32()
  const most = minBytes === 0 ? MAX_VOID_ITEMS - reader.emptyItems : Math.floor(reader.remaining / minBytes)
  if (count > most) throw new ProtocolError('BAD_COUNT', `a count of ${count} where at most ${most} fit`, at)
  if (minBytes === 0) reader.emptyItems += count
  return count
}

function checkDepth(reader: XdrReader, depth: number): void {
  if (depth > MAX_NESTING) throw new ProtocolError('TOO_DEEP', `nested deeper than ${MAX_NESTING}`, reader.offset)
}

/** Writes `uint32 type, value`. */
export function writeTyped(writer: XdrWriter, value: Value): void {
  writer.uint32(value.type)
  writeBareValue(writer, value)
}

export function writeBareValue(writer: XdrWriter, value: Value): void {
  switch (value.type) {
    case BasicType.INT32:
      writer.int32(value.value)
      break
    case BasicType.UINT32:
      writer.uint32(value.value)
      break
    case BasicType.INT64:
      writer.int64(value.value)
      break
    case BasicType.UINT64:
      writer.uint64(value.value)
      break
    case BasicType.DOUBLE:
      writer.double(value.value)
      break
    case BasicType.BOOLEAN:
      writer.boolean(value.value)
      break
    case BasicType.STRING:
      if (typeof value.value === 'string') writer.string(value.value)
      else writer.opaque(value.value)
      break
    case BasicType.OPAQUE:
      writer.opaque(value.value)
      break
    case BasicType.REC:
      writer.uint32(value.value.length)
      for (const field of value.value) {
        writer.string(field.name)
        writeTyped(writer, field)
      }
      break
    case BasicType.ARRAY:
      if (value.value.encoded !== undefined) {
        writer.raw(value.value.encoded)
        break
      }
      writer.uint32(value.value.element).uint32(value.value.items.length)
      for (const item of value.value.items) writeBareValue(writer, { type: value.value.element, value: item } as Value)
      break
    case BasicType.VOID:
      break
  }
}
