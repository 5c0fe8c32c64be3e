/**
 * One AMQP body -> the QMF messages in it, which follow each other without any length: what cannot be read (an unknown
 * class, a type without rule) hides where the next one begins, so it ends the body. That is told, never thrown.
 *
 * message   "AM2" | op | uint32 sequence | what the op says
 */

import { Cursor } from '../amqp/cursor.ts'
import { readFieldTable, readUuid } from '../amqp/field-table.ts'
import { ProtocolError } from '../errors.ts'
import { inputs, outputs } from './arguments.ts'
import { readObjectHeader, readProperties, readValues } from './object.ts'
import { readObjectId } from './object-id.ts'
import { readClassKey, readKind, readSchema } from './schema.ts'
import {
  type ClassKey,
  type Decoded,
  type Known,
  type QmfMessage,
  QmfStatus,
  type Schema,
  type Stopped,
} from './types.ts'

/** Of one body. The shortest has 8 bytes; qpidd fills bodies up to 64 KiB, with messages of 70 bytes and more. */
export const MAX_MESSAGES = 4096

const MAGIC = [0x41, 0x4d, 0x32]

interface Header {
  readonly op: string
  readonly sequence: number
}

/** Never throws (unless `known` does); keeps no view of `body`. */
export function decodeBody(body: Uint8Array, known: Known): Decoded {
  const cursor = new Cursor(body)
  const messages: QmfMessage[] = []
  let header: Header | undefined
  try {
    while (cursor.remaining > 0) {
      header = undefined
      header = readHeader(cursor)
      if (messages.length === MAX_MESSAGES) {
        throw new ProtocolError('BAD_COUNT', `more than ${MAX_MESSAGES} messages in one body`, cursor.offset)
      }
      messages.push(readMessage(cursor, header, known, body))
    }
    return { messages }
  } catch (error) {
    return { messages, stopped: { ...reason(error), ...header } }
  }
}

/** Bytes that are right, of something that is not known here. */
class Unknown extends Error {
  readonly stopped: Stopped

  constructor(reason: Stopped['reason'], detail: string, offset: number, key?: ClassKey) {
    super(detail)
    this.stopped = { reason, detail, offset, ...(key && { key }) }
  }
}

function reason(error: unknown): Stopped {
  if (error instanceof Unknown) return error.stopped
  if (!(error instanceof ProtocolError)) throw error
  const { code, message, offset } = error
  return { reason: code === 'BAD_TYPE' ? 'unsupported-type' : 'malformed', detail: message, offset }
}

function readHeader(cursor: Cursor): Header {
  const at = cursor.offset
  const magic = cursor.view(MAGIC.length)
  if (!isMagic(magic)) {
    const shown = [...magic].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    throw new Unknown('unknown-magic', `a message begins with ${shown}, not with "AM2"`, at)
  }
  return { op: String.fromCharCode(cursor.uint8()), sequence: cursor.uint32() }
}

function isMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => byte === bytes[i])
}

function readMessage(cursor: Cursor, { op, sequence }: Header, known: Known, body: Uint8Array): QmfMessage {
  switch (op) {
    case 'B':
    case 'P':
    case 'x':
      return { op, sequence }
    case 'b':
      return { op, sequence, brokerId: readUuid(cursor) }
    case 'p':
    case 'Q':
      return { op, sequence, packageName: cursor.str8() }
    case 'q':
      return { op, sequence, kind: readKind(cursor), key: readClassKey(cursor) }
    case 'S':
      return { op, sequence, key: readClassKey(cursor) }
    case 's':
      return { op, sequence, schema: readSchema(cursor) }
    case 'G':
      return { op, sequence, query: readFieldTable(cursor) }
    case 'g':
    case 'c':
    case 'i':
      return readObject(cursor, op, sequence, known)
    case 'M':
      return readCall(cursor, sequence, known)
    case 'm':
      return readReply(cursor, sequence, known, body)
    case 'e':
      return readEvent(cursor, sequence, known)
    case 'h':
      return { op, sequence, time: cursor.uint64() }
    case 'z':
      return { op, sequence, code: cursor.uint32(), text: cursor.str8() }
    case 'A':
      return { op, sequence, label: cursor.str8(), systemId: readUuid(cursor), ...readBanks(cursor) }
    case 'a':
      return { op, sequence, ...readBanks(cursor) }
    default:
      throw new Unknown('unknown-op', `no message has the opcode 0x${op.charCodeAt(0).toString(16)}`, cursor.offset)
  }
}

