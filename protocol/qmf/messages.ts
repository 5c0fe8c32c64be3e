/**
 * QMF v1 messages and their bytes, for consoles and agents. The messages of one AMQP body follow each other without any
 * length, so after something that cannot be read (an unknown class, a type without rule) no other message can be found:
 * decoding stops there and reports why, without an exception.
 *
 *   message     "AM2" | op | uint32 sequence | content
 *   object      class key | uint64 sampled | uint64 created | uint64 deleted | object id | properties | statistics
 *   properties  presence mask | values
 *
 * The presence mask has one bit for each optional property only, in the order of the schema, the least significant bit
 * of a byte first; an absent property has no bytes. The text of a reply is written as str16 always: qpidd's exception
 * for one status is read but not copied.
 */
import { AmqpReader, AmqpWriter } from '../amqp/bytes.ts'
import { readFieldTable, readUuid, writeFieldTable } from '../amqp/field-table.ts'
import { ProtocolError } from '../errors.ts'
import {
  inputsOf,
  outputsOf,
  readClassKey,
  readKind,
  readSchema,
  writeClassKey,
  writeKind,
  writeSchema,
} from './schema.ts'
import {
  type ClassKey,
  type Decoded,
  type DecodeSteps,
  type DecodeStop,
  type ObjectHeader,
  type Properties,
  type QmfMessage,
  QmfStatus,
  type QmfValue,
  type Schema,
  type SchemaItem,
  type SchemaLookup,
  type SchemaMethod,
  type Statistics,
  type TableSchema,
} from './types.ts'
import { readObjectId, readQmfValue, writeObjectId, writeQmfValue, writeUuid } from './values.ts'

/**
 * The limit for one body. The shortest message has 8 bytes; qpidd fills bodies up to 64 KiB, mostly with 70 bytes and
 * more.
 */
export const MAX_MESSAGES = 4096
/** A broker silently drops longer bodies. */
export const MAX_BODY_BYTES = 65_536
export const MANAGEMENT_EXCHANGE = 'qpid.management'
/** Answers go through this exchange, whatever the reply-to says: a transfer to a missing one would end the session. */
export const REPLY_EXCHANGE = 'amq.direct'

const MAGIC = [0x41, 0x4d, 0x32]

interface PartCodec {
  readonly read: (reader: AmqpReader) => unknown
  /** The message's own type guarantees the type of the value. */
  readonly write: (writer: AmqpWriter, value: never) => unknown
}

const uint32: PartCodec = { read: (reader) => reader.uint32(), write: (writer, value) => writer.uint32(value) }
const uint64: PartCodec = { read: (reader) => reader.uint64(), write: (writer, value) => writer.uint64(value) }
const str8: PartCodec = { read: (reader) => reader.str8(), write: (writer, value) => writer.str8(value) }
const uuid: PartCodec = { read: readUuid, write: writeUuid }
const kind: PartCodec = { read: readKind, write: writeKind }
const key: PartCodec = { read: readClassKey, write: writeClassKey }
const schema: PartCodec = { read: readSchema, write: writeSchema }
const query: PartCodec = { read: (reader) => readFieldTable(reader), write: writeFieldTable }

/** The parts of messages whose bytes do not depend on a schema. */
const partsByOp: Readonly<Record<string, Readonly<Record<string, PartCodec>>>> = {
  B: {},
  P: {},
  x: {},
  b: { brokerId: uuid },
  p: { packageName: str8 },
  Q: { packageName: str8 },
  q: { kind, key },
  S: { key },
  s: { schema },
  G: { query },
  h: { time: uint64 },
  z: { code: uint32, text: str8 },
  A: { label: str8, systemId: uuid, brokerBank: uint32, agentBank: uint32 },
  a: { brokerBank: uint32, agentBank: uint32 },
}
const fixedParts = new Map(Object.entries(partsByOp).map(([op, parts]) => [op, Object.entries(parts)]))

interface OpHeader {
  readonly op: string
  readonly sequence: number
}

