/**
 * QMF v2 messages and their bytes, for consoles. The header of an AMQP message says what its body is: a map, or a list
 * of maps, which describe themselves. A part that cannot be read costs its message and no other.
 *
 *   message  app-id `qmf2` | headers qmf.opcode, qmf.content, qmf.agent, perhaps partial | map or list
 *   object   _object_id | _schema_id | _values | perhaps _update_ts, _create_ts, _delete_ts
 *   event    _schema_id | _severity | _timestamp | _values
 *
 * The name of an object may be anything: consoles compare it and send it back, and never take it apart; nor routing
 * keys, which senders write in different ways.
 */
import { AmqpReader, AmqpWriter } from '../../amqp/bytes.ts'
import type { AmqpTransfer } from '../../amqp/client.ts'
import { type FieldTable, readFieldTable, TypeCode } from '../../amqp/field-table.ts'
import type { AmqpDelivery } from '../../amqp/session.ts'
import { ProtocolError } from '../../errors.ts'
import { MAX_BODY_BYTES, MAX_MESSAGES } from '../messages.ts'
import { inputsOf } from '../schema.ts'
import { type ClassKey, QmfType, type QmfValue, type Schema, type SchemaMethod } from '../types.ts'
import { MapItem } from './item.ts'
import { type ClassId, MAX_MAP_NAME, readClassId, readMapSchema } from './schema.ts'
import { OBJECT_NAME, writeMapValue } from './values.ts'

/** The app-id of every message. */
export const MAP_APP_ID = 'qmf2'
/** The exchange of indications, and of the requests to all agents. */
export const TOPIC_EXCHANGE = 'qmf.default.topic'
/** The exchange of the requests to one agent. */
export const DIRECT_EXCHANGE = 'qmf.default.direct'
/** The limit for the name of an object, which repeats the names of others, in UTF-16 units. */
export const MAX_OBJECT_NAME = 4096
/** The limit for the text of an exception, in UTF-16 units. */
const MAX_EXCEPTION_TEXT = 65_536

/** Only the name and the agent tell objects apart: answers repeat an id as it was asked for. */
export interface ObjectAddress {
  readonly name: string
  readonly agent?: string
  /** The run of the agent that made the object; absent if the object outlives it. */
  readonly epoch?: bigint
}

/** Times are nanoseconds since 1970; they are absent from agents that do not keep them. */
export interface MapObject {
  /** Absent for an object of an agent that has gone. */
  readonly id?: ObjectAddress
  readonly key: ClassKey
  readonly sampled?: bigint
  readonly created?: bigint
  /** 0 while the object exists. */
  readonly deleted: bigint
  readonly values: FieldTable
}

export interface MapEvent {
  readonly key: ClassKey
  /** Nanoseconds since 1970. */
  readonly time: bigint
  readonly severity: number
  readonly values: FieldTable
}

export interface AgentStatus {
  /** `<vendor>:<product>:<instance>`, which is also the routing key of requests to it. */
  readonly name: string
  /** Nanoseconds since 1970. */
  readonly time: bigint
  /** The interval of its heartbeats in seconds. */
  readonly interval: number
  /** Counts the runs of the agent. */
  readonly epoch: bigint
}

/** The messages that a console understands. */
export type MapMessage = {
  /** The name of the sender, `broker` in most answers of a broker, '' if it is not given. */
  readonly agent: string
  /** As the request had it. Indications have none, nor have some agents' answers to `locate`. */
  readonly correlationId?: string
} & (
  | { readonly op: 'located' | 'heartbeat'; readonly status: AgentStatus }
  /** Objects and events are decoded when they are iterated, once, which throws ProtocolError. */
  | { readonly op: 'data'; readonly objects: Iterable<MapObject> }
  | { readonly op: 'event'; readonly events: Iterable<MapEvent> }
  /** `isPartial`: more of the same answer follows. */
  | { readonly op: 'objects'; readonly objects: Iterable<MapObject>; readonly isPartial: boolean }
  | { readonly op: 'classes'; readonly classes: readonly ClassId[]; readonly isPartial: boolean }
  | { readonly op: 'schemas'; readonly schemas: readonly Schema[]; readonly isPartial: boolean }
  /** The arguments with direction O and IO. */
  | { readonly op: 'result'; readonly arguments: FieldTable }
  /** `code`: a QmfStatus, or whatever the program of an agent chose; some send none. */
  | { readonly op: 'exception'; readonly code?: bigint; readonly text: string }
)

