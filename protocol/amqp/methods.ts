/**
 * Controls, commands and the structs in the header of a message.
 *
 *   control  uint8 class | uint8 method | packing flags | fields
 *   command  uint8 class | uint8 method | uint8 1 | uint8 flags (bit 0: sync) | packing flags | fields
 *   header   structs in any order: uint32 size | uint16 code | packing flags | fields
 *
 * Field k is present if bit k of the two bytes of packing flags is set; bits 0 to 7 are in the first byte. A `bit` has
 * no bytes of its own: its presence is its value. Names are ours, the order of fields is the specification's.
 */
import { AmqpReader, AmqpWriter } from './bytes.ts'
import { type FieldTable, readFieldArray, readFieldTable, readUuid, TypeCode, writeFieldTable } from './field-table.ts'

interface FieldCodec<T> {
  read(reader: AmqpReader): T
  write(writer: AmqpWriter, value: T): void
}
/** At most 16 fields. */
type Layout = Readonly<Record<string, FieldCodec<unknown>>>
/** A field is undefined if it is absent. */
type FieldValues<L extends Layout> = {
  readonly [K in keyof L]?: (L[K] extends FieldCodec<infer T> ? T : never) | undefined
}

/** A range of command numbers, which wrap at 2^32. Both ends are included. */
export interface SequenceRange {
  readonly first: number
  readonly last: number
}
/** The address for answers. */
export interface ReplyTo {
  readonly exchange: string
  readonly routingKey: string
}

const uint8: FieldCodec<number> = { read: (reader) => reader.uint8(), write: (writer, value) => writer.uint8(value) }
const uint16: FieldCodec<number> = { read: (reader) => reader.uint16(), write: (writer, value) => writer.uint16(value) }
const uint32: FieldCodec<number> = { read: (reader) => reader.uint32(), write: (writer, value) => writer.uint32(value) }
const uint64: FieldCodec<bigint> = { read: (reader) => reader.uint64(), write: (writer, value) => writer.uint64(value) }
const str8: FieldCodec<string> = { read: (reader) => reader.str8(), write: (writer, value) => writer.str8(value) }
/** Also for names and ids that are vbin16 in the specification: the bytes are the same. */
const str16: FieldCodec<string> = { read: (reader) => reader.str16(), write: (writer, value) => writer.str16(value) }
/** Also for a struct32, which has the same shape: its size, and bytes that are not read here. */
const vbin32: FieldCodec<Uint8Array> = {
  read: (reader) => reader.vbin32(),
  write: (writer, value) => writer.vbin32(value),
}
const uuid: FieldCodec<string> = { read: readUuid, write: (writer, value) => writer.hex(value.replaceAll('-', '')) }
const map: FieldCodec<FieldTable> = { read: (reader) => readFieldTable(reader), write: writeFieldTable }
const bit: FieldCodec<boolean> = { read: () => true, write: () => {} }
/** An array of texts; items of any other type are left out. */
const texts: FieldCodec<readonly string[]> = {
  read: (reader) => readFieldArray(reader).filter((item) => typeof item === 'string'),
  write: (writer, values) =>
    writer.sized32(() => {
      writer.uint8(TypeCode.STR16).uint32(values.length)
      for (const value of values) writer.str16(value)
    }),
}
const sequences: FieldCodec<readonly SequenceRange[]> = {
  read: (reader) =>
    reader.within(reader.uint16(), () => {
      const ranges: SequenceRange[] = []
      while (reader.remaining > 0) ranges.push({ first: reader.uint32(), last: reader.uint32() })
      return ranges
    }),
  write: (writer, ranges) =>
    writer.sized16(() => {
      for (const { first, last } of ranges) writer.uint32(first).uint32(last)
    }),
}
const replyToFields = { exchange: str8, routingKey: str8 }
/** A struct16: uint16 size | packing flags | fields. */
const replyTo: FieldCodec<ReplyTo> = {
  read: (reader) => {
    const { exchange = '', routingKey = '' } = reader.within(reader.uint16(), () => readFields(reader, replyToFields))
    return { exchange, routingKey }
  },
  write: (writer, value) => writer.sized16(() => writeFields(writer, replyToFields, { ...value })),
}

/** `code`: the class in the upper byte, the method in the lower one. */
type Methods = Readonly<Record<string, { readonly code: number; readonly fields: Layout }>>
type MethodOf<T extends Methods> = { [N in keyof T]: { readonly name: N } & FieldValues<T[N]['fields']> }[keyof T]

/** A method that is in no table. Only its code was read. */
export interface UnknownMethod {
  readonly name: 'unknown'
  readonly code: number
}