/** Never throws (unless `lookup` does); keeps no view of `body`. */
export function decodeBody(body: Uint8Array, lookup: SchemaLookup): Decoded {
  const messages: QmfMessage[] = []
  const steps = decodeSteps(body, lookup)
  for (;;) {
    const { done, value } = steps.next()
    if (done !== true) messages.push(value)
    else return { messages, ...(value && { stopped: value }) }
  }
}

/** As `decodeBody`, a message at a time, each of which may use what was learned from those before. */
export function* decodeSteps(body: Uint8Array, lookup: SchemaLookup): DecodeSteps {
  const reader = new AmqpReader(body)
  for (let count = 0; reader.remaining > 0; count++) {
    let header: OpHeader | undefined
    try {
      header = readHeader(reader)
      if (count === MAX_MESSAGES) {
        throw new ProtocolError('BAD_COUNT', `more than ${MAX_MESSAGES} messages in one body`, reader.offset)
      }
      yield readMessage(reader, header, lookup, body)
    } catch (error) {
      return { ...stopOf(error), ...header }
    }
  }
  return undefined
}

/**
 * Throws ProtocolError: UNKNOWN_MESSAGE if `lookup` lacks the class or the method, others if a value does not fit the
 * schema (BAD_TYPE, BAD_COUNT, BAD_NUMBER, BAD_NAME, TOO_LONG).
 */
export function encodeMessage(message: QmfMessage, lookup: SchemaLookup): Uint8Array {
  const writer = new AmqpWriter()
  for (const letter of `AM2${message.op}`) writer.uint8(letter.charCodeAt(0))
  writer.uint32(message.sequence)
  const values: Readonly<Record<string, unknown>> = { ...message }
  for (const [name, { write }] of fixedParts.get(message.op) ?? []) write(writer, values[name] as never)
  switch (message.op) {
    case 'g':
    case 'c':
    case 'i': {
      const table = known(lookup.schema(message.header.key), 'table', message.header.key)
      writeObjectHeader(writer, message.header)
      if (message.op !== 'i') writeProperties(writer, table, message.properties)
      if (message.op !== 'c') writeValues(writer, table.statistics, message.statistics)
      break
    }
    case 'M': {
      const method = methodOf(known(lookup.schema(message.key), 'table', message.key), message.method)
      if (!method) throw unknown(`method "${message.method}" of ${title(message.key)}`)
      writeObjectId(writer, message.id)
      writeClassKey(writer, message.key)
      writer.str8(message.method)
      writeValues(writer, inputsOf(method), message.arguments)
      break
    }
    case 'm': {
      writer.uint32(message.status).str16(message.text)
      if (message.status !== QmfStatus.OK) break
      const method = lookup.method(message.sequence)
      if (!method) throw unknown(`call ${message.sequence}`)
      writeValues(writer, outputsOf(method), message.arguments)
      break
    }
    case 'e': {
      const event = known(lookup.schema(message.key), 'event', message.key)
      writeClassKey(writer, message.key)
      writer.uint64(message.time).uint8(message.severity)
      writeValues(writer, event.arguments, message.arguments)
      break
    }
  }
  return writer.bytes()
}

/** Joins messages into bodies that a broker accepts. (A `z` and similar answers stand alone.) */
export class BodyPacker {
  #messages: Uint8Array[] = []
  #length = 0

  /**
   * Returns the current body if the message does not fit into it any more, and begins a new body with the message then.
   */
  add(message: Uint8Array): Uint8Array | undefined {
    const full = this.#length + message.length > MAX_BODY_BYTES ? this.rest() : undefined
    this.#messages.push(message)
    this.#length += message.length
    return full
  }

