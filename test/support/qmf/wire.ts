/**
 * AMQP 0-10 as a broker of tests reads and writes it: by hand, without our own codec, and only what a console of QMF and a
 * broker say to each other. Controls and commands are told apart by `class << 8 | method`.
 */
export const HEADER = Buffer.from('414d51500101000a', 'hex')

export const code = {
  start: 0x0101,
  startOk: 0x0102,
  secure: 0x0103,
  tune: 0x0105,
  tuneOk: 0x0106,
  open: 0x0107,
  openOk: 0x0108,
  heartbeat: 0x010a,
  close: 0x010b,
  closeOk: 0x010c,
  attach: 0x0201,
  attached: 0x0202,
  detached: 0x0204,
  commandPoint: 0x0207,
  completed: 0x020a,
  knownCompleted: 0x020b,
  flush: 0x020c,
  sync: 0x0301,
  exception: 0x0303,
  transfer: 0x0401,
  subscribe: 0x0407,
  setFlowMode: 0x0409,
  flow: 0x040a,
  bind: 0x0704,
  unbind: 0x0705,
  declare: 0x0801,
} as const

export const u8 = (value: number): Buffer => Buffer.of(value)
export function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
export const str8 = (text: string): Buffer => Buffer.concat([u8(Buffer.byteLength(text)), Buffer.from(text)])
export const str16 = (text: string): Buffer => Buffer.concat([u16(Buffer.byteLength(text)), Buffer.from(text)])

/** What came, whole. `args`: after the code, from the packing flags on. */
export interface Came {
  readonly isControl: boolean
  readonly channel: number
  readonly code: number
  readonly args: Args
  readonly header: Buffer
  readonly body: Buffer
}

