/** Any schema, and any values that fit it, for property tests. What cannot be told apart again is not made. */
import fc from 'fast-check'
import type { FieldTable, FieldValue } from '../../../protocol/amqp/field-table.ts'
import {
  type ClassKey,
  type ObjectId,
  QmfType,
  type QmfValue,
  type Schema,
  type SchemaItem,
  type SchemaMethod,
  type TableSchema,
} from '../../../protocol/qmf/types.ts'

/** As decoders make them, for strict comparison. */
const plain = { noNullPrototype: true }

const uint = (bits: number) => fc.integer({ min: 0, max: 2 ** bits - 1 })
const int = (bits: number) => fc.integer({ min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 })
export const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
/** At most 255 bytes of UTF-8. */
const text = fc.string({ unit: 'grapheme', maxLength: 8 })
const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
const digits = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 32, maxLength: 32 })

export const objectId: fc.Arbitrary<ObjectId> = fc
  .tuple(uint(4), uint(12), uint(20), uint(28), uint64)
  .map((parts) => parts.join('-'))
export const classKey: fc.Arbitrary<ClassKey> = fc.record({ packageName: text, className: text, hash: digits }, plain)

/** No numbers but int32 and doubles that are none; binary that is no text. */
const scalar: fc.Arbitrary<FieldValue> = fc.oneof(
  int(32),
  fc.double({ noNaN: true }),
  int64,
  fc.boolean(),
  text,
  fc.constant(null),
  fc.uint8Array({ maxLength: 9 }).map((bytes) => Uint8Array.of(0xff, ...bytes)),
)
const { value: fieldValue } = fc.letrec<{ value: FieldValue; table: FieldTable; list: readonly FieldValue[] }>(
  (tie) => ({
    value: fc.oneof({ depthSize: 'small', maxDepth: 5 }, scalar, tie('table'), tie('list')),
    table: fc.dictionary(text, tie('value'), { maxKeys: 4 }).map((keys) => new Map(Object.entries(keys))),
    list: fc.array(tie('value'), { maxLength: 4 }),
  }),
)
export const fieldTable: fc.Arbitrary<FieldTable> = fc
  .dictionary(text, fieldValue, { maxKeys: 5 })
  .map((keys) => new Map(Object.entries(keys)))

const values: Readonly<Record<number, fc.Arbitrary<QmfValue>>> = {
  [QmfType.UINT8]: uint(8),
  [QmfType.UINT16]: uint(16),
  [QmfType.UINT32]: uint(32),
  [QmfType.UINT64]: uint64,
  [QmfType.SHORT_STRING]: text,
  [QmfType.LONG_STRING]: fc.string({ unit: 'grapheme', maxLength: 300 }),
  [QmfType.ABSTIME]: int64,
  [QmfType.DELTATIME]: uint64,
  [QmfType.REFERENCE]: objectId,
  [QmfType.BOOL]: fc.boolean(),
  [QmfType.FLOAT]: fc.float({ noNaN: true }),
  [QmfType.DOUBLE]: fc.double({ noNaN: true }),
  [QmfType.UUID]: digits.map((all) => all.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')),
  [QmfType.MAP]: fieldTable,
  [QmfType.INT8]: int(8),
  [QmfType.INT16]: int(16),
  [QmfType.INT32]: int(32),
  [QmfType.INT64]: int64,
  [QmfType.LIST]: fc.array(fieldValue, { maxLength: 5 }),
}

/** Every type that has values. */
const type = fc.constantFrom(...Object.keys(values).map((code) => Number(code) as QmfType))
const rest = {
  unit: text,
  description: text,
  min: fc.oneof(int(32), int64),
  max: fc.oneof(int(32), int64),
  maxLength: uint(31),
  refPackage: text,
  refClass: text,
}
const itemModel = { name, type, ...rest }
const always = ['name', 'type'] as const
const item: fc.Arbitrary<SchemaItem> = fc.record(itemModel, { noNullPrototype: true, requiredKeys: [...always] })
const property = fc.record(
  { ...itemModel, access: fc.constantFrom(1, 2, 3), isIndex: fc.boolean(), isOptional: fc.boolean() },
  { noNullPrototype: true, requiredKeys: [...always, 'access', 'isIndex', 'isOptional'] },
)
const argument = fc.record(
  { ...itemModel, direction: fc.constantFrom('I', 'O', 'IO'), default: fc.constantFrom(0, -7, 5n, true, 'text') },
  { noNullPrototype: true, requiredKeys: [...always, 'direction'] },
)
export const method: fc.Arbitrary<SchemaMethod> = fc.record(
  { name, description: text, arguments: fc.array(argument, { maxLength: 6 }) },
  { noNullPrototype: true, requiredKeys: ['name', 'arguments'] },
)
export const table: fc.Arbitrary<TableSchema> = fc.record(
  {
    kind: fc.constant('table'),
    key: classKey,
    properties: fc.array(property, { maxLength: 20 }),
    statistics: fc.array(item, { maxLength: 6 }),
    methods: fc.uniqueArray(method, { maxLength: 3, selector: (m) => m.name }),
  },
  plain,
)
export const event = fc.record(
  {
    kind: fc.constant('event'),
    key: classKey,
    arguments: fc.array(item, { maxLength: 6 }),
  },
  plain,
)
export const schema: fc.Arbitrary<Schema> = fc.oneof(table, event)

export function valuesOf(items: readonly SchemaItem[]): fc.Arbitrary<readonly QmfValue[]> {
  return fc.tuple(...items.map(({ type: code }) => values[code]!))
}
export function propertiesOf({ properties }: TableSchema): fc.Arbitrary<readonly (QmfValue | undefined)[]> {
  const optional = (of: fc.Arbitrary<QmfValue>) => fc.option(of, { nil: undefined })
  return fc.tuple(...properties.map((p) => (p.isOptional ? optional(values[p.type]!) : values[p.type]!)))
}
export function headerOf({ key }: TableSchema) {
  return fc.record({ key: fc.constant(key), sampled: uint64, created: uint64, deleted: uint64, id: objectId }, plain)
}
