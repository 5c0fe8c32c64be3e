/**
 * QMF's types and values as basic types [MON 2]. Times stay nanoseconds: the unit says so. Maps and lists become JSON text,
 * since a REC could hold neither their nesting nor their names.
 */

import type { FieldTable, FieldValue } from '../../../protocol/amqp/field-table.ts'
import { toBase64 } from '../../../protocol/bytes/base64.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import { QmfType, type QmfValue, type SchemaItem } from '../../../protocol/qmf/types.ts'

/** UTF-16 units of a text, or of all texts of an event: with three bytes each they still fit a frame. */
export const MAX_TEXT = 262_144

type Plain = Exclude<BasicType, typeof BasicType.OPAQUE | typeof BasicType.REC | typeof BasicType.ARRAY>

const BASIC: Readonly<Record<QmfType, Plain>> = {
  [QmfType.UINT8]: BasicType.UINT32,
  [QmfType.UINT16]: BasicType.UINT32,
  [QmfType.UINT32]: BasicType.UINT32,
  [QmfType.UINT64]: BasicType.UINT64,
  [QmfType.SHORT_STRING]: BasicType.STRING,
  [QmfType.LONG_STRING]: BasicType.STRING,
  [QmfType.ABSTIME]: BasicType.INT64,
  [QmfType.DELTATIME]: BasicType.UINT64,
  [QmfType.REFERENCE]: BasicType.STRING,
  [QmfType.BOOL]: BasicType.BOOLEAN,
  [QmfType.FLOAT]: BasicType.DOUBLE,
  [QmfType.DOUBLE]: BasicType.DOUBLE,
  [QmfType.UUID]: BasicType.STRING,
  [QmfType.MAP]: BasicType.STRING,
  [QmfType.INT8]: BasicType.INT32,
  [QmfType.INT16]: BasicType.INT32,
  [QmfType.INT32]: BasicType.INT32,
  [QmfType.INT64]: BasicType.INT64,
  // Never read; in the catalogue it stands all the same.
  [QmfType.OBJECT]: BasicType.STRING,
  [QmfType.LIST]: BasicType.STRING,
  [QmfType.ARRAY]: BasicType.STRING,
}

export function basicTypeOf(type: QmfType): Plain {
  return BASIC[type]
}

/** As the schema says; times are nanoseconds. */
export function unitOf({ type, unit = '' }: Pick<SchemaItem, 'type' | 'unit'>): string {
  return type === QmfType.ABSTIME || type === QmfType.DELTATIME ? 'ns' : unit
}

/** VOID for what is absent, or would not fit a frame. */
export function toValue(type: QmfType, value: QmfValue | undefined): Value {
  if (value === undefined) return VOID
  const basic = BASIC[type]
  if (basic !== BasicType.STRING) return { type: basic, value } as Value
  const text = typeof value === 'string' ? value : JSON.stringify(plain(value))
  return text.length > MAX_TEXT ? VOID : { type: BasicType.STRING, value: text }
}

/** Whether two values of one type are the same. */
export function isSame(one: QmfValue | undefined, other: QmfValue | undefined): boolean {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object') return false
  return JSON.stringify(plain(one)) === JSON.stringify(plain(other))
}

/** As JSON of the protocol shows values [MON 13]: large integers and numbers that JSON lacks are texts, bytes are base64. */
function plain(value: QmfValue | FieldValue): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value.toString()
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (value instanceof Uint8Array) return toBase64(value)
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Map) return Object.fromEntries([...(value as FieldTable)].map(([key, one]) => [key, plain(one)]))
  return value
}
