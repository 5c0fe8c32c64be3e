/**
 * Schema records, the body of `s`, and class keys. Every item is a map; which octets its numbers and texts have differs
 * from agent to agent, so they are taken by meaning. Written as qpidd writes them, keys in sorted order.
 *
 * uint8 kind | str8 package | str8 class | bin128 hash
 * table   uint16 properties | uint16 statistics | uint16 methods | maps; behind the map of a method those of its arguments
 * event   uint16 arguments | maps
 */

import type { Cursor } from '../amqp/cursor.ts'
import { type FieldTable, type FieldValue, Octet, readFieldTable, writeFieldValue } from '../amqp/field-table.ts'
import type { Writer } from '../amqp/writer.ts'
import { ProtocolError } from '../errors.ts'
import {
  Access,
  type ClassKey,
  type Direction,
  type Schema,
  type SchemaArgument,
  type SchemaItem,
  type SchemaMethod,
  type SchemaProperty,
} from './types.ts'
import { isQmfType } from './values.ts'

/** Properties, statistics, methods and all their arguments together. */
export const MAX_SCHEMA_ITEMS = 1024
/** Of names, units and descriptions, in UTF-16 units. */
export const MAX_SCHEMA_TEXT = 4096

const KINDS = { table: 1, event: 2 } as const

export function readClassKey(cursor: Cursor): ClassKey {
  return { packageName: cursor.str8(), className: cursor.str8(), hash: cursor.hex(16) }
}

export function writeClassKey(writer: Writer, key: ClassKey): void {
  if (!/^[0-9a-f]{32}$/i.test(key.hash)) throw new ProtocolError('BAD_NAME', `not a hash of 32 digits: ${key.hash}`)
  writer.str8(key.packageName).str8(key.className).hex(key.hash)
}

export function readKind(cursor: Cursor): Schema['kind'] {
  const at = cursor.offset
  const kind = cursor.uint8()
  if (kind === KINDS.table) return 'table'
  if (kind === KINDS.event) return 'event'
  throw new ProtocolError('BAD_NUMBER', `a class is of kind 1 or 2, not ${kind}`, at)
}

export function writeKind(writer: Writer, kind: Schema['kind']): void {
  writer.uint8(KINDS[kind])
}

/** Throws ProtocolError: BAD_TYPE for an item of a type that no specification has, others where the bytes are wrong. */
export function readSchema(cursor: Cursor): Schema {
  const kind = readKind(cursor)
  const key = readClassKey(cursor)
  let left = MAX_SCHEMA_ITEMS
  const counted = (count: number): number => {
    left -= count
    if (left >= 0) return count
    throw new ProtocolError('BAD_COUNT', `a schema of more than ${MAX_SCHEMA_ITEMS} items`, cursor.offset)
  }
  const list = <T>(count: number, read: (map: ItemMap) => T): T[] =>
    Array.from({ length: count }, () => read(new ItemMap(cursor)))

  if (kind === 'event') return { kind, key, arguments: list(counted(cursor.uint16()), readItem) }
  const properties = counted(cursor.uint16())
  const statistics = counted(cursor.uint16())
  const methods = counted(cursor.uint16())
  return {
    kind,
    key,
    properties: list(properties, readProperty),
    statistics: list(statistics, readItem),
    methods: list(methods, (map) => {
      const method = { name: map.name(), ...optional('description', map.text('desc')) }
      return { ...method, arguments: list(counted(map.count('argCount')), readArgument) }
    }),
  }
}

export function writeSchema(writer: Writer, schema: Schema): void {
  writeKind(writer, schema.kind)
  writeClassKey(writer, schema.key)
  if (schema.kind === 'event') {
    writer.uint16(schema.arguments.length)
    for (const item of schema.arguments) writeMap(writer, itemFields(item))
    return
  }
  const { properties, statistics, methods } = schema
  writer.uint16(properties.length).uint16(statistics.length).uint16(methods.length)
  for (const property of properties) writeMap(writer, propertyFields(property))
  for (const statistic of statistics) writeMap(writer, itemFields(statistic))
  for (const method of methods) {
    writeMap(writer, methodFields(method))
    for (const argument of method.arguments) writeMap(writer, argumentFields(argument))
  }
}

/** One map of a schema, asked by meaning. */
class ItemMap {
  readonly #table: FieldTable
  readonly #at: number

