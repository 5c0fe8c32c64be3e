/**
 * Controls: what a connection and the attaching of a session take. They have no numbers and are not completed.
 *
 *   uint8 class | uint8 method | uint16 packing flags | fields
 */
import { Cursor } from './cursor.ts'
import { bit, map, sequences, str8, str16, texts, uint8, uint16, uint32, uint64, vbin32 } from './fields.ts'
import { type MethodOf, MethodTable, type UnknownMethod } from './methods.ts'
import { Writer } from './writer.ts'

const methods = {
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

const table = new MethodTable(methods)

export type Control = MethodOf<typeof methods>

/** Bytes behind the known fields are ignored. Throws ProtocolError. */
export function decodeControl(bytes: Uint8Array): Control | UnknownMethod {
  const cursor = new Cursor(bytes)
  return table.read(cursor.uint16(), cursor)
}

/** Throws ProtocolError (TOO_LONG) where a text does not fit into its field. */
export function encodeControl(control: Control): Uint8Array {
  const writer = new Writer(64)
  table.write(writer.uint16(table.codeOf(control)), control)
  return writer.bytes()
}
