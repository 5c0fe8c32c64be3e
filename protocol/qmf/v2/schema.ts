/**
 * Class keys and schemas as maps. The hash of v1 comes as a uuid, and only from agents do schemas come this way: a
 * broker sends its own by v1 (`s`).
 *
 *   class key  _package_name | _class_name | _type (`_data`, `_event`) | _hash
 *   schema     _schema_id | _properties | _methods
 *   property   _name | _type (`TYPE_INT`) | _access (RO, RC, RW) | _unit | _desc | _index
 *   method     _name | _desc | _arguments, which are like properties with _dir (I, O, IO)
 */
import { MAX_SCHEMA_ITEMS, MAX_SCHEMA_TEXT } from '../schema.ts'
import {
  Access,
  type ClassKey,
  type Direction,
  QmfType,
  type Schema,
  type SchemaArgument,
  type SchemaItem,
  type SchemaProperty,
} from '../types.ts'
import type { MapItem } from './item.ts'

/** A class and its kind, as a schema id names it. */
export interface ClassId {
  readonly kind: Schema['kind']
  readonly key: ClassKey
}

/** The limit for the name of a package, class, method or agent, as in v1, where they are str8. */
export const MAX_MAP_NAME = 255

const kinds: ReadonlyMap<string | undefined, Schema['kind']> = new Map([
  ['_data', 'table'],
  ['_event', 'event'],
])
const types: ReadonlyMap<string | undefined, QmfType> = new Map([
  ['TYPE_BOOL', QmfType.BOOL],
  ['TYPE_INT', QmfType.INT64],
  ['TYPE_FLOAT', QmfType.DOUBLE],
  ['TYPE_STRING', QmfType.LONG_STRING],
  ['TYPE_MAP', QmfType.MAP],
  ['TYPE_LIST', QmfType.LIST],
  ['TYPE_UUID', QmfType.UUID],
])
const accesses: ReadonlyMap<string | undefined, Access> = new Map([
  ['RC', Access.READ_CREATE],
  ['RW', Access.READ_WRITE],
  ['RO', Access.READ_ONLY],
])
const directions: ReadonlyMap<string | undefined, Direction> = new Map([
  ['I', 'I'],
  ['O', 'O'],
  ['IO', 'IO'],
])

/** Reads the map `_schema_id`. Throws ProtocolError. */
export function readClassId(id: MapItem): ClassId {
  const kind = kinds.get(id.text('_type', MAX_MAP_NAME))
  if (kind === undefined) throw id.wrong('BAD_NAME', 'a "_type" that is neither _data nor _event')
  const hash = id.name('_hash', MAX_MAP_NAME).replaceAll('-', '')
  if (!/^[0-9a-f]{32}$/.test(hash)) throw id.wrong('BAD_NAME', '"_hash" is not a uuid')
  const packageName = id.name('_package_name', MAX_MAP_NAME)
  return { kind, key: { packageName, className: id.name('_class_name', MAX_MAP_NAME), hash } }
}

/** Reads one schema. Items of other types are left out. Throws ProtocolError. */
export function readMapSchema(schema: MapItem): Schema {
  const { kind, key } = readClassId(schema.item('_schema_id'))
  const properties = schema.items('_properties')
  const methods = schema.items('_methods').map((method) => [method, method.items('_arguments')] as const)
  const count = methods.reduce((sum, [, list]) => sum + 1 + list.length, properties.length)
  if (count > MAX_SCHEMA_ITEMS) throw schema.wrong('BAD_COUNT', `a schema of more than ${MAX_SCHEMA_ITEMS} items`)
  if (kind === 'event') return { kind, key, arguments: properties.flatMap(readItem) }
  return {
    kind,
    key,
    properties: properties.flatMap(readProperty),
    statistics: [],
    methods: methods.map(([method, list]) => ({
      name: method.name('_name', MAX_MAP_NAME),
      ...optionalText(method, '_desc', 'description'),
      arguments: list.flatMap(readArgument),
    })),
  }
}

/** An array of one item, empty if a value of its type cannot be shown. */
function readItem(item: MapItem): readonly SchemaItem[] {
  const type = types.get(item.text('_type', MAX_SCHEMA_TEXT))
  if (type === undefined) return []
  const facts = { ...optionalText(item, '_unit', 'unit'), ...optionalText(item, '_desc', 'description') }
  return [{ name: item.name('_name', MAX_MAP_NAME), type, ...facts }]
}

/** Which properties are optional is not said, so all may be absent. */
function readProperty(item: MapItem): readonly SchemaProperty[] {
  const access = accesses.get(item.text('_access', MAX_SCHEMA_TEXT)) ?? Access.READ_ONLY
  return readItem(item).map((read) => ({ ...read, access, isIndex: item.flag('_index'), isOptional: true }))
}

function readArgument(item: MapItem): readonly SchemaArgument[] {
  const direction = directions.get(item.text('_dir', MAX_SCHEMA_TEXT))
  if (direction === undefined) throw item.wrong('BAD_NAME', 'an argument without a direction I, O or IO')
  return readItem(item).map((read) => ({ ...read, direction }))
}

function optionalText<K extends string>(item: MapItem, from: string, to: K): { readonly [P in K]?: string } {
  const text = item.text(from, MAX_SCHEMA_TEXT)
  return text === undefined ? {} : ({ [to]: text } as { readonly [P in K]?: string })
}
