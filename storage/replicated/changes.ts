/**
 * Changes of rows in records of the replicated log: a tag of one byte, then the columns of ../rows.ts in their order.
 * docs/protocol/replicated-log.md repeats the tables.
 */
import type { ColumnLayout, RowColumn, RowColumns } from '../columns.ts'
import { declarationOf, ROW_KINDS, type RowKind } from '../rows.ts'
import type { Change } from '../store.ts'
import {
  double,
  flag,
  object,
  opaque,
  orNothing,
  RecordError,
  type RecordField,
  type RecordReader,
  RecordWriter,
  text,
  word,
} from './codec.ts'

/** What removes a row has the tag of what puts it, and this. */
const REMOVAL = 128

/** A kind of change, as it is written and read. There are several of one name if the row has earlier forms. */
interface CodedKind {
  readonly verb: 'put' | 'remove'
  readonly name: string
  readonly tag: number
  readonly row: RecordField<object>
}

/** Those that are written. */
const KINDS: readonly CodedKind[] = [
  ...ROW_KINDS.flatMap((name) => codedKinds(name, declarationOf(name).tag)),
  { verb: 'put', name: 'closed', tag: 17, row: object({}) },
  { verb: 'put', name: 'recovered', tag: 18, row: object({}) },
]
const EARLIER_KINDS = ROW_KINDS.flatMap((name) =>
  (declarationOf(name).earlier ?? []).flatMap(({ tag, lacks }) => codedKinds(name, tag, lacks)),
)
const BY_TAG: ReadonlyMap<number, CodedKind> = new Map([...KINDS, ...EARLIER_KINDS].map((kind) => [kind.tag, kind]))
const BY_NAME: ReadonlyMap<string, CodedKind> = new Map(KINDS.map((kind) => [`${kind.verb} ${kind.name}`, kind]))

function codedKinds(name: RowKind, tag: number, lacks?: object): CodedKind[] {
  const { columns, key, removal } = declarationOf(name)
  const row = lacks === undefined ? rowField(columns) : earlierField(columns, lacks)
  const put: CodedKind = { verb: 'put', name, tag, row }
  if (removal === undefined) return [put]
  const removed = removal === 'key' ? Object.fromEntries(key.map((column) => [column, columns[column]!])) : removal
  return [put, { verb: 'remove', name, tag: tag + REMOVAL, row: rowField(removed) }]
}

function rowField(columns: RowColumns): RecordField<object> {
  return object(Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, fieldOf(column)])))
}

function earlierField(columns: RowColumns, lacks: object): RecordField<object> {
  const field = rowField(Object.fromEntries(Object.entries(columns).filter(([name]) => !(name in lacks))))
  return { ...field, read: (reader) => ({ ...field.read(reader), ...lacks }) }
}

function fieldOf({ layout, isOptional }: RowColumn): RecordField<unknown> {
  const field = valueField(layout)
  return isOptional ? orNothing(field) : field
}

function valueField(layout: ColumnLayout): RecordField<unknown> {
  switch (layout.kind) {
    case 'number':
      return double
    case 'text':
      return text
    case 'bytes':
      return opaque
    case 'flag':
      return flag
    case 'word':
      return word(layout.numbers)
    case 'group':
      return rowField(layout.columns)
  }
}

/** The changes of a batch: their number, then each. Throws RecordError for a change that belongs to one node. */
export function encodeChanges(changes: readonly Change[]): Uint8Array {
  const writer = new RecordWriter()
  writer.uint32(changes.length)
  for (const change of changes) {
    const name = 'put' in change ? `put ${change.put}` : `remove ${change.remove}`
    const kind = BY_NAME.get(name)
    if (kind === undefined) throw new RecordError('MALFORMED', `a change "${name}" belongs into no record of the log`)
    writer.uint8(kind.tag)
    kind.row.write(writer, 'put' in change ? change.row : change)
  }
  return writer.bytes()
}

/** Throws RecordError; TOO_NEW for an unknown tag, since those of earlier versions are all known. */
export function decodeChanges(reader: RecordReader): Change[] {
  const count = reader.uint32()
  const changes: Change[] = []
  while (changes.length < count) {
    const at = reader.offset
    const tag = reader.uint8()
    const kind = BY_TAG.get(tag)
    if (kind === undefined) {
      const which = `change ${changes.length + 1} has the tag ${tag}`
      throw new RecordError('TOO_NEW', `${which}, which this version does not know`, at)
    }
    const row = kind.row.read(reader)
    changes.push((kind.verb === 'put' ? { put: kind.name, row } : { remove: kind.name, ...row }) as Change)
  }
  return changes
}