  /** Returns the body of all messages that were not returned yet, undefined if there are none. */
  rest(): Uint8Array | undefined {
    if (this.#length === 0) return undefined
    const body = new Uint8Array(this.#length)
    let offset = 0
    for (const message of this.#messages) {
      body.set(message, offset)
      offset += message.length
    }
    this.#messages = []
    this.#length = 0
    return body
  }
}

/** Thrown for bytes that are right, of something that is not known here. */
class UnknownContent extends Error {
  readonly stop: DecodeStop

  constructor(reason: DecodeStop['reason'], detail: string, offset: number, key?: ClassKey) {
    super(detail)
    this.stop = { reason, detail, offset, ...(key && { key }) }
  }
}

function stopOf(error: unknown): DecodeStop {
  if (error instanceof UnknownContent) return error.stop
  if (!(error instanceof ProtocolError)) throw error
  const { code, message, offset } = error
  return { reason: code === 'BAD_TYPE' ? 'unsupported-type' : 'malformed', detail: message, offset }
}

function readHeader(reader: AmqpReader): OpHeader {
  const at = reader.offset
  const magic = reader.view(MAGIC.length)
  if (!isMagic(magic)) {
    const shown = [...magic].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    throw new UnknownContent('unknown-magic', `a message begins with ${shown}, not with "AM2"`, at)
  }
  return { op: String.fromCharCode(reader.uint8()), sequence: reader.uint32() }
}

function isMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => byte === bytes[i])
}

function readMessage(
  reader: AmqpReader,
  { op, sequence }: OpHeader,
  lookup: SchemaLookup,
  body: Uint8Array,
): QmfMessage {
  const parts = fixedParts.get(op)
  if (parts !== undefined) {
    const message: Record<string, unknown> = { op, sequence }
    for (const [name, { read }] of parts) message[name] = read(reader)
    return message as QmfMessage
  }
  switch (op) {
    case 'g':
    case 'c':
    case 'i':
      return readObject(reader, op, sequence, lookup)
    case 'M':
      return readCall(reader, sequence, lookup)
    case 'm':
      return readReply(reader, sequence, lookup, body)
    case 'e':
      return readEvent(reader, sequence, lookup)
    default:
      throw new UnknownContent(
        'unknown-op',
        `no message has the opcode 0x${op.charCodeAt(0).toString(16)}`,
        reader.offset,
      )
  }
}

function readObject(reader: AmqpReader, op: 'g' | 'c' | 'i', sequence: number, lookup: SchemaLookup): QmfMessage {
  const key = readClassKey(reader)
  const [sampled, created, deleted] = [reader.uint64(), reader.uint64(), reader.uint64()]
  const header: ObjectHeader = { key, sampled, created, deleted, id: readObjectId(reader) }
  const schema = schemaOf(lookup, key, 'table', reader)
  if (op === 'i') return { op, sequence, header, statistics: readValues(reader, schema.statistics) }
  const properties = readProperties(reader, schema)
  if (op === 'c') return { op, sequence, header, properties }
  return { op, sequence, header, properties, statistics: readValues(reader, schema.statistics) }
}

function readCall(reader: AmqpReader, sequence: number, lookup: SchemaLookup): QmfMessage {
  const id = readObjectId(reader)
  const key = readClassKey(reader)
  const name = reader.str8()
  const method = methodOf(schemaOf(lookup, key, 'table', reader), name)
  if (!method) throw new UnknownContent('unknown-method', `${title(key)} has no method "${name}"`, reader.offset, key)
  return { op: 'M', sequence, id, key, method: name, arguments: readValues(reader, inputsOf(method)) }
}

function readReply(reader: AmqpReader, sequence: number, lookup: SchemaLookup, body: Uint8Array): QmfMessage {
  const status = reader.uint32()
  const isShort = status === QmfStatus.UNKNOWN_METHOD && hasShortText(body, reader.offset)
  const text = isShort ? reader.str8() : reader.str16()
  if (status !== QmfStatus.OK) {
    // qpidd writes meaningless arguments after its failures too; no message follows a reply.
    if (!isMagic(body.subarray(reader.offset, reader.offset + MAGIC.length))) reader.view(reader.remaining)
    return { op: 'm', sequence, status, text, arguments: [] }
  }
  const method = lookup.method(sequence)
  if (!method) throw new UnknownContent('unknown-method', `a reply to the unknown call ${sequence}`, reader.offset)
  return { op: 'm', sequence, status, text, arguments: readValues(reader, outputsOf(method)) }
}

/**
 * qpidd writes this text as str8 if the class does not know the method, and as str16 otherwise. The one that reaches
 * the end of the body (or the next message) exactly is meant.
 */
