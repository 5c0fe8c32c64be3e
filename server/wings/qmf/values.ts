/**
 * QMF's types, values and events as basic types [MON 2]. Times stay nanoseconds, as their unit says. Maps and lists
 * become JSON text, since a REC could hold neither their nesting nor their names.
 */
import type { FieldTable, FieldValue } from '../../../protocol/amqp/field-table.ts'
import { toBase64 } from '../../../protocol/bytes/base64.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem, type Value, VOID } from '../../../protocol/monitor/value.ts'
import { type EventSchema, QmfType, type QmfValue, type SchemaItem, severities } from '../../../protocol/qmf/types.ts'
import type { QmfEvent } from './console-events.ts'

/**
 * The limit for a text, or for all texts of an event, in UTF-16 units: with three bytes each they still fit a frame.
 */
export const MAX_TEXT = 262_144

const SEVERITY = 'severity'

type ScalarType = Exclude<BasicType, typeof BasicType.OPAQUE | typeof BasicType.REC | typeof BasicType.ARRAY>

/** All other types become STRING. */
const basicTypes: Readonly<Partial<Record<QmfType, ScalarType>>> = {
  [QmfType.UINT8]: BasicType.UINT32,
  [QmfType.UINT16]: BasicType.UINT32,
  [QmfType.UINT32]: BasicType.UINT32,
  [QmfType.UINT64]: BasicType.UINT64,
  [QmfType.ABSTIME]: BasicType.INT64,
  [QmfType.DELTATIME]: BasicType.UINT64,
  [QmfType.BOOL]: BasicType.BOOLEAN,
  [QmfType.FLOAT]: BasicType.DOUBLE,
  [QmfType.DOUBLE]: BasicType.DOUBLE,
  [QmfType.INT8]: BasicType.INT32,
  [QmfType.INT16]: BasicType.INT32,
  [QmfType.INT32]: BasicType.INT32,
  [QmfType.INT64]: BasicType.INT64,
}

export function basicTypeOf(type: QmfType): ScalarType {
  return basicTypes[type] ?? BasicType.STRING
}

/** The unit of the schema, but `ns` for times. */
export function unitOf({ type, unit = '' }: Pick<SchemaItem, 'type' | 'unit'>): string {
  return type === QmfType.ABSTIME || type === QmfType.DELTATIME ? 'ns' : unit
}

/** Returns VOID for a value that is absent or does not fit a frame. */
export function toValue(type: QmfType, value: QmfValue | undefined): Value {
  if (value === undefined) return VOID
  const basic = basicTypeOf(type)
  if (basic !== BasicType.STRING) return { type: basic, value } as Value
  const text = typeof value === 'string' ? value : JSON.stringify(toJson(value))
  return text.length > MAX_TEXT ? VOID : { type: BasicType.STRING, value: text }
}

/**
 * Converts an event to its arguments, in the order of its schema, and its severity; undefined if it does not fit a
 * frame.
 */
export function eventValue(schema: EventSchema, { severity, arguments: values }: QmfEvent): Value | undefined {
  const fields: Field[] = []
  let length = 0
  for (const [at, { name, type }] of schema.arguments.entries()) {
    // An argument named `severity` would be mistaken for the severity of the event.
    if (name === SEVERITY || nameProblem(name) !== undefined) continue
    const value = toValue(type, values[at])
    length += name.length + (typeof value.value === 'string' ? value.value.length : 0)
    if (length > MAX_TEXT) return undefined
    fields.push({ name, ...value })
  }
  fields.push({ name: SEVERITY, type: BasicType.STRING, value: severities[severity] ?? String(severity) })
  return { type: BasicType.REC, value: fields }
}

/** About as many bytes as values take in memory. */
export function heldBytes(values: readonly (QmfValue | undefined)[]): number {
  let bytes = 32
  for (const value of values) bytes += 8 + (typeof value === 'number' ? 16 : bytesOf(value))
  return bytes
}

function bytesOf(value: QmfValue | FieldValue | undefined): number {
  if (typeof value === 'string') return 24 + 2 * value.length
  if (typeof value !== 'object' || value === null) return 24
  if (value instanceof Uint8Array) return 100 + value.length
  if (Array.isArray(value)) return heldBytes(value)
  let bytes = 200
  for (const [key, one] of value as FieldTable) bytes += 48 + 2 * key.length + bytesOf(one)
  return bytes
}

/** Whether two values of one type are the same. */
export function isSame(one: QmfValue | undefined, other: QmfValue | undefined): boolean {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object') return false
  return JSON.stringify(toJson(one)) === JSON.stringify(toJson(other))
}

/** As in the protocol's JSON [MON 13]: large integers and numbers that JSON lacks become texts, bytes become base64. */
function toJson(value: QmfValue | FieldValue): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value.toString()
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (value instanceof Uint8Array) return toBase64(value)
  if (Array.isArray(value)) return value.map(toJson)
  if (value instanceof Map)
    return Object.fromEntries([...(value as FieldTable)].map(([key, one]) => [key, toJson(one)]))
  return value
}
