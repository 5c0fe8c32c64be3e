/**
 * What controls, commands and structs consist of. Packing flags come first: field k is there if bit k is set, where bits 0
 * to 7 stand in the first byte and 8 to 15 in the second. A `bit` has no bytes of its own: that it is there is its value.
 */
import type { Cursor } from './cursor.ts'
import { type FieldTable, readFieldArray, readFieldTable, readUuid, writeFieldTable } from './field-table.ts'
import type { SequenceRange } from './sequence.ts'
import type { Writer } from './writer.ts'

export interface Field<T> {
  read(cursor: Cursor): T
  write(writer: Writer, value: T): void
}

/** In their order; names are ours, the order is the specification's. At most 16. */
export type Layout = Readonly<Record<string, Field<unknown>>>

/** Undefined: the field is not there. */
export type Fields<L extends Layout> = {
  readonly [K in keyof L]?: (L[K] extends Field<infer T> ? T : never) | undefined
}

/** Where answers go. */
export interface Address {
  readonly exchange: string
  readonly routingKey: string
}

const STR16 = 0x95

export const uint8: Field<number> = {
  read: (cursor) => cursor.uint8(),
  write: (writer, value) => writer.uint8(value),
}
export const uint16: Field<number> = {
  read: (cursor) => cursor.uint16(),
  write: (writer, value) => writer.uint16(value),
}
export const uint32: Field<number> = {
  read: (cursor) => cursor.uint32(),
  write: (writer, value) => writer.uint32(value),
}
export const uint64: Field<bigint> = {
  read: (cursor) => cursor.uint64(),
  write: (writer, value) => writer.uint64(value),
}
export const str8: Field<string> = {
  read: (cursor) => cursor.str8(),
  write: (writer, value) => writer.str8(value),
}
/** Names and ids that are vbin16 in the specification too: the bytes are the same. */
export const str16: Field<string> = {
  read: (cursor) => cursor.str16(),
  write: (writer, value) => writer.str16(value),
}
/** A struct32 has the same shape: its size, and bytes that nobody here looks into. */
export const vbin32: Field<Uint8Array> = {
  read: (cursor) => cursor.vbin32(),
  write: (writer, value) => writer.vbin32(value),
}
export const uuid: Field<string> = {
  read: readUuid,
  write: (writer, value) => writer.hex(value.replaceAll('-', '')),
}
export const map: Field<FieldTable> = {
  read: (cursor) => readFieldTable(cursor),
  write: writeFieldTable,
}
/** An array of texts; items of any other type are left out. */
export const texts: Field<readonly string[]> = {
  read: (cursor) => readFieldArray(cursor).filter((item) => typeof item === 'string'),
  write: (writer, values) =>
    writer.sized32(() => {
      writer.uint8(STR16).uint32(values.length)
      for (const value of values) writer.str16(value)
    }),
}
export const bit: Field<boolean> = {
  read: () => true,
  write: () => {},
}
/** uint16 bytes | (first, last)*: both are in it. */
export const sequences: Field<readonly SequenceRange[]> = {
  read: (cursor) =>
    cursor.within(cursor.uint16(), () => {
      const ranges: SequenceRange[] = []
      while (cursor.remaining > 0) ranges.push({ first: cursor.uint32(), last: cursor.uint32() })
      return ranges
    }),
  write: (writer, ranges) =>
    writer.sized16(() => {
      for (const { first, last } of ranges) writer.uint32(first).uint32(last)
    }),
}

const addressLayout = { exchange: str8, routingKey: str8 }
/** A struct16: uint16 size | packing flags | exchange | routing key. */
export const address: Field<Address> = {
  read: (cursor) => {
    const { exchange = '', routingKey = '' } = cursor.within(cursor.uint16(), () => readFields(cursor, addressLayout))
    return { exchange, routingKey }
  },
  write: (writer, { exchange, routingKey }) =>
    writer.sized16(() => writeFields(writer, addressLayout, { exchange, routingKey })),
}

/** Flags of fields behind those of the layout are ignored, and so are their bytes: the caller has to skip them. */
export function readFields<L extends Layout>(cursor: Cursor, layout: L): Fields<L> {
  const present = cursor.uint8() | (cursor.uint8() << 8)
  const values: Record<string, unknown> = {}
  let flag = 1
  for (const [name, field] of Object.entries(layout)) {
    if ((present & flag) !== 0) values[name] = field.read(cursor)
    flag <<= 1
  }
  return values as Fields<L>
}

export function writeFields<L extends Layout>(writer: Writer, layout: L, values: Fields<L>): void {
  const given: Readonly<Record<string, unknown>> = values
  const all = Object.entries(layout)
  const present = all.map(([name]) => given[name] !== undefined && given[name] !== false)
  const flags = present.reduce((sum, isPresent, k) => sum | (isPresent ? 1 << k : 0), 0)
  writer.uint8(flags & 0xff).uint8(flags >> 8)
  for (const [k, [name, field]] of all.entries()) {
    if (present[k]) field.write(writer, given[name])
  }
}