function hasShortText(body: Uint8Array, at: number): boolean {
  const [first = 0, second = 0] = body.subarray(at, at + 2)
  const endsAt = (end: number) => end === body.length || isMagic(body.subarray(end, end + MAGIC.length))
  return !endsAt(at + 2 + ((first << 8) | second)) && endsAt(at + 1 + first)
}

function readEvent(reader: AmqpReader, sequence: number, lookup: SchemaLookup): QmfMessage {
  const key = readClassKey(reader)
  const time = reader.uint64()
  const severity = reader.uint8()
  const schema = schemaOf(lookup, key, 'event', reader)
  return { op: 'e', sequence, key, time, severity, arguments: readValues(reader, schema.arguments) }
}

export function readProperties(reader: AmqpReader, schema: TableSchema): Properties {
  const mask = reader.copy(maskBytes(schema))
  let bit = 0
  return schema.properties.map(({ type, isOptional }) => {
    if (isOptional && (mask[bit >> 3]! & (1 << (bit++ & 7))) === 0) return undefined
    return readQmfValue(reader, type)
  })
}

export function writeProperties(writer: AmqpWriter, schema: TableSchema, values: Properties): void {
  checkCount(schema.properties, values)
  const mask = new Uint8Array(maskBytes(schema))
  let bit = 0
  for (const [i, { isOptional }] of schema.properties.entries()) {
    if (isOptional && values[i] !== undefined) mask[bit >> 3]! |= 1 << (bit & 7)
    if (isOptional) bit++
  }
  writer.raw(mask)
  for (const [i, { name, type, isOptional }] of schema.properties.entries()) {
    const value = values[i]
    if (value !== undefined) writeQmfValue(writer, type, value)
    else if (!isOptional) throw new ProtocolError('BAD_COUNT', `the property "${name}" is not optional`)
  }
}

/** Reads statistics or arguments: one value for each item, without a mask. */
function readValues(reader: AmqpReader, items: readonly SchemaItem[]): readonly QmfValue[] {
  return items.map(({ type }) => readQmfValue(reader, type))
}

export function writeValues(writer: AmqpWriter, items: readonly SchemaItem[], values: Statistics): void {
  checkCount(items, values)
  for (const [i, value] of values.entries()) {
    if (value === undefined) throw new ProtocolError('BAD_TYPE', `no value for "${items[i]!.name}"`)
    writeQmfValue(writer, items[i]!.type, value)
  }
}

function writeObjectHeader(writer: AmqpWriter, { key, sampled, created, deleted, id }: ObjectHeader): void {
  writeClassKey(writer, key)
  writer.uint64(sampled).uint64(created).uint64(deleted)
  writeObjectId(writer, id)
}

function maskBytes(schema: TableSchema): number {
  return Math.ceil(schema.properties.filter(({ isOptional }) => isOptional).length / 8)
}

function checkCount(items: readonly SchemaItem[], values: readonly unknown[]): void {
  if (items.length === values.length) return
  throw new ProtocolError('BAD_COUNT', `${values.length} values where the schema has ${items.length}`)
}

function schemaOf<K extends Schema['kind']>(lookup: SchemaLookup, key: ClassKey, kind: K, { offset }: AmqpReader) {
  const schema = lookup.schema(key)
  if (!schema) throw new UnknownContent('unknown-class', `the class ${title(key)} is not known`, offset, key)
  if (isKind(schema, kind)) return schema
  throw new ProtocolError('UNKNOWN_MESSAGE', `${title(key)} is of the kind "${schema.kind}"`, offset)
}

function known<K extends Schema['kind']>(schema: Schema | undefined, kind: K, key: ClassKey) {
  if (schema !== undefined && isKind(schema, kind)) return schema
  throw unknown(`${kind === 'table' ? 'class' : kind} ${title(key)}`)
}

function isKind<K extends Schema['kind']>(schema: Schema, kind: K): schema is Extract<Schema, { kind: K }> {
  return schema.kind === kind
}

function methodOf({ methods }: TableSchema, name: string): SchemaMethod | undefined {
  return methods.find((method) => method.name === name)
}

function unknown(what: string): ProtocolError {
  return new ProtocolError('UNKNOWN_MESSAGE', `the ${what} is not known`)
}

function title(key: ClassKey): string {
  return `${key.packageName}:${key.className}`
}
