/** The whole recording, decoded and compared with what another console made of it. */
import { describe, expect, test } from 'vitest'
import type { FieldTable, FieldValue } from '../../../protocol/amqp/field-table.ts'
import { decodeBody, encodeMessage } from '../../../protocol/qmf/messages.ts'
import type {
  ClassKey,
  QmfMessage,
  QmfValue,
  Schema,
  SchemaArgument,
  SchemaItem,
  SchemaMethod,
  SchemaProperty,
  TableSchema,
} from '../../../protocol/qmf/types.ts'
import { join, toHex } from '../../support/bytes.ts'
import { capturedConclusions, capturedTransfers } from '../../support/qmf/capture.ts'

type Message<Op extends QmfMessage['op']> = Extract<QmfMessage, { op: Op }>
type Plain = Record<string, unknown>

const schemas = new Map<string, Schema>()
const called = new Map<number, SchemaMethod>()
const known = { schema: (key: ClassKey) => schemas.get(title(key)), method: (sequence: number) => called.get(sequence) }

/** Learns on the way, as a console does: schemas from `s`, what a reply answers from `M`. */
const bodies = capturedTransfers().map(({ body, from, routingKey }) => {
  const { messages, stopped } = decodeBody(body, known)
  for (const message of messages) {
    if (message.op === 's') schemas.set(title(message.schema.key), message.schema)
    if (message.op === 'M')
      called.set(message.sequence, table(message.key).methods.find((m) => m.name === message.method)!)
  }
  return { body, from, routingKey, messages, stopped }
})
const messages = bodies.flatMap((body) => body.messages.map((message) => ({ ...body, message })))

function all<Op extends QmfMessage['op']>(op: Op): Message<Op>[] {
  const isOp = (message: QmfMessage): message is Message<Op> => message.op === op
  return messages.map(({ message }) => message).filter(isOp)
}

/** `package:class:hash`, the hash as the console prints it. */
function title({ packageName, className, hash }: ClassKey): string {
  return `${packageName}:${className}:${hash}`
}
function printed(key: ClassKey, kind: '_data' | '_event'): string {
  const hash = key.hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return `${key.packageName}:${key.className}:${kind}(${hash})`
}
function table(key: ClassKey): TableSchema {
  const schema = schemas.get(title(key))
  if (schema?.kind !== 'table') throw new Error(`no table ${title(key)}`)
  return schema
}

/** Numbers as bigints where they are whole, maps as objects: widths cannot be seen in JSON. */
function plain(value: unknown): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Map) return plain(Object.fromEntries(value))
  if (typeof value !== 'object' || value === null) return value ?? null
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}
function byName(items: readonly SchemaItem[], values: readonly (QmfValue | FieldValue | undefined)[]): Plain {
  return Object.fromEntries(items.map(({ name }, i) => [name, values[i] ?? null]))
}
const concluded = (kind: string) =>
  capturedConclusions().flatMap(({ kind: found, ...rest }) => (found === kind ? [plain(rest)] : []))

/** In any order: the console tells schemas as it comes across them. */
function byClass(list: readonly unknown[]): unknown[] {
  return list.toSorted((a, b) => String(Object(a).cls).localeCompare(String(Object(b).cls)))
}

describe('the recording', () => {
  test('is decoded to the last byte, both directions', () => {
    expect(bodies.flatMap(({ stopped }) => stopped ?? [])).toEqual([])
    const count = (from: string) => messages.filter((entry) => entry.from === from).length
    expect([count('client'), count('broker')]).toEqual([80, 261])
  })

  test('is what we encode, byte for byte', () => {
    for (const { body, messages } of bodies) {
      const encoded = messages.map((message) => encodeMessage(message, known))
      expect(toHex(join(...encoded))).toBe(toHex(body))
    }
  })
})

