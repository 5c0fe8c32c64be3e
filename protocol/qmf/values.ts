/**
 * Values of properties, statistics and arguments, and object ids. The bytes do not carry their type: the schema does,
 * so everything after a value that cannot be read (OBJECT, ARRAY) is lost.
 *
 * object id   flags (4) | boot sequence (12) | broker bank (20) | agent bank (28) | object number (64)
 *
 * Its text, `0-0-1-0-2`, is also what a query for `_objectid` takes.
 */
import type { AmqpReader, AmqpWriter } from '../amqp/bytes.ts'
import {
  type FieldTable,
  type FieldValue,
  readFieldList,
  readFieldTable,
  readUuid,
  writeFieldList,
  writeFieldTable,
} from '../amqp/field-table.ts'
import { ProtocolError } from '../errors.ts'
import { type ObjectId, QmfType, type QmfValue } from './types.ts'

export interface ObjectIdParts {
  readonly flags: number
  /** The run of the broker that made the object; 0 if the object persists over restarts. */
  readonly boot: number
  /** With the agent bank, the agent: `agent.<brokerBank>.<agentBank>` is where its methods are called. */
  readonly brokerBank: number
  readonly agentBank: number
  readonly object: bigint
}

interface ValueCodec {
  readonly read: (from: AmqpReader) => QmfValue
  readonly write: (to: AmqpWriter, value: QmfValue) => void
}

/** OBJECT and ARRAY have no codec. */
const codecs: Readonly<Partial<Record<QmfType, ValueCodec>>> = {
  [QmfType.UINT8]: { read: (from) => from.uint8(), write: (to, value) => to.uint8(unsigned(value, 8)) },
  [QmfType.UINT16]: { read: (from) => from.uint16(), write: (to, value) => to.uint16(unsigned(value, 16)) },
  [QmfType.UINT32]: { read: (from) => from.uint32(), write: (to, value) => to.uint32(unsigned(value, 32)) },
  [QmfType.UINT64]: { read: (from) => from.uint64(), write: (to, value) => to.uint64(wide(value, BigInt.asUintN)) },
  [QmfType.DELTATIME]: { read: (from) => from.uint64(), write: (to, value) => to.uint64(wide(value, BigInt.asUintN)) },
  [QmfType.INT8]: { read: (from) => from.int8(), write: (to, value) => to.uint8(signed(value, 8)) },
  [QmfType.INT16]: { read: (from) => from.int16(), write: (to, value) => to.uint16(signed(value, 16)) },
  [QmfType.INT32]: { read: (from) => from.int32(), write: (to, value) => to.uint32(signed(value, 32)) },
  [QmfType.INT64]: { read: (from) => from.int64(), write: (to, value) => to.uint64(wide(value, BigInt.asIntN)) },
  [QmfType.ABSTIME]: { read: (from) => from.int64(), write: (to, value) => to.uint64(wide(value, BigInt.asIntN)) },
  [QmfType.SHORT_STRING]: { read: (from) => from.str8(), write: (to, value) => to.str8(text(value)) },
  [QmfType.LONG_STRING]: { read: (from) => from.str16(), write: (to, value) => to.str16(text(value)) },
  [QmfType.REFERENCE]: { read: readObjectId, write: (to, value) => writeObjectId(to, text(value)) },
  [QmfType.BOOL]: { read: (from) => from.uint8() !== 0, write: (to, value) => to.uint8(boolean(value) ? 1 : 0) },
  [QmfType.FLOAT]: { read: (from) => from.float(), write: (to, value) => to.float(number(value)) },
  [QmfType.DOUBLE]: { read: (from) => from.double(), write: (to, value) => to.double(number(value)) },
  [QmfType.UUID]: { read: readUuid, write: (to, value) => writeUuid(to, text(value)) },
  [QmfType.MAP]: { read: (from) => readFieldTable(from), write: (to, value) => writeFieldTable(to, table(value)) },
  [QmfType.LIST]: { read: (from) => readFieldList(from), write: (to, value) => writeFieldList(to, list(value)) },
}

const types: ReadonlySet<number> = new Set(Object.values(QmfType))

export function isQmfType(code: number): code is QmfType {
  return types.has(code)
}

/** Throws ProtocolError: BAD_TYPE for OBJECT and ARRAY, others if the bytes are wrong. */
export function readQmfValue(reader: AmqpReader, type: QmfType): QmfValue {
  const codec = codecs[type]
  if (codec !== undefined) return codec.read(reader)
  throw new ProtocolError('BAD_TYPE', `a value of type ${type}, which cannot be read`, reader.offset)
}