export type MapRequest =
  /** Asks all agents for their status, and has the broker send all its objects at its next interval. */
  | { readonly op: 'locate' }
  /** Asks for the objects of a class. */
  | { readonly op: 'class'; readonly agent: string; readonly packageName: string; readonly className: string }
  | { readonly op: 'object'; readonly agent: string; readonly id: ObjectAddress }
  /** Asks for the classes of an agent; a broker refuses this and the next one. */
  | { readonly op: 'classes'; readonly agent: string }
  | ({ readonly op: 'schema'; readonly agent: string } & ClassId)
  | {
      readonly op: 'call'
      readonly agent: string
      readonly id: ObjectAddress
      readonly method: SchemaMethod
      /** The arguments with direction I or IO, in the order of the schema. */
      readonly arguments: readonly QmfValue[]
    }

/** A message as `AmqpClient.transfer` takes it. */
export interface MapTransfer {
  readonly transfer: AmqpTransfer
  readonly body: Uint8Array
}

/** Whence a request comes; the answer repeats the correlation id. */
export type MapReturn = Required<Pick<AmqpTransfer, 'correlationId' | 'replyTo'>>

/** Of the requests that are no queries. */
const opcodes: Readonly<Partial<Record<MapRequest['op'], string>>> = {
  locate: '_agent_locate_request',
  call: '_method_request',
}

/**
 * Returns undefined for a message that a console has no use for: requests, and opcodes and contents that are not known.
 * Keeps no view of the body, the length of which the connection limits. Throws ProtocolError.
 */
export function decodeMapMessage(
  delivery: Pick<AmqpDelivery, 'correlationId' | 'headers' | 'body'>,
): MapMessage | undefined {
  const { correlationId, headers, body } = delivery
  const agent = new MapItem(headers, 0).text('qmf.agent', MAX_MAP_NAME) ?? ''
  const sender = { agent, ...(correlationId !== undefined && { correlationId }) }
  const reader = new AmqpReader(body)
  const isPartial = headers.has('partial')
  switch (headers.get('qmf.opcode')) {
    case '_agent_locate_response':
      return { ...sender, op: 'located', status: readStatus(reader) }
    case '_agent_heartbeat_indication':
      return { ...sender, op: 'heartbeat', status: readStatus(reader) }
    case '_method_response':
      return { ...sender, op: 'result', arguments: readResult(reader) }
    case '_exception':
      return { ...sender, op: 'exception', ...readException(reader) }
    case '_data_indication':
      switch (headers.get('qmf.content')) {
        case '_data':
          return { ...sender, op: 'data', objects: readItems(reader, readObject) }
        case '_event':
          return { ...sender, op: 'event', events: readItems(reader, readEvent) }
      }
      break
    case '_query_response':
      switch (headers.get('qmf.content')) {
        case '_data':
          return { ...sender, op: 'objects', objects: readItems(reader, readObject), isPartial }
        case '_schema_id':
          return { ...sender, op: 'classes', classes: [...readItems(reader, readClassId)], isPartial }
        case '_schema':
          return { ...sender, op: 'schemas', schemas: [...readItems(reader, readMapSchema)], isPartial }
      }
  }
  return undefined
}

/**
 * Throws ProtocolError if an argument does not fit its method (see `writeMapValue`), or if the body is longer than a
 * broker takes (TOO_LONG), which would leave it unanswered.
 */
export function encodeMapRequest(request: MapRequest, origin: MapReturn): MapTransfer {
  const writer = new AmqpWriter()
  if (request.op === 'locate') writer.sized32(() => writer.uint32(0))
  else writeMap(writer, entriesOf(request))
  if (writer.length > MAX_BODY_BYTES) {
    throw new ProtocolError('TOO_LONG', `a request of ${writer.length} bytes, where a broker takes ${MAX_BODY_BYTES}`)
  }
  const to =
    request.op === 'locate'
      ? { exchange: TOPIC_EXCHANGE, routingKey: 'console.request.agent_locate', contentType: 'amqp/list' }
      : { exchange: DIRECT_EXCHANGE, routingKey: request.agent, contentType: 'amqp/map' }
  const opcode = opcodes[request.op] ?? '_query_request'
  const headers = new Map([
    ['method', 'request'],
    ['qmf.opcode', opcode],
  ])
  return { transfer: { ...to, ...origin, appId: MAP_APP_ID, headers }, body: writer.bytes() }
}

function readBody(reader: AmqpReader): MapItem {
  const table = readFieldTable(reader)
  reader.finish()
  return new MapItem(table, 0)
}

/** Reads a list of maps. The size of the list has to be that of the body. */
function* readItems<T>(reader: AmqpReader, read: (item: MapItem) => T): Generator<T, void> {
  const size = reader.uint32()
  const { remaining, offset } = reader
  if (size !== remaining) {
    const isShort = size > remaining
    const text = `a list of ${size} bytes, where ${remaining} are left`
    throw new ProtocolError(isShort ? 'TRUNCATED' : 'TRAILING_BYTES', text, isShort ? offset : offset + size)
  }
  if (size === 0) return
  const count = reader.uint32()
  for (let left = count; left > 0; left--) {
    const at = reader.offset
    if (count - left === MAX_MESSAGES) {
      throw new ProtocolError('BAD_COUNT', `more than ${MAX_MESSAGES} items in one body`, at)
    }
    if (reader.uint8() !== TypeCode.MAP) throw new ProtocolError('BAD_TYPE', 'an item that is not a map', at)
    reader.nestedItems = 0
    yield read(new MapItem(readFieldTable(reader, 1), at))
  }
  reader.finish()
}