/** Controls set up connections and sessions. They are neither numbered nor completed. */
const controls = {
  'connection.start': { code: 0x0101, fields: { serverProperties: map, mechanisms: texts, locales: texts } },
  'connection.start-ok': {
    code: 0x0102,
    fields: { clientProperties: map, mechanism: str8, response: vbin32, locale: str8 },
  },
  'connection.secure': { code: 0x0103, fields: { challenge: vbin32 } },
  'connection.secure-ok': { code: 0x0104, fields: { response: vbin32 } },
  'connection.tune': {
    code: 0x0105,
    fields: { channelMax: uint16, maxFrameBytes: uint16, heartbeatMinSeconds: uint16, heartbeatMaxSeconds: uint16 },
  },
  'connection.tune-ok': {
    code: 0x0106,
    fields: { channelMax: uint16, maxFrameBytes: uint16, heartbeatSeconds: uint16 },
  },
  'connection.open': { code: 0x0107, fields: { virtualHost: str8, capabilities: texts, insist: bit } },
  'connection.open-ok': { code: 0x0108, fields: { knownHosts: texts } },
  'connection.redirect': { code: 0x0109, fields: { host: str16, knownHosts: texts } },
  'connection.heartbeat': { code: 0x010a, fields: {} },
  'connection.close': { code: 0x010b, fields: { code: uint16, text: str8 } },
  'connection.close-ok': { code: 0x010c, fields: {} },
  'session.attach': { code: 0x0201, fields: { session: str16, force: bit } },
  'session.attached': { code: 0x0202, fields: { session: str16 } },
  'session.detach': { code: 0x0203, fields: { session: str16 } },
  'session.detached': { code: 0x0204, fields: { session: str16, code: uint8 } },
  'session.request-timeout': { code: 0x0205, fields: { seconds: uint32 } },
  'session.timeout': { code: 0x0206, fields: { seconds: uint32 } },
  'session.command-point': { code: 0x0207, fields: { id: uint32, offset: uint64 } },
  'session.completed': { code: 0x020a, fields: { commands: sequences, timelyReply: bit } },
  'session.known-completed': { code: 0x020b, fields: { commands: sequences } },
  'session.flush': { code: 0x020c, fields: { expected: bit, confirmed: bit, completed: bit } },
} as const
export type AmqpControl = MethodOf<typeof controls>

/** Commands do the work of a session. Each direction numbers and completes them by itself. */
const commands = {
  'execution.sync': { code: 0x0301, fields: {} },
  'execution.result': { code: 0x0302, fields: { command: uint32, value: vbin32 } },
  'execution.exception': {
    code: 0x0303,
    fields: {
      code: uint16,
      command: uint32,
      classCode: uint8,
      commandCode: uint8,
      fieldIndex: uint8,
      text: str16,
      details: map,
    },
  },
  'message.transfer': { code: 0x0401, fields: { destination: str8, acceptMode: uint8, acquireMode: uint8 } },
  'message.subscribe': {
    code: 0x0407,
    fields: {
      queue: str8,
      destination: str8,
      acceptMode: uint8,
      acquireMode: uint8,
      exclusive: bit,
      resumeId: str16,
      resumeTtl: uint64,
      arguments: map,
    },
  },
  'message.cancel': { code: 0x0408, fields: { destination: str8 } },
  'message.set-flow-mode': { code: 0x0409, fields: { destination: str8, mode: uint8 } },
  'message.flow': { code: 0x040a, fields: { destination: str8, unit: uint8, amount: uint32 } },
  'exchange.bind': { code: 0x0704, fields: { queue: str8, exchange: str8, key: str8, arguments: map } },
  'exchange.unbind': { code: 0x0705, fields: { queue: str8, exchange: str8, key: str8 } },
  'queue.declare': {
    code: 0x0801,
    fields: {
      queue: str8,
      alternateExchange: str8,
      passive: bit,
      durable: bit,
      exclusive: bit,
      autoDelete: bit,
      arguments: map,
    },
  },
  'queue.delete': { code: 0x0802, fields: { queue: str8, ifUnused: bit, ifEmpty: bit } },
} as const
export type AmqpCommand = MethodOf<typeof commands>

export const AcceptMode = { EXPLICIT: 0, NONE: 1 } as const
export const AcquireMode = { PRE_ACQUIRED: 0, NOT_ACQUIRED: 1 } as const
export const FlowMode = { CREDIT: 0, WINDOW: 1 } as const
export const CreditUnit = { MESSAGE: 0, BYTE: 1 } as const
export const UNLIMITED = 0xffff_ffff

const controlNames = namesByCode(controls)
const commandNames = namesByCode(commands)

/** Ignores bytes after the known fields. Throws ProtocolError. */
export function decodeControl(bytes: Uint8Array): AmqpControl | UnknownMethod {
  const reader = new AmqpReader(bytes)
  const code = reader.uint16()
  const name = controlNames.get(code)
  if (name === undefined) return { name: 'unknown', code }
  return { name, ...readFields(reader, controls[name].fields) } as AmqpControl
}