  constructor(cursor: Cursor) {
    this.#at = cursor.offset
    this.#table = readFieldTable(cursor)
  }

  name(): string {
    const name = this.text('name')
    if (name !== undefined && name !== '') return name
    throw this.wrong('BAD_NAME', 'an item without a name')
  }

  value(key: string): FieldValue | undefined {
    return this.#table.get(key)
  }

  text(key: string): string | undefined {
    const value = this.#table.get(key)
    if (typeof value !== 'string') return undefined
    if (value.length <= MAX_SCHEMA_TEXT) return value
    throw this.wrong('TOO_LONG', `a "${key}" of ${value.length} characters; the limit is ${MAX_SCHEMA_TEXT}`)
  }

  number(key: string): number | bigint | undefined {
    const value = this.#table.get(key)
    return typeof value === 'number' || typeof value === 'bigint' ? value : undefined
  }

  count(key: string): number {
    const value = Number(this.number(key))
    if (Number.isInteger(value) && value >= 0) return value
    throw this.wrong('BAD_COUNT', `an item whose "${key}" is no count`)
  }

  flag(key: string): boolean {
    return Boolean(this.#table.get(key))
  }

  wrong(code: ProtocolError['code'], message: string): ProtocolError {
    return new ProtocolError(code, message, this.#at)
  }
}

function readItem(map: ItemMap): SchemaItem {
  const type = map.count('type')
  if (!isQmfType(type)) throw map.wrong('BAD_TYPE', `"${map.name()}" is of the unknown type ${type}`)
  return {
    name: map.name(),
    type,
    ...optional('unit', map.text('unit')),
    ...optional('description', map.text('desc')),
    ...optional('min', map.number('min')),
    ...optional('max', map.number('max')),
    ...(map.number('maxlen') === undefined ? {} : { maxLength: map.count('maxlen') }),
    ...optional('refPackage', map.text('refPackage')),
    ...optional('refClass', map.text('refClass')),
  }
}

function readProperty(map: ItemMap): SchemaProperty {
  const access = Object.values(Access).find((known) => known === Number(map.number('access')))
  return {
    ...readItem(map),
    access: access ?? Access.READ_ONLY,
    isIndex: map.flag('index'),
    isOptional: map.flag('optional'),
  }
}

function readArgument(map: ItemMap): SchemaArgument {
  const direction = map.text('dir')?.toUpperCase()
  if (!isDirection(direction)) throw map.wrong('BAD_NAME', `the argument "${map.name()}" has no direction I, O or IO`)
  return { ...readItem(map), direction, ...optional('default', map.value('default')) }
}

function isDirection(text: string | undefined): text is Direction {
  return text === 'I' || text === 'O' || text === 'IO'
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V })
}

/** By key; undefined: left out. */
type Fields = Readonly<Record<string, FieldValue | undefined>>

function itemFields(item: SchemaItem): Fields {
  return {
    name: item.name,
    type: item.type,
    unit: item.unit,
    desc: item.description,
    min: item.min,
    max: item.max,
    maxlen: item.maxLength,
    refPackage: item.refPackage,
    refClass: item.refClass,
  }
}

function propertyFields(property: SchemaProperty): Fields {
  return {
    ...itemFields(property),
    access: property.access,
    index: Number(property.isIndex),
    optional: Number(property.isOptional),
  }
}

function methodFields(method: SchemaMethod): Fields {
  return { name: method.name, argCount: method.arguments.length, desc: method.description }
}

function argumentFields(argument: SchemaArgument): Fields {
  return { ...itemFields(argument), dir: argument.direction, default: argument.default }
}

/** Texts and two of the numbers have other octets here than elsewhere. */
function writeMap(writer: Writer, fields: Fields): void {
  const keys = Object.keys(fields).filter((key) => fields[key] !== undefined)
  writer.sized32(() => {
    writer.uint32(keys.length)
    for (const key of keys.toSorted()) {
      const value = fields[key] ?? null
      writer.str8(key)
      if (typeof value === 'string') writer.uint8(Octet.VBIN16).str16(value)
      else if (key === 'type' || key === 'access') writer.uint8(Octet.UINT8).uint8(Number(value))
      else writeFieldValue(writer, value)
    }
  })
}