function readStatus(reader: AmqpReader): AgentStatus {
  const values = readBody(reader).item('_values')
  return {
    name: values.name('_name', MAX_MAP_NAME),
    time: values.integer('_timestamp'),
    interval: Number(values.integer('_heartbeat_interval')),
    epoch: values.optionalInteger('_epoch') ?? 0n,
  }
}

function readResult(reader: AmqpReader): FieldTable {
  const body = readBody(reader)
  return body.has('_arguments') ? body.map('_arguments') : new Map()
}

function readException(reader: AmqpReader): { readonly code?: bigint; readonly text: string } {
  const values = readBody(reader).item('_values')
  const code = values.optionalInteger('error_code')
  return { ...(code !== undefined && { code }), text: values.text('error_text', MAX_EXCEPTION_TEXT) ?? '' }
}

function readObject(item: MapItem): MapObject {
  const id = item.has('_object_id') ? readObjectAddress(item.item('_object_id')) : undefined
  const sampled = item.optionalInteger('_update_ts')
  const created = item.optionalInteger('_create_ts')
  return {
    ...(id && { id }),
    key: readClassId(item.item('_schema_id')).key,
    ...(sampled !== undefined && { sampled }),
    ...(created !== undefined && { created }),
    deleted: item.optionalInteger('_delete_ts') ?? 0n,
    values: item.map('_values'),
  }
}

function readObjectAddress(id: MapItem): ObjectAddress {
  const agent = id.text('_agent_name', MAX_MAP_NAME)
  const epoch = id.optionalInteger('_agent_epoch')
  const name = id.name(OBJECT_NAME, MAX_OBJECT_NAME)
  return { name, ...(agent !== undefined && { agent }), ...(epoch !== undefined && { epoch }) }
}

function readEvent(item: MapItem): MapEvent {
  return {
    key: readClassId(item.item('_schema_id')).key,
    time: item.integer('_timestamp'),
    severity: Number(item.integer('_severity')),
    values: item.map('_values'),
  }
}

/** An entry of a map that is sent, with what writes its type code and value. */
type MapEntry = readonly [key: string, write: (writer: AmqpWriter) => void]

function writeMap(writer: AmqpWriter, entries: readonly MapEntry[]): void {
  writer.sized32(() => {
    writer.uint32(entries.length)
    for (const [key, write] of entries) write(writer.str8(key))
  })
}

function entriesOf(request: Exclude<MapRequest, { op: 'locate' }>): readonly MapEntry[] {
  switch (request.op) {
    case 'class': {
      const id = [text('_package_name', request.packageName), text('_class_name', request.className)]
      return [text('_what', 'OBJECT'), map('_schema_id', id)]
    }
    case 'object':
      return [text('_what', 'OBJECT'), address(request.id)]
    case 'classes':
      return [text('_what', 'SCHEMA_ID')]
    case 'schema': {
      const { packageName, className, hash } = request.key
      const uuid = hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
      const id = [
        text('_package_name', packageName),
        text('_class_name', className),
        text('_type', request.kind === 'table' ? '_data' : '_event'),
        entry('_hash', QmfType.UUID, uuid),
      ]
      return [text('_what', 'SCHEMA'), map('_schema_id', id)]
    }
    case 'call': {
      const inputs = inputsOf(request.method)
      if (request.arguments.length !== inputs.length) {
        const given = `${request.arguments.length} arguments for ${inputs.length} of "${request.method.name}"`
        throw new ProtocolError('BAD_COUNT', given)
      }
      const values = inputs.map(({ name, type }, i) => entry(name, type, request.arguments[i]!))
      return [address(request.id), text('_method_name', request.method.name), map('_arguments', values)]
    }
  }
}

function address({ name, agent, epoch }: ObjectAddress): MapEntry {
  return map('_object_id', [
    text(OBJECT_NAME, name),
    ...(agent === undefined ? [] : [text('_agent_name', agent)]),
    ...(epoch === undefined ? [] : [entry('_agent_epoch', QmfType.UINT64, epoch)]),
  ])
}

function entry(key: string, type: QmfType, value: QmfValue): MapEntry {
  return [key, (writer) => writeMapValue(writer, type, value)]
}

function text(key: string, value: string): MapEntry {
  return entry(key, QmfType.LONG_STRING, value)
}

function map(key: string, entries: readonly MapEntry[]): MapEntry {
  return [key, (writer) => writeMap(writer.uint8(TypeCode.MAP), entries)]
}
