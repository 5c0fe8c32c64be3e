/**
 * Values by schema. Their bytes carry a type of their own, which senders choose by the value or by their language, and
 * which changes from message to message: only the schema gives each value the type that it has in QMF v1.
 */
import type { AmqpWriter } from '../../amqp/bytes.ts'
import { type FieldTable, type FieldValue, TypeCode, writeFieldValue } from '../../amqp/field-table.ts'
import { ProtocolError } from '../../errors.ts'
import { type Properties, QmfType, type QmfValue, type SchemaItem, type TableSchema } from '../types.ts'
import { writeUuid } from '../values.ts'
import { integerOf, textOf } from './item.ts'

/** The name of the object that a reference, or an object id, refers to. */
export const OBJECT_NAME = '_object_name'

const ranges: Readonly<Partial<Record<QmfType, readonly [min: bigint, max: bigint, isWide: boolean]>>> = {
  [QmfType.UINT8]: [0n, 2n ** 8n - 1n, false],
  [QmfType.UINT16]: [0n, 2n ** 16n - 1n, false],
  [QmfType.UINT32]: [0n, 2n ** 32n - 1n, false],
  [QmfType.UINT64]: [0n, 2n ** 64n - 1n, true],
  [QmfType.DELTATIME]: [0n, 2n ** 64n - 1n, true],
  [QmfType.INT8]: [-(2n ** 7n), 2n ** 7n - 1n, false],
  [QmfType.INT16]: [-(2n ** 15n), 2n ** 15n - 1n, false],
  [QmfType.INT32]: [-(2n ** 31n), 2n ** 31n - 1n, false],
  [QmfType.INT64]: [-(2n ** 63n), 2n ** 63n - 1n, true],
  [QmfType.ABSTIME]: [-(2n ** 63n), 2n ** 63n - 1n, true],
}
/** A broker ends the names of two statistics of an average otherwise than its schema does. */
const endings = [
  ['Samples', 'Count'],
  ['Average', 'Avg'],
] as const

/** An object has all its properties, or all its statistics, or both. */
export interface MapSample {
  readonly properties?: Properties
  readonly statistics?: Properties
}

export function sampleOf({ properties, statistics }: TableSchema, values: FieldTable): MapSample {
  return {
    ...(holdsAny(properties, values) && { properties: mapValues(properties, values) }),
    ...(holdsAny(statistics, values) && { statistics: mapValues(statistics, values) }),
  }
}

/**
 * Returns the values in the order of the schema, as QMF v1 has them, undefined for one that is absent or does not fit
 * its type. A reference becomes the name of its object.
 */
export function mapValues(items: readonly SchemaItem[], values: FieldTable): Properties {
  return items.map(({ name, type }) => mapValue(type, values.get(keyOf(name, values))))
}

/**
 * Writes the type code and the value: integers as int64 if they fit, which a broker converts, otherwise uint64, all
 * other numbers as double, a reference as the map of an object id. Throws ProtocolError if the value does not fit:
 * BAD_TYPE, BAD_NUMBER, BAD_NAME, TOO_LONG.
 */
export function writeMapValue(writer: AmqpWriter, type: QmfType, value: QmfValue): void {
  const fitting = type === QmfType.REFERENCE ? textOf(value) : mapValue(type, value)
  if (fitting === undefined)
    throw new ProtocolError('BAD_TYPE', `the value (${typeof value}) does not fit the type ${type}`)
  if (ranges[type] !== undefined) writeFieldValue(writer, BigInt(fitting as number | bigint))
  else if (type === QmfType.FLOAT || type === QmfType.DOUBLE) writer.uint8(TypeCode.DOUBLE).double(Number(fitting))
  else if (type === QmfType.UUID) writeUuid(writer.uint8(TypeCode.UUID), String(fitting))
  else if (type === QmfType.REFERENCE) writeFieldValue(writer, new Map([[OBJECT_NAME, fitting]]))
  else writeFieldValue(writer, fitting)
}

function holdsAny(items: readonly SchemaItem[], values: FieldTable): boolean {
  return items.some(({ name }) => values.has(keyOf(name, values)))
}

function keyOf(name: string, values: FieldTable): string {
  if (values.has(name)) return name
  const ending = endings.find(([inSchema]) => name.endsWith(inSchema))
  return ending === undefined ? name : name.slice(0, -ending[0].length) + ending[1]
}

function mapValue(type: QmfType, value: FieldValue | undefined): QmfValue | undefined {
  const range = ranges[type]
  if (range !== undefined) {
    const [min, max, isWide] = range
    const integer = integerOf(value)
    if (integer === undefined || integer < min || integer > max) return undefined
    return isWide ? integer : Number(integer)
  }
  switch (type) {
    case QmfType.FLOAT:
    case QmfType.DOUBLE:
      return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
    case QmfType.BOOL:
      return typeof value === 'boolean' ? value : undefined
    case QmfType.SHORT_STRING:
    case QmfType.LONG_STRING:
    case QmfType.UUID:
      return textOf(value)
    case QmfType.REFERENCE:
      return value instanceof Map ? textOf(value.get(OBJECT_NAME)) : undefined
    case QmfType.MAP:
      return value instanceof Map ? value : undefined
    case QmfType.LIST:
      return Array.isArray(value) ? value : undefined
    default:
      return undefined
  }
}
