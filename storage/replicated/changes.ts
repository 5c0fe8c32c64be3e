/**
 * Changes of rows in records of the replicated log: a tag of one byte, then the fields in the order below. A tag that was released
 * keeps its meaning, its fields and their order for ever; a row that gets another field gets another tag. What removes something
 * has the tag of what puts it, and 128. docs/protocol/replicated-log.md repeats the tables.
 */
import type { Change, ScramRow } from '../store.ts'
import {
  double,
  flag,
  object,
  opaque,
  orNothing,
  RecordError,
  type RecordField,
  type RecordFields,
  type RecordReader,
  RecordWriter,
  text,
  word,
} from './codec.ts'

type Put = Extract<Change, { readonly put: string }>
type Removal = Extract<Change, { readonly remove: string }>

interface Layout<Row> {
  readonly tag: number
  readonly fields: RecordFields<Row>
}
// The compiler asks for each new Change here, and for each new field of a row.
type PutLayouts = { readonly [Kind in Put['put']]: Layout<Extract<Put, { readonly put: Kind }>['row']> }
type RemovalLayouts = {
  readonly [Kind in Removal['remove']]: Layout<Omit<Extract<Removal, { readonly remove: Kind }>, 'remove'>>
}

const scram: RecordField<ScramRow> = object<ScramRow>({
  salt: opaque,
  iterations: double,
  storedKey: opaque,
  serverKey: opaque,
})

const PUTS: PutLayouts = {
  tenant: { tag: 1, fields: { name: text, quota: text } },
  user: {
    tag: 2,
    fields: {
      id: double,
      tenant: text,
      name: text,
      role: text,
      bcrypt: orNothing(text),
      scram: orNothing(scram),
      loopbackOnly: flag,
      created: double,
    },
  },
  channel: {
    tag: 3,
    fields: {
      id: double,
      user: double,
      name: text,
      url: text,
      defined: flag,
      configured: flag,
      durable: flag,
      window: double,
      windowBytes: double,
      maxBytes: double,
      maxAgeMs: double,
      expireMs: double,
      overflow: word({ 'drop-oldest': 0, 'drop-newest': 1, 'keep-latest': 2 }),
      origin: double,
      lastUsed: double,
      paused: flag,
    },
  },
  'lost name': { tag: 4, fields: { user: double, name: text, reason: word({ expired: 0, purged: 1 }) } },
  instance: { tag: 5, fields: { id: double, user: double, metric: text, args: opaque } },
  binding: {
    tag: 6,
    fields: { channel: double, metric: double, mode: word({ subscribe: 0, buffer: 1 }), since: double },
  },
  place: { tag: 7, fields: { channel: double, metric: double, reached: double } },
  upstream: { tag: 8, fields: { name: text, generation: text, channel: double, reached: double } },
  stop: { tag: 9, fields: { channel: double, metric: double, through: double } },
  result: {
    tag: 10,
    fields: { id: double, channel: double, user: double, control: text, transaction: double },
  },
  rule: {
    tag: 11,
    fields: {
      number: double,
      role: text,
      effect: word({ allow: 0, deny: 1 }),
      command: text,
      object: text,
      where: text,
    },
  },
  token: {
    tag: 12,
    fields: {
      id: double,
      user: double,
      name: text,
      hash: opaque,
      scope: text,
      made: double,
      expires: orNothing(double),
    },
  },
  dial: { tag: 13, fields: { channel: double, scram: orNothing(scram), bearer: orNothing(opaque) } },
  audit: {
    tag: 14,
    fields: {
      number: double,
      time: double,
      action: text,
      actor: text,
      tenant: text,
      address: text,
      object: text,
      args: text,
      outcome: text,
      detail: text,
      hash: opaque,
    },
  },
  execution: {
    tag: 15,
    fields: {
      user: double,
      control: text,
      key: text,
      digest: opaque,
      at: double,
      result: orNothing(opaque),
    },
  },
  fence: { tag: 16, fields: { sensor: text } },
  closed: { tag: 17, fields: {} },
  recovered: { tag: 18, fields: {} },
  'qmf agent': { tag: 19, fields: { systemId: text, boot: double, banks: text } },
  'upstream binding': {
    tag: 20,
    fields: { upstream: text, generation: text, channel: double, metric: double, selection: text },
  },
}

const REMOVALS: RemovalLayouts = {
  tenant: { tag: 129, fields: { name: text } },
  user: { tag: 130, fields: { id: double } },
  channel: { tag: 131, fields: { id: double } },
  'lost name': { tag: 132, fields: { user: double, name: text } },
  instance: { tag: 133, fields: { id: double } },
  binding: { tag: 134, fields: { channel: double, metric: double } },
  upstream: { tag: 136, fields: { name: text } },
  stop: { tag: 137, fields: { channel: double, metric: double } },
  result: { tag: 138, fields: { id: double } },
  rule: { tag: 139, fields: { number: double } },
  token: { tag: 140, fields: { id: double } },
  audit: { tag: 142, fields: { through: double } },
  execution: { tag: 143, fields: { before: double } },
  fence: { tag: 144, fields: { sensor: text } },
  'upstream binding': { tag: 148, fields: { upstream: text, metric: double } },
}

/** A kind of change, as it is written and read. */
interface CodedKind {
  readonly verb: 'put' | 'remove'
  readonly name: string
  readonly tag: number
  readonly row: RecordField<object>
}

const KINDS: readonly CodedKind[] = [
  ...Object.entries<Layout<object>>(PUTS).map(codedAs('put')),
  ...Object.entries<Layout<object>>(REMOVALS).map(codedAs('remove')),
]
const BY_TAG: ReadonlyMap<number, CodedKind> = new Map(KINDS.map((kind) => [kind.tag, kind]))
const BY_NAME: ReadonlyMap<string, CodedKind> = new Map(KINDS.map((kind) => [`${kind.verb} ${kind.name}`, kind]))

function codedAs(verb: CodedKind['verb']) {
  return ([name, { tag, fields }]: [string, Layout<object>]): CodedKind => ({ verb, name, tag, row: object(fields) })
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

/** Throws RecordError; TOO_NEW for an unknown tag. */
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
