/**
 * Frames with what they say: `live` went between qpidd 1.40.0 and a console that wrote nothing but raw bytes, `derived` were
 * made with Apache's Python encoder. And frames built by hand, independent of our own encoder.
 */
import type { AmqpCommand, AmqpControl } from '../../../protocol/amqp/methods.ts'
import { hex, join } from '../../support/bytes.ts'
import { capturedChunks } from '../../support/qmf/capture.ts'

export interface FrameVector {
  readonly name: string
  readonly hex: string
  /** Not sync, channel 0. */
  readonly says: AmqpControl | AmqpCommand
}

const ascii = new TextEncoder()
const none = new Map()

export const live: readonly FrameVector[] = [
  {
    name: 'tune',
    hex: '0f000018000000000000000001050f00fffeffff00000078',
    says: {
      name: 'connection.tune',
      channelMax: 65534,
      maxFrameBytes: 65535,
      heartbeatMinSeconds: 0,
      heartbeatMaxSeconds: 120,
    },
  },
  {
    name: 'tune-ok',
    hex: '0f000016000000000000000001060700fffeffff0000',
    says: { name: 'connection.tune-ok', channelMax: 65534, maxFrameBytes: 65535, heartbeatSeconds: 0 },
  },
  {
    name: 'open',
    hex: '0f00001100000000000000000107010000',
    says: { name: 'connection.open', virtualHost: '' },
  },
  {
    name: 'open-ok',
    hex: '0f000019000000000000000001080100000000059500000000',
    says: { name: 'connection.open-ok', knownHosts: [] },
  },
  {
    name: 'attach',
    hex: '0f0000180000000000000000020101000006636f6e732d31',
    says: { name: 'session.attach', session: 'cons-1' },
  },
  {
    name: 'attached',
    hex: '0f0000180000000000000000020201000006636f6e732d31',
    says: { name: 'session.attached', session: 'cons-1' },
  },
  {
    name: 'declare',
    hex: '0f01001a0001000000000000080101003100077265706c792d31',
    says: { name: 'queue.declare', queue: 'reply-1', exclusive: true, autoDelete: true },
  },
  {
    name: 'bind',
    hex: '0f01002d0001000000000000070401000700077265706c792d310a616d712e646972656374077265706c792d31',
    says: { name: 'exchange.bind', queue: 'reply-1', exchange: 'amq.direct', key: 'reply-1' },
  },
  {
    name: 'subscribe',
    hex: '0f0100220001000000000000040701000f00077265706c792d310572646573740100',
    says: { name: 'message.subscribe', queue: 'reply-1', destination: 'rdest', acceptMode: 1, acquireMode: 0 },
  },
  { name: 'flush', hex: '0f0000100000000000000000020c0400', says: { name: 'session.flush', completed: true } },
  {
    name: 'completed',
    hex: '0f00001a0000000000000000020a0100000800000000000000e9',
    says: { name: 'session.completed', commands: [{ first: 0, last: 0xe9 }] },
  },
]

export const derived: readonly FrameVector[] = [
  {
    name: 'start-ok PLAIN',
    hex: '0f000034000000000000000001020f00000000040000000005504c41494e0000000c00677565737400677565737405656e5f5553',
    says: {
      name: 'connection.start-ok',
      clientProperties: none,
      mechanism: 'PLAIN',
      response: ascii.encode('\0guest\0guest'),
      locale: 'en_US',
    },
  },
  {
    name: 'tune-ok',
    hex: '0f0000160000000000000000010607007fffffff0000',
    says: { name: 'connection.tune-ok', channelMax: 32767, maxFrameBytes: 65535, heartbeatSeconds: 0 },
  },
  { name: 'heartbeat', hex: '0f0000100000000000000000010a0000', says: { name: 'connection.heartbeat' } },
  {
    name: 'command-point',
    hex: '0f00001c000000000000000002070300000000000000000000000000',
    says: { name: 'session.command-point', id: 0, offset: 0n },
  },
  {
    name: 'set-flow-mode',
    hex: '0f010019000100000000000004090100030005726465737401',
    says: { name: 'message.set-flow-mode', destination: 'rdest', mode: 1 },
  },
  {
    name: 'flow of bytes',
    hex: '0f01001d0001000000000000040a0100070005726465737401ffffffff',
    says: { name: 'message.flow', destination: 'rdest', unit: 1, amount: 0xffffffff },
  },
  {
    name: 'flow of messages',
    hex: '0f01001d0001000000000000040a0100070005726465737400000000c8',
    says: { name: 'message.flow', destination: 'rdest', unit: 0, amount: 200 },
  },
]

/** Written with a size of 0 where an empty map has one of 4 with a count of 0; we write the latter. */
export const liveStartOk = '0f000028000000000000000001020f000000000009414e4f4e594d4f55530000000005656e5f5553'

/** A transfer in three frames: an empty B from `reply-console-1`. */
export const derivedTransfer = {
  command: '0b01002200010000000000000401010001000f717069642e6d616e6167656d656e74',
  header:
    '0302005400010000000000000000000b040100020662726f6b65720000003504031800001d03000a616d712e6469726563740f7265706c792d636f6e736f6c652d3111782d6170706c69636174696f6e2f716d66',
  body: '070300140001000000000000414d324200000000',
}

export const HEADER = hex('414d51500101000a')
/** ANONYMOUS and PLAIN are offered. */
export const start = capturedChunks()
  .find(({ from }) => from === 'broker')!
  .bytes.subarray(8)

const utf8 = new TextEncoder()
const u16 = (value: number) => Uint8Array.of(value >> 8, value & 0xff)
const u32 = (value: number) => join(u16(value >>> 16), u16(value & 0xffff))
export const str8 = (text: string) => join(Uint8Array.of(text.length), utf8.encode(text))
export const str16 = (text: string) => join(u16(text.length), utf8.encode(text))

/** flags 8: first segment, 4: last segment, 2: first frame, 1: last frame. */
export function frame(flags: number, type: number, channel: number, payload: Uint8Array): Uint8Array {
  const sizes = join(u16(12 + payload.length), Uint8Array.of(0, type === 0 ? 0 : 1), u16(channel), u32(0))
  return join(Uint8Array.of(flags, type), sizes, payload)
}

/** `code`: class, method and packing flags, as they stand there. */
export function control(channel: number, code: string, ...fields: readonly Uint8Array[]): Uint8Array {
  return frame(0xf, 0, channel, join(hex(code), ...fields))
}
export function command(code: string, ...fields: readonly Uint8Array[]): Uint8Array {
  return frame(0xf, 1, 1, join(hex(code), ...fields))
}

export const offering = (...mechanisms: readonly string[]) => {
  const array = join(Uint8Array.of(0x95), u32(mechanisms.length), ...mechanisms.map(str16))
  return control(0, '01010200', u32(array.length), array)
}
export const tune = hex('0f000018000000000000000001050f00fffeffff00000078')
export const openOk = hex('0f000019000000000000000001080100000000059500000000')
export const attached = join(control(1, '02020100', str16('s-1')), control(1, '02070300', new Uint8Array(12)))

/** To the subscription `rdest`. */
export function transfer(body: Uint8Array, channel = 1): Uint8Array {
  return join(
    frame(0xb, 1, channel, hex('0401 0100 0700 05 7264657374 01 00')),
    frame(0x3, 2, channel, new Uint8Array(0)),
    frame(0x7, 3, channel, body),
  )
}