function readBanks(cursor: Cursor): { readonly brokerBank: number; readonly agentBank: number } {
  return { brokerBank: cursor.uint32(), agentBank: cursor.uint32() }
}

function readObject(cursor: Cursor, op: 'g' | 'c' | 'i', sequence: number, known: Known): QmfMessage {
  const header = readObjectHeader(cursor)
  const schema = schemaOf(known, header.key, 'table', cursor)
  if (op === 'i') return { op, sequence, header, statistics: readValues(cursor, schema.statistics) }
  const properties = readProperties(cursor, schema)
  if (op === 'c') return { op, sequence, header, properties }
  return { op, sequence, header, properties, statistics: readValues(cursor, schema.statistics) }
}

function readCall(cursor: Cursor, sequence: number, known: Known): QmfMessage {
  const id = readObjectId(cursor)
  const key = readClassKey(cursor)
  const name = cursor.str8()
  const schema = schemaOf(known, key, 'table', cursor)
  const method = schema.methods.find((candidate) => candidate.name === name)
  if (!method) throw new Unknown('unknown-method', `${title(key)} has no method "${name}"`, cursor.offset, key)
  return { op: 'M', sequence, id, key, method: name, arguments: readValues(cursor, inputs(method)) }
}

function readReply(cursor: Cursor, sequence: number, known: Known, body: Uint8Array): QmfMessage {
  const status = cursor.uint32()
  const isShort = status === QmfStatus.UNKNOWN_METHOD && isNarrow(body, cursor.offset)
  const text = isShort ? cursor.str8() : cursor.str16()
  if (status !== QmfStatus.OK) {
    // qpidd writes the arguments behind its failures too, without a meaning; nothing follows a reply.
    if (!isMagic(body.subarray(cursor.offset, cursor.offset + MAGIC.length))) cursor.view(cursor.remaining)
    return { op: 'm', sequence, status, text, arguments: [] }
  }
  const method = known.method(sequence)
  if (!method) {
    throw new Unknown('unknown-method', `a reply to the call ${sequence}, of which nothing is known`, cursor.offset)
  }
  return { op: 'm', sequence, status, text, arguments: readValues(cursor, outputs(method)) }
}

/**
 * qpidd writes this text as str8 where the class does not know the method, as str16 elsewhere. Whichever of them reaches
 * the end of the body (or the next message) exactly is meant.
 */
function isNarrow(body: Uint8Array, at: number): boolean {
  const [first = 0, second = 0] = body.subarray(at, at + 2)
  const endsAt = (end: number) => end === body.length || isMagic(body.subarray(end, end + MAGIC.length))
  return !endsAt(at + 2 + ((first << 8) | second)) && endsAt(at + 1 + first)
}

function readEvent(cursor: Cursor, sequence: number, known: Known): QmfMessage {
  const key = readClassKey(cursor)
  const time = cursor.uint64()
  const severity = cursor.uint8()
  const schema = schemaOf(known, key, 'event', cursor)
  return { op: 'e', sequence, key, time, severity, arguments: readValues(cursor, schema.arguments) }
}

function schemaOf<K extends Schema['kind']>(known: Known, key: ClassKey, kind: K, { offset }: Cursor) {
  const schema = known.schema(key)
  if (!schema) throw new Unknown('unknown-class', `the class ${title(key)} is not known`, offset, key)
  if (isKind(schema, kind)) return schema
  throw new ProtocolError('UNKNOWN_MESSAGE', `${title(key)} is of the kind "${schema.kind}"`, offset)
}

function isKind<K extends Schema['kind']>(schema: Schema, kind: K): schema is Extract<Schema, { kind: K }> {
  return schema.kind === kind
}

function title(key: ClassKey): string {
  return `${key.packageName}:${key.className}`
}
