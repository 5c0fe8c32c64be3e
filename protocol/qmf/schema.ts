/**
 * Schemas, the content of `s`, and class keys. Every item is a map. Agents differ in the type codes of its numbers and
 * texts, so these are read by meaning; they are written as qpidd writes them, with sorted keys.
 *
 * uint8 kind | str8 package | str8 class | bin128 hash
 * table   uint16 properties | uint16 statistics | uint16 methods | maps; the map of a method is followed by its arguments'
 * event   uint16 arguments | maps
 */
import type { AmqpReader, AmqpWriter } from '../amqp/bytes.ts'
import { type FieldTable, type FieldValue, readFieldTable, TypeCode, writeFieldValue } from '../amqp/field-table.ts'
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

/** The limit for properties, statistics, methods and all their arguments together. */
export const MAX_SCHEMA_ITEMS = 1024
/** The limit for a name, unit or description, in UTF-16 units. */
export const MAX_SCHEMA_TEXT = 4096

const KINDS = { table: 1, event: 2 } as const

export function readClassKey(reader: AmqpReader): ClassKey {
  return { packageName: reader.str8(), className: reader.str8(), hash: reader.hex(16) }
}

export function writeClassKey(writer: AmqpWriter, key: ClassKey): void {
  if (!/^[0-9a-f]{32}$/i.test(key.hash)) throw new ProtocolError('BAD_NAME', `not a hash of 32 digits: ${key.hash}`)
  writer.str8(key.packageName).str8(key.className).hex(key.hash)
}

export function readKind(reader: AmqpReader): Schema['kind'] {
  const at = reader.offset
  const kind = reader.uint8()
  if (kind === KINDS.table) return 'table'
  if (kind === KINDS.event) return 'event'
  throw new ProtocolError('BAD_NUMBER', `a class is of kind 1 or 2, not ${kind}`, at)
}

export function writeKind(writer: AmqpWriter, kind: Schema['kind']): void {
  writer.uint8(KINDS[kind])
}

/** The arguments that a call (`M`) carries, in the order of the schema. IO arguments travel both ways. */
export function inputsOf(method: SchemaMethod): readonly SchemaArgument[] {
  return method.arguments.filter(({ direction }) => direction !== 'O')
}

/** The arguments that a reply (`m`) with status 0 carries. */
export function outputsOf(method: SchemaMethod): readonly SchemaArgument[] {
  return method.arguments.filter(({ direction }) => direction !== 'I')
}

/** Throws ProtocolError: BAD_TYPE for an item of an unspecified type, others if the bytes are wrong. */
export function readSchema(reader: AmqpReader): Schema {
  const kind = readKind(reader)
  const key = readClassKey(reader)
  let left = MAX_SCHEMA_ITEMS
  const counted = (count: number): number => {
    left -= count
    if (left >= 0) return count
    throw new ProtocolError('BAD_COUNT', `a schema of more than ${MAX_SCHEMA_ITEMS} items`, reader.offset)
  }
  const list = <T>(count: number, read: (map: ItemMap) => T): T[] =>
    Array.from({ length: count }, () => read(new ItemMap(reader)))

  if (kind === 'event') return { kind, key, arguments: list(counted(reader.uint16()), readItem) }
  const properties = counted(reader.uint16())
  const statistics = counted(reader.uint16())
  const methods = counted(reader.uint16())
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

export function writeSchema(writer: AmqpWriter, schema: Schema): void {
  writeKind(writer, schema.kind)
  writeClassKey(writer, schema.key)
  if (schema.kind === 'event') {
    writer.uint16(schema.arguments.length)
    for (const item of schema.arguments) writeMap(writer, itemEntries(item))
    return
  }
  const { properties, statistics, methods } = schema
  writer.uint16(properties.length).uint16(statistics.length).uint16(methods.length)
  for (const property of properties) writeMap(writer, propertyEntries(property))
  for (const statistic of statistics) writeMap(writer, itemEntries(statistic))
  for (const method of methods) {
    writeMap(writer, { name: method.name, argCount: method.arguments.length, desc: method.description })
    for (const argument of method.arguments) writeMap(writer, argumentEntries(argument))
  }
}

/** One map of a schema, read by meaning. */
class ItemMap {
  readonly #table: FieldTable
  readonly #at: number

  constructor(reader: AmqpReader) {
    this.#at = reader.offset
    this.#table = readFieldTable(reader)
  }

  name(): string {
    const name = this.text('name')
    if (name !== undefined && name !== '') return name
    throw this.wrong('BAD_NAME', 'an item without a name')
  }

  /** Returns undefined for tables, lists and bytes, which are no default that anybody could use. */
  scalar(key: string): FieldValue | undefined {
    const value = this.#table.get(key)
    return typeof value === 'string' ? this.text(key) : typeof value === 'object' ? undefined : value
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
  const direction = DIRECTIONS[Number(map.number('dir') ?? 0)] ?? map.text('dir')?.toUpperCase()
  if (!isDirection(direction)) throw map.wrong('BAD_NAME', `the argument "${map.name()}" has no direction I, O or IO`)
  return { ...readItem(map), direction, ...optional('default', map.scalar('default')) }
}

/** Directions as numbers, as the page of the protocol has them. Brokers send texts. */
const DIRECTIONS: readonly (Direction | undefined)[] = [undefined, 'I', 'O', 'IO']

function isDirection(text: string | undefined): text is Direction {
  return text === 'I' || text === 'O' || text === 'IO'
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V })
}

/** The entries of a map; undefined ones are left out. */
type ItemEntries = Readonly<Record<string, FieldValue | undefined>>

function itemEntries(item: SchemaItem): ItemEntries {
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

function propertyEntries(property: SchemaProperty): ItemEntries {
  return {
    ...itemEntries(property),
    access: property.access,
    index: Number(property.isIndex),
    optional: Number(property.isOptional),
  }
}

function argumentEntries(argument: SchemaArgument): ItemEntries {
  return { ...itemEntries(argument), dir: argument.direction, default: argument.default }
}

/** Texts and two of the numbers have other type codes here than elsewhere. */
function writeMap(writer: AmqpWriter, entries: ItemEntries): void {
  const keys = Object.keys(entries).filter((key) => entries[key] !== undefined)
  writer.sized32(() => {
    writer.uint32(keys.length)
    for (const key of keys.toSorted()) {
      const value = entries[key] ?? null
      writer.str8(key)
      if (typeof value === 'string') writer.uint8(TypeCode.VBIN16).str16(value)
      else if (key === 'type' || key === 'access') writer.uint8(TypeCode.UINT8).uint8(Number(value))
      else writeFieldValue(writer, value)
    }
  })
}