/** Fields by their packing flags, one after the other: bit k of the flags says whether field k is there. */
export class Args {
  readonly #bytes: Buffer
  readonly #flags: number
  #at: number
  #field = 0

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes
    this.#flags = bytes.length >= at + 2 ? bytes.readUInt16LE(at) : 0
    this.#at = at + 2
  }

  str8(): string {
    return this.#sized(1).toString()
  }

  sized16(): Buffer {
    return this.#sized(2)
  }

  sized32(): Buffer {
    return this.#sized(4)
  }

  number(bytes: number): number {
    if (!this.#isThere()) return 0
    this.#at += bytes
    return this.#bytes.readUIntBE(this.#at - bytes, bytes)
  }

  skip(bytes: number): void {
    if (this.#isThere()) this.#at += bytes
  }

  /** Of a bit there is nothing but its flag. */
  bit(): boolean {
    return this.#isThere()
  }

  #sized(lengthBytes: number): Buffer {
    if (!this.#isThere()) return Buffer.alloc(0)
    const start = this.#at + lengthBytes
    this.#at = start + this.#bytes.readUIntBE(this.#at, lengthBytes)
    return this.#bytes.subarray(start, this.#at)
  }

  #isThere(): boolean {
    return (this.#flags & (1 << this.#field++)) !== 0
  }
}

/** Bytes of a client -> what it said. */
export class WireReader {
  /** The protocol header it began with, once it is there. */
  header: Buffer | undefined
  #rest: Buffer = Buffer.alloc(0)
  readonly #segments = new Map<string, Buffer>()

  #frame(frame: Buffer): Came | undefined {
    const [flags, type, channel] = [frame[0]!, frame[1]!, frame.readUInt16BE(6)]
    const before = this.#segments.get(`${channel} ${type}`)
    const isFirst = (flags & 2) !== 0
    if (isFirst === (before !== undefined)) throw new Error('a frame of a client does not go on where it should')
    this.#segments.set(`${channel} ${type}`, Buffer.concat([before ?? Buffer.alloc(0), frame.subarray(12)]))
    // 4: of the last segment; 1: its last frame.
    if ((flags & 5) !== 5) return undefined
    const [control, command, header, body] = [0, 1, 2, 3].map((one) => {
      const bytes = this.#segments.get(`${channel} ${one}`)
      this.#segments.delete(`${channel} ${one}`)
      return bytes ?? Buffer.alloc(0)
    }) as [Buffer, Buffer, Buffer, Buffer]
    const isControl = type === 0
    const method = isControl ? control : command
    // A command has a session header of two bytes before its arguments.
    const args = new Args(method, isControl ? 2 : 4)
    return { isControl, channel, code: method.readUInt16BE(0), args, header, body }
  }

  *push(chunk: Uint8Array): Generator<Came> {
    this.#rest = Buffer.concat([this.#rest, chunk])
    if (this.header === undefined) {
      if (this.#rest.length < 8) return
      this.header = this.#rest.subarray(0, 8)
      this.#rest = this.#rest.subarray(8)
    }
    while (this.#rest.length >= 12) {
      const size = this.#rest.readUInt16BE(2)
      if (this.#rest.length < size) return
      const frame = this.#rest.subarray(0, size)
      this.#rest = this.#rest.subarray(size)
      const came = this.#frame(frame)
      if (came !== undefined) yield came
    }
  }
}

/** A segment in frames of at most so many bytes. `place`: 8, the first of its command; 4, the last; both; or neither. */
export function frames(type: number, place: number, channel: number, payload: Buffer, most = 65_535): Buffer {
  const all: Buffer[] = []
  for (let at = 0; at === 0 || at < payload.length; at += most - 12) {
    const part = payload.subarray(at, at + most - 12)
    const isLast = at + part.length >= payload.length
    const flags = place | (at === 0 ? 2 : 0) | (isLast ? 1 : 0)
    all.push(u8(flags), u8(type), u16(12 + part.length), u8(0), u8(type === 0 ? 0 : 1), u16(channel), u32(0), part)
  }
  return Buffer.concat(all)
}

/** `packing`: two octets as they are on the wire, fields 0 to 7 in the first. */
export function control(code: number, packing: number, ...fields: readonly Buffer[]): Buffer {
  const channel = code >> 8 === 1 ? 0 : 1
  return frames(0, 12, channel, Buffer.concat([u16(code), u16(packing), ...fields]))
}

export function command(code: number, packing: number, ...fields: readonly Buffer[]): Buffer {
  return frames(1, 12, 1, Buffer.concat([u16(code), Buffer.of(1, 0), u16(packing), ...fields]))
}

export function struct(...parts: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(parts)
  return Buffer.concat([u32(bytes.length), bytes])
}

/**
 * A message to a subscription, with the header that qpidd sends: its properties, from the packing flags on, before those
 * of its delivery.
 */
export function transfer(
  destination: string,
  routingKey: string,
  body: Buffer,
  most?: number,
  properties: Buffer = Buffer.concat([u16(0x0100), u32(0), u32(body.length)]),
): Buffer {
  const method = [u16(code.transfer), Buffer.of(1, 0), u16(0x0700), str8(destination), Buffer.of(1, 0)]
  const header = [struct(u16(0x0403), properties), struct(u16(0x0401), u16(0x0002), str8(routingKey))]
  return Buffer.concat([
    frames(1, 8, 1, Buffer.concat(method), most),
    frames(2, 0, 1, Buffer.concat(header), most),
    frames(3, 4, 1, body, most),
  ])
}

/** Where an answer is to go: the routing key of reply-to in the header of a transfer; '' if there is none, or to another exchange. */
export function replyKeyOf(header: Buffer, exchange = 'amq.direct'): string {
  for (let at = 0; at + 6 <= header.length; at += 4 + header.readUInt32BE(at)) {
    if (header.readUInt16BE(at + 4) !== 0x0403) continue
    const args = new Args(header, at + 6)
    args.skip(8)
    args.skip(16)
    args.sized16()
    const reply = new Args(args.sized16())
    return reply.str8() === exchange ? reply.str8() : ''
  }
  return ''
}

/** The routing key of the delivery. */
export function routingKeyOf(header: Buffer): string {
  for (let at = 0; at + 6 <= header.length; at += 4 + header.readUInt32BE(at)) {
    if (header.readUInt16BE(at + 4) !== 0x0401) continue
    const args = new Args(header, at + 6)
    // Three bits, then priority, delivery mode, and three times.
    for (const bytes of [0, 0, 0, 1, 1, 8, 8, 8]) args.skip(bytes)
    args.str8()
    return args.str8()
  }
  return ''
}