/** Throws ProtocolError (TOO_LONG) if a text does not fit into its field. */
export function encodeControl(control: AmqpControl): Uint8Array {
  const { code, fields } = controls[control.name]
  return writeFields(new AmqpWriter(64).uint16(code), fields, control).bytes()
}

/** `isSync`: the sender asks for completion at once. Ignores bytes after the known fields. Throws ProtocolError. */
export function decodeCommand(bytes: Uint8Array): {
  readonly command: AmqpCommand | UnknownMethod
  readonly isSync: boolean
} {
  const reader = new AmqpReader(bytes)
  const code = reader.uint16()
  const [flags = 0] = reader.view(reader.uint8())
  const isSync = (flags & 1) !== 0
  const name = commandNames.get(code)
  if (name === undefined) return { command: { name: 'unknown', code }, isSync }
  return { command: { name, ...readFields(reader, commands[name].fields) } as AmqpCommand, isSync }
}

/** Throws ProtocolError (TOO_LONG) if a text does not fit into its field. */
export function encodeCommand(command: AmqpCommand, isSync = false): Uint8Array {
  const { code, fields } = commands[command.name]
  const writer = new AmqpWriter(64).uint16(code).uint8(1)
  return writeFields(writer.uint8(isSync ? 1 : 0), fields, command).bytes()
}

/** Returns a name like `queue.declare`, undefined for a command that is not in the table. */
export function amqpCommandName(classCode: number, commandCode: number): string | undefined {
  return commandNames.get((classCode << 8) | commandCode)
}

const DELIVERY_PROPERTIES = 0x0401
const MESSAGE_PROPERTIES = 0x0403
const deliveryFields = {
  discardUnroutable: bit,
  immediate: bit,
  redelivered: bit,
  priority: uint8,
  deliveryMode: uint8,
  ttl: uint64,
  timestamp: uint64,
  expiration: uint64,
  exchange: str8,
  routingKey: str8,
  resumeId: str16,
  resumeTtl: uint64,
}
const messageFields = {
  contentLength: uint64,
  messageId: uuid,
  correlationId: str16,
  replyTo,
  contentType: str8,
  contentEncoding: str8,
  userId: str16,
  appId: str16,
  headers: map,
}

export interface MessageHeader {
  readonly delivery: FieldValues<typeof deliveryFields>
  readonly message: FieldValues<typeof messageFields>
}

/** Skips structs of other codes. qpidd sends its structs in another order than it takes them. Throws ProtocolError. */
export function decodeHeader(bytes: Uint8Array): MessageHeader {
  const reader = new AmqpReader(bytes)
  let header: MessageHeader = { delivery: {}, message: {} }
  while (reader.remaining > 0) {
    const struct = new AmqpReader(reader.view(reader.uint32()))
    const code = struct.uint16()
    if (code === DELIVERY_PROPERTIES) header = { ...header, delivery: readFields(struct, deliveryFields) }
    else if (code === MESSAGE_PROPERTIES) header = { ...header, message: readFields(struct, messageFields) }
  }
  return header
}

/** Throws ProtocolError (TOO_LONG) if a text does not fit into its field. */
export function encodeHeader({ delivery, message }: MessageHeader): Uint8Array {
  const writer = new AmqpWriter(128)
  writer.sized32(() => writeFields(writer.uint16(DELIVERY_PROPERTIES), deliveryFields, delivery))
  writer.sized32(() => writeFields(writer.uint16(MESSAGE_PROPERTIES), messageFields, message))
  return writer.bytes()
}

function namesByCode<T extends Methods>(methods: T): ReadonlyMap<number, keyof T> {
  return new Map(Object.entries(methods).map(([name, { code }]) => [code, name]))
}

/** Ignores flags of fields after those of the layout, and does not read the bytes of such fields. */
function readFields<L extends Layout>(reader: AmqpReader, layout: L): FieldValues<L> {
  const present = reader.uint8() | (reader.uint8() << 8)
  const values: Record<string, unknown> = {}
  for (const [k, [name, field]] of Object.entries(layout).entries()) {
    if ((present & (1 << k)) !== 0) values[name] = field.read(reader)
  }
  return values as FieldValues<L>
}

function writeFields(writer: AmqpWriter, layout: Layout, values: Readonly<Record<string, unknown>>): AmqpWriter {
  const isPresent = (name: string): boolean => values[name] !== undefined && values[name] !== false
  const flags = Object.keys(layout).reduce((sum, name, k) => sum | (isPresent(name) ? 1 << k : 0), 0)
  writer.uint8(flags & 0xff).uint8(flags >> 8)
  for (const [name, field] of Object.entries(layout)) if (isPresent(name)) field.write(writer, values[name])
  return writer
}