/** Throws ProtocolError if the value does not fit the type: BAD_TYPE, BAD_NUMBER (out of range), TOO_LONG, BAD_NAME. */
export function writeQmfValue(writer: AmqpWriter, type: QmfType, value: QmfValue): void {
  const codec = codecs[type]
  if (codec === undefined) throw new ProtocolError('BAD_TYPE', `a value of type ${type} cannot be written`)
  codec.write(writer, value)
}

export function writeUuid(writer: AmqpWriter, uuid: string): void {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uuid)) {
    throw new ProtocolError('BAD_NAME', `not a uuid: ${uuid}`)
  }
  writer.hex(uuid.replaceAll('-', ''))
}

export function formatObjectId(parts: ObjectIdParts): ObjectId {
  return `${parts.flags}-${parts.boot}-${parts.brokerBank}-${parts.agentBank}-${parts.object}`
}

/** Returns undefined if the text is not an object id in its only form: no leading zeros, no part too large. */
export function parseObjectId(text: string): ObjectIdParts | undefined {
  if (text.length > 64) return undefined
  const match = /^(\d+)-(\d+)-(\d+)-(\d+)-(\d+)$/.exec(text)
  if (match === null) return undefined
  const [flags, boot, brokerBank, agentBank] = match.slice(1, 5).map(Number) as [number, number, number, number]
  const parts = { flags, boot, brokerBank, agentBank, object: BigInt(match[5]!) }
  const fits = flags < 1 << 4 && boot < 1 << 12 && brokerBank < 1 << 20 && agentBank < 1 << 28
  return fits && parts.object < 1n << 64n && formatObjectId(parts) === text ? parts : undefined
}

export function readObjectId(reader: AmqpReader): ObjectId {
  const high = reader.uint32()
  const low = reader.uint32()
  return formatObjectId({
    flags: high >>> 28,
    boot: (high >>> 16) & 0xfff,
    brokerBank: ((high & 0xffff) << 4) | (low >>> 28),
    agentBank: low & 0xfffffff,
    object: reader.uint64(),
  })
}

/** Throws ProtocolError (BAD_NAME) if the text is not an object id. */
export function writeObjectId(writer: AmqpWriter, id: ObjectId): void {
  const parts = parseObjectId(id)
  if (!parts) throw new ProtocolError('BAD_NAME', `not an object id, which looks like 0-0-1-0-2: ${id}`)
  const { flags, boot, brokerBank, agentBank, object } = parts
  writer
    .uint32((flags << 28) | (boot << 16) | (brokerBank >>> 4))
    .uint32((brokerBank << 28) | agentBank)
    .uint64(object)
}

function unsigned(value: QmfValue, bits: number): number {
  return integer(value, 0, 2 ** bits - 1)
}

function signed(value: QmfValue, bits: number): number {
  return integer(value, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
}

function integer(value: QmfValue, min: number, max: number): number {
  const given = number(value)
  if (Number.isInteger(given) && given >= min && given <= max) return given
  throw new ProtocolError('BAD_NUMBER', `${given} where an integer from ${min} to ${max} is expected`)
}

function wide(value: QmfValue, truncate: (bits: number, value: bigint) => bigint): bigint {
  if (typeof value !== 'bigint') throw wrongType(value, 'a bigint')
  if (truncate(64, value) === value) return value
  throw new ProtocolError('BAD_NUMBER', `${value} does not fit into 64 bits`)
}

function number(value: QmfValue): number {
  if (typeof value === 'number') return value
  throw wrongType(value, 'a number')
}

function text(value: QmfValue): string {
  if (typeof value === 'string') return value
  throw wrongType(value, 'a text')
}

function boolean(value: QmfValue): boolean {
  if (typeof value === 'boolean') return value
  throw wrongType(value, 'a boolean')
}

function table(value: QmfValue): FieldTable {
  if (value instanceof Map) return value
  throw wrongType(value, 'a map')
}

function list(value: QmfValue): readonly FieldValue[] {
  if (Array.isArray(value)) return value
  throw wrongType(value, 'a list')
}

function wrongType(value: QmfValue, expected: string): ProtocolError {
  const given = Array.isArray(value) ? 'list' : typeof value
  return new ProtocolError('BAD_TYPE', `a ${given} where ${expected} is expected`)
}
