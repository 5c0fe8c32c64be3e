/**
 * One value of a property, a statistic or an argument. The bytes do not say their type: the schema does, so a value of a
 * type that cannot be read (OBJECT, ARRAY) hides where the next one begins.
 */

import type { Cursor } from '../amqp/cursor.ts'
import {
  type FieldTable,
  type FieldValue,
  readFieldList,
  readFieldTable,
  readUuid,
  writeFieldList,
  writeFieldTable,
} from '../amqp/field-table.ts'
import type { Writer } from '../amqp/writer.ts'
import { ProtocolError } from '../errors.ts'
import { readObjectId, writeObjectId } from './object-id.ts'
import { QmfType, type QmfValue } from './types.ts'

const types: ReadonlySet<number> = new Set(Object.values(QmfType))

export function isQmfType(code: number): code is QmfType {
  return types.has(code)
}

/** Throws ProtocolError: BAD_TYPE for OBJECT and ARRAY, others where the bytes are wrong. */
export function readValue(cursor: Cursor, type: QmfType): QmfValue {
  switch (type) {
    case QmfType.UINT8:
      return cursor.uint8()
    case QmfType.UINT16:
      return cursor.uint16()
    case QmfType.UINT32:
      return cursor.uint32()
    case QmfType.UINT64:
    case QmfType.DELTATIME:
      return cursor.uint64()
    case QmfType.INT8:
      return cursor.int8()
    case QmfType.INT16:
      return cursor.int16()
    case QmfType.INT32:
      return cursor.int32()
    case QmfType.INT64:
    case QmfType.ABSTIME:
      return cursor.int64()
    case QmfType.SHORT_STRING:
      return cursor.str8()
    case QmfType.LONG_STRING:
      return cursor.str16()
    case QmfType.REFERENCE:
      return readObjectId(cursor)
    case QmfType.BOOL:
      return cursor.uint8() !== 0
    case QmfType.FLOAT:
      return cursor.float()
    case QmfType.DOUBLE:
      return cursor.double()
    case QmfType.UUID:
      return readUuid(cursor)
    case QmfType.MAP:
      return readFieldTable(cursor)
    case QmfType.LIST:
      return readFieldList(cursor)
    case QmfType.OBJECT:
    case QmfType.ARRAY:
      throw new ProtocolError('BAD_TYPE', `a value of type ${type}, which is not read`, cursor.offset)
  }
}

/** Throws ProtocolError where the value is not one of the type: BAD_TYPE, BAD_NUMBER (out of range), TOO_LONG, BAD_NAME. */
export function writeValue(writer: Writer, type: QmfType, value: QmfValue): void {
  switch (type) {
    case QmfType.UINT8:
      writer.uint8(integer(value, 0, 0xff))
      break
    case QmfType.UINT16:
      writer.uint16(integer(value, 0, 0xffff))
      break
    case QmfType.UINT32:
      writer.uint32(integer(value, 0, 0xffff_ffff))
      break
    case QmfType.UINT64:
    case QmfType.DELTATIME:
      writer.uint64(wide(value, BigInt.asUintN))
      break
    case QmfType.INT8:
      writer.uint8(integer(value, -0x80, 0x7f))
      break
    case QmfType.INT16:
      writer.uint16(integer(value, -0x8000, 0x7fff))
      break
    case QmfType.INT32:
      writer.uint32(integer(value, -0x8000_0000, 0x7fff_ffff))
      break
    case QmfType.INT64:
    case QmfType.ABSTIME:
      writer.uint64(wide(value, BigInt.asIntN))
      break
    case QmfType.SHORT_STRING:
      writer.str8(text(value))
      break
    case QmfType.LONG_STRING:
      writer.str16(text(value))
      break
    case QmfType.REFERENCE:
      writeObjectId(writer, text(value))
      break
    case QmfType.BOOL:
      if (typeof value !== 'boolean') throw wrong(value, 'a boolean')
      writer.uint8(value ? 1 : 0)
      break
    case QmfType.FLOAT:
      writer.float(number(value))
      break
    case QmfType.DOUBLE:
      writer.double(number(value))
      break
    case QmfType.UUID:
      writeUuid(writer, text(value))
      break
    case QmfType.MAP:
      if (!isTable(value)) throw wrong(value, 'a map')
      writeFieldTable(writer, value)
      break
    case QmfType.LIST:
      if (!isList(value)) throw wrong(value, 'a list')
      writeFieldList(writer, value)
      break
    case QmfType.OBJECT:
    case QmfType.ARRAY:
      throw new ProtocolError('BAD_TYPE', `a value of type ${type} cannot be written`)
  }
}

export function writeUuid(writer: Writer, uuid: string): void {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uuid)) {
    throw new ProtocolError('BAD_NAME', `not a uuid: ${uuid}`)
  }
  writer.hex(uuid.replaceAll('-', ''))
}

function integer(value: QmfValue, min: number, max: number): number {
  const given = number(value)
  if (Number.isInteger(given) && given >= min && given <= max) return given
  throw new ProtocolError('BAD_NUMBER', `${given} where a whole number from ${min} to ${max} is expected`)
}

function wide(value: QmfValue, cut: (bits: number, value: bigint) => bigint): bigint {
  if (typeof value !== 'bigint') throw wrong(value, 'a bigint')
  if (cut(64, value) === value) return value
  throw new ProtocolError('BAD_NUMBER', `${value} does not fit into 64 bits`)
}

function number(value: QmfValue): number {
  if (typeof value === 'number') return value
  throw wrong(value, 'a number')
}

function text(value: QmfValue): string {
  if (typeof value === 'string') return value
  throw wrong(value, 'a text')
}

function isTable(value: QmfValue): value is FieldTable {
  return value instanceof Map
}

function isList(value: QmfValue): value is readonly FieldValue[] {
  return Array.isArray(value)
}

function wrong(value: QmfValue, expected: string): ProtocolError {
  return new ProtocolError(
    'BAD_TYPE',
    `${isList(value) ? 'a list' : `a ${typeof value}`} where ${expected} is expected`,
  )
}