describe('the other console concluded the same', () => {
  test('about every schema', () => {
    const ours = all('s').map(({ schema }) => ({
      cls: printed(schema.key, schema.kind === 'table' ? '_data' : '_event'),
      type: schema.kind === 'table' ? '_data' : '_event',
      arguments: schema.kind === 'event' ? schema.arguments.map(({ name, type }) => ({ name, type })) : [],
      properties: schema.kind === 'table' ? schema.properties.map(property) : [],
      statistics: schema.kind === 'table' ? schema.statistics.map(statistic) : [],
      methods: schema.kind === 'table' ? schema.methods.map(method) : [],
    }))
    expect(byClass(ours.map(plain))).toEqual(byClass(concluded('schema')))
    expect(ours).toHaveLength(45)
  })

  function property(item: SchemaProperty) {
    const { name, type, access, isIndex, isOptional } = item
    const bounds = { min: item.min, max: item.max, maxlen: item.maxLength }
    return { ...bounds, name, type, access: String(access), index: isIndex, optional: isOptional, ...described(item) }
  }
  function statistic(item: SchemaItem) {
    return { name: item.name, type: item.type, ...described(item) }
  }
  function argument(item: SchemaArgument) {
    return { name: item.name, type: item.type, dir: item.direction, ...described(item) }
  }
  function method(item: SchemaMethod) {
    return { name: item.name, desc: item.description, arguments: item.arguments.map(argument) }
  }
  function described({ unit, description }: SchemaItem) {
    return { unit, desc: description }
  }

  function object({ header, ...values }: Message<'g' | 'c' | 'i'>) {
    const { properties, statistics } = table(header.key)
    return {
      cls: printed(header.key, '_data'),
      objectId: header.id,
      timestamps: [header.sampled, header.created, header.deleted],
      properties: 'properties' in values ? byName(properties, values.properties) : {},
      statistics: 'statistics' in values ? byName(statistics, values.statistics) : {},
    }
  }

  test.each([
    ['c', 'props', 33],
    ['i', 'stats', 65],
  ] as const)('about every object in %s', (op, kind, count) => {
    const ours = all(op).map((message) => plain(object(message)))
    expect(ours).toEqual(concluded(kind))
    expect(ours).toHaveLength(count)
  })

  test('about every object in g, except the one it looked up to call it, which it does not tell', () => {
    const ofBroker = (query: FieldTable) => query.size === 1 && query.get('_class') === 'broker'
    const lookedUp = all('G').filter(({ query }) => ofBroker(query))
    const reported = all('g').filter(({ sequence }) => sequence !== lookedUp[0]?.sequence)
    expect(reported.map((message) => plain(object(message)))).toEqual(concluded('get'))
    expect([lookedUp.length, reported.length, all('g').length]).toEqual([1, 25, 26])
  })

  test('about every event', () => {
    const ours = all('e').map(({ key, time, arguments: values }) => {
      const schema = schemas.get(title(key))
      if (schema?.kind !== 'event') throw new Error(`no event ${title(key)}`)
      return { cls: printed(key, '_event'), timestamp: time, arguments: byName(schema.arguments, values) }
    })
    expect(ours.map(plain)).toEqual(concluded('event'))
    expect(ours).toHaveLength(5)
  })

  test('about every heartbeat', () => {
    const ours = messages.flatMap(({ message, routingKey }) =>
      message.op === 'h' ? [{ timestamp: message.time, bank: routingKey.split('.')[3] }] : [],
    )
    expect(ours.map(plain)).toEqual(concluded('heartbeat'))
    expect(ours).toHaveLength(5)
  })

  test('about every method', () => {
    const replies = new Map(all('m').map((message) => [message.sequence, message]))
    const ours = all('M').map(({ sequence, method: name, arguments: values }) => {
      const { status, text, arguments: results } = replies.get(sequence)!
      const outputs = called.get(sequence)!.arguments.filter(({ direction }) => direction !== 'I')
      return { name, arguments: values, status, text, out: status === 0 ? byName(outputs, results) : {} }
    })
    expect(ours.map(plain)).toEqual(concluded('method'))
    expect(ours).toHaveLength(8)
  })
})
