/**
 * Commands: what a session does. They are numbered, in each direction by itself, and completed.
 *
 *   uint8 class | uint8 method | uint8 1 | uint8 flags (bit 0: sync) | uint16 packing flags | fields
 */
import { Cursor } from './cursor.ts'
import { bit, map, str8, str16, uint8, uint16, uint32, uint64, vbin32 } from './fields.ts'
import { type MethodOf, MethodTable, type UnknownMethod } from './methods.ts'
import { Writer } from './writer.ts'

const methods = {
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

const table = new MethodTable(methods)

export type Command = MethodOf<typeof methods>

export const AcceptMode = { EXPLICIT: 0, NONE: 1 } as const
export const AcquireMode = { PRE_ACQUIRED: 0, NOT_ACQUIRED: 1 } as const
export const FlowMode = { CREDIT: 0, WINDOW: 1 } as const
export const CreditUnit = { MESSAGE: 0, BYTE: 1 } as const
export const UNLIMITED = 0xffff_ffff

/** `isSync`: whoever sent it wants to hear of its completion at once. */
export interface ReceivedCommand {
  readonly command: Command | UnknownMethod
  readonly isSync: boolean
}

/** Bytes behind the known fields are ignored. Throws ProtocolError. */
export function decodeCommand(bytes: Uint8Array): ReceivedCommand {
  const cursor = new Cursor(bytes)
  const code = cursor.uint16()
  const header = cursor.view(cursor.uint8())
  return { command: table.read(code, cursor), isSync: ((header[0] ?? 0) & 1) !== 0 }
}

/** Throws ProtocolError (TOO_LONG) where a text does not fit into its field. */
export function encodeCommand(command: Command, isSync = false): Uint8Array {
  const writer = new Writer(64)
  writer
    .uint16(table.codeOf(command))
    .uint8(1)
    .uint8(isSync ? 1 : 0)
  table.write(writer, command)
  return writer.bytes()
}

/** `queue.declare`, for people; undefined: it is not one of those above. */
export function commandName(classCode: number, commandCode: number): string | undefined {
  return table.nameOf((classCode << 8) | commandCode)
}
