/**
 * What `g`, `c` and `i` hold of an object. The presence mask stands in front of all properties and has a bit for each
 * optional one only, in the order of the schema, the least significant bit of a byte first; an absent property has no bytes.
 */

import type { Cursor } from '../amqp/cursor.ts'
import type { Writer } from '../amqp/writer.ts'
import { ProtocolError } from '../errors.ts'
import { readObjectId, writeObjectId } from './object-id.ts'
import { readClassKey, writeClassKey } from './schema.ts'
import type { ObjectHeader, Properties, QmfValue, SchemaItem, TableSchema } from './types.ts'
import { readValue, writeValue } from './values.ts'

export function readObjectHeader(cursor: Cursor): ObjectHeader {
  return {
    key: readClassKey(cursor),
    sampled: cursor.uint64(),
    created: cursor.uint64(),
    deleted: cursor.uint64(),
    id: readObjectId(cursor),
  }
}

export function writeObjectHeader(writer: Writer, header: ObjectHeader): void {
  writeClassKey(writer, header.key)
  writer.uint64(header.sampled).uint64(header.created).uint64(header.deleted)
  writeObjectId(writer, header.id)
}

export function readProperties(cursor: Cursor, schema: TableSchema): Properties {
  const mask = cursor.copy(maskBytes(schema))
  let bit = 0
  return schema.properties.map(({ type, isOptional }) => {
    if (isOptional && (mask[bit >> 3]! & (1 << (bit++ & 7))) === 0) return undefined
    return readValue(cursor, type)
  })
}

export function writeProperties(writer: Writer, schema: TableSchema, values: Properties): void {
  sameCount(schema.properties, values)
  const mask = new Uint8Array(maskBytes(schema))
  let bit = 0
  for (const [i, { isOptional }] of schema.properties.entries()) {
    if (isOptional && values[i] !== undefined) mask[bit >> 3]! |= 1 << (bit & 7)
    if (isOptional) bit++
  }
  writer.raw(mask)
  for (const [i, { name, type, isOptional }] of schema.properties.entries()) {
    const value = values[i]
    if (value !== undefined) writeValue(writer, type, value)
    else if (!isOptional) throw new ProtocolError('BAD_COUNT', `the property "${name}" is not optional`)
  }
}

/** Statistics and arguments: one value for each item, without any mask. */
export function readValues(cursor: Cursor, items: readonly SchemaItem[]): readonly QmfValue[] {
  return items.map(({ type }) => readValue(cursor, type))
}

export function writeValues(writer: Writer, items: readonly SchemaItem[], values: readonly QmfValue[]): void {
  sameCount(items, values)
  for (const [i, value] of values.entries()) writeValue(writer, items[i]!.type, value)
}

function maskBytes(schema: TableSchema): number {
  return Math.ceil(schema.properties.filter(({ isOptional }) => isOptional).length / 8)
}

function sameCount(items: readonly SchemaItem[], values: readonly unknown[]): void {
  if (items.length === values.length) return
  throw new ProtocolError('BAD_COUNT', `${values.length} values where the schema has ${items.length}`)
}
