/**
 * Records of the log that the histories of a cluster share: what was done to the history of the node that leads, in order. A record
 * says everything itself, so that whoever has the one before can go on with it. docs/protocol/replicated-log.md has every byte.
 */
import {
  double,
  hash32,
  object,
  orNothing,
  RecordError,
  type RecordField,
  RecordReader,
  RecordWriter,
  text,
  whole,
  word,
} from '../../replicated/codec.ts'
import type { LogPlace } from '../../replicated/place.ts'
import type { HistoryBatch, HistoryLoss, HistoryMatcher, HistoryMetric, HistoryPosition } from '../store.ts'

/** The first byte of each record. */
const FORMAT = 1
/** Columns are read into memory before anything else is known of them. */
const MAX_SAMPLES = 1 << 26

/** Samples of a tenant, and how far its channel was taken with them. */
export interface AppendOperation extends Omit<HistoryBatch, 'series' | 'length'> {
  readonly kind: 'append'
  /** Texts of the series, as `seriesText` makes them; the samples have their indices. */
  readonly texts: readonly string[]
  readonly series: Uint32Array
}

export type HistoryOperation =
  | AppendOperation
  | { readonly kind: 'describe'; readonly tenant: string; readonly metric: HistoryMetric }
  | { readonly kind: 'drop'; readonly tenant: string; readonly matchers: readonly HistoryMatcher[] }
  | { readonly kind: 'remove'; readonly tenant: string }

export interface HistoryRecord {
  /** SHA-256 of the record before; zeroes in the first one of a log. */
  readonly previous: Uint8Array
  /** Milliseconds since 1970. */
  readonly wallMs: number
  /** Of the first record of a log: where the history is that it was founded with; undefined if it was in no log. */
  readonly base: LogPlace | undefined
  readonly operations: readonly HistoryOperation[]
}

const list = <Value>(field: RecordField<Value>): RecordField<readonly Value[]> => ({
  write(writer, values) {
    writer.uint32(values.length)
    for (const value of values) field.write(writer, value)
  },
  read(reader) {
    const values: Value[] = []
    for (let left = reader.uint32(); left > 0; left--) values.push(field.read(reader))
    return values
  },
})

/** Without the texts that an expression is a list of: they only say where to look. */
const matcher = object<Omit<HistoryMatcher, 'texts'>>({
  label: text,
  operator: word({ '=': 1, '!=': 2, '=~': 3, '!~': 4 }),
  text,
})
const loss = object<HistoryLoss>({ native: text, fromMs: double, toMs: double, count: whole, reason: text })
const position = object<HistoryPosition>({
  generation: text,
  channel: whole,
  transaction: whole,
  committed: orNothing(whole),
  takenMs: whole,
})
const metric = object<HistoryMetric>({
  native: text,
  families: list(object({ name: text, type: text, help: text, unit: text })),
})
const place = object<LogPlace>({ log: whole, epoch: whole, sequence: whole, hash: hash32 })

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength)

/** Values as the bits that they are: a NaN is the one that it was. */
const columns: RecordField<Pick<AppendOperation, 'series' | 'times' | 'values'>> = {
  write(writer, { series, times, values }) {
    writer.uint32(series.length)
    for (const column of [values, times, series]) writer.raw(bytesOf(column))
  },
  read(reader) {
    const at = reader.offset
    const length = reader.uint32()
    if (length > MAX_SAMPLES) throw new RecordError('MALFORMED', `${length} samples`, at)
    const [values, times, series] = [new Float64Array(length), new Float64Array(length), new Uint32Array(length)]
    for (const column of [values, times, series]) bytesOf(column).set(reader.view(column.byteLength))
    return { series, times, values }
  },
}

const appended = object<Omit<AppendOperation, 'kind' | 'series' | 'times' | 'values'>>({
  tenant: text,
  position: orNothing(position),
  losses: list(loss),
  texts: list(text),
})

const OPERATIONS: {
  readonly [Kind in HistoryOperation['kind']]: RecordField<Extract<HistoryOperation, { kind: Kind }>>
} = {
  append: {
    write(writer, operation) {
      appended.write(writer, operation)
      columns.write(writer, operation)
    },
    read(reader) {
      const operation = { kind: 'append', ...appended.read(reader), ...columns.read(reader) } as const
      const most = operation.texts.length
      if (operation.series.some((index) => index >= most)) throw new RecordError('MALFORMED', 'a series without a text')
      return operation
    },
  },
  describe: withKind('describe', object({ tenant: text, metric })),
  drop: withKind('drop', object({ tenant: text, matchers: list(matcher) })),
  remove: withKind('remove', object({ tenant: text })),
}

function withKind<Kind extends HistoryOperation['kind'], Rest extends object>(
  kind: Kind,
  rest: RecordField<Rest>,
): RecordField<{ readonly kind: Kind } & Rest> {
  return { write: (writer, value) => rest.write(writer, value), read: (reader) => ({ kind, ...rest.read(reader) }) }
}

const kinds = word<HistoryOperation['kind']>({ append: 1, describe: 2, drop: 3, remove: 4 })

const operation: RecordField<HistoryOperation> = {
  write(writer, value) {
    kinds.write(writer, value.kind)
    ;(OPERATIONS[value.kind] as RecordField<HistoryOperation>).write(writer, value)
  },
  read(reader) {
    return OPERATIONS[kinds.read(reader)].read(reader)
  },
}

const record = object<HistoryRecord>({
  previous: hash32,
  wallMs: whole,
  base: orNothing(place),
  operations: list(operation),
})

export function encodeHistoryRecord(value: HistoryRecord): Uint8Array {
  const writer = new RecordWriter()
  writer.uint8(FORMAT)
  record.write(writer, value)
  return writer.bytes()
}

/** Throws RecordError. */
export function decodeHistoryRecord(bytes: Uint8Array): HistoryRecord {
  const reader = new RecordReader(bytes)
  const format = reader.uint8()
  if (format !== FORMAT) throw new RecordError('TOO_NEW', `a record of format ${format}`)
  const value = record.read(reader)
  if (reader.remaining > 0) throw new RecordError('MALFORMED', `${reader.remaining} bytes too many`)
  return value
}
