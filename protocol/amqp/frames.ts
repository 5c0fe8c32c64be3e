/**
 * The bytes of a connection: the protocol header, then frames, which are assembled into whole controls and commands.
 *
 *   header  `AMQP`, then `1 1 0 10` for 0-10
 *   frame   uint8 flags | uint8 type | uint16 size, with these 12 bytes | uint8 0 | uint8 track | uint16 channel | uint32 0
 *
 * A control or command has up to three segments (the method, header and body), each of one or more frames. A newcomer's
 * mistake: every frame of the first or last *segment* has its flag, but the first or last *frame* flag stands in one
 * only.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'
import { AmqpWriter } from './bytes.ts'

export const PROTOCOL_HEADER: Uint8Array = Uint8Array.of(0x41, 0x4d, 0x51, 0x50, 1, 1, 0, 10)
/** Every peer accepts frames of this size before a size is agreed on. */
export const MIN_MAX_FRAME_BYTES = 4096

const SegmentType = { CONTROL: 0, COMMAND: 1, HEADER: 2, BODY: 3 } as const
const FRAME_HEADER_BYTES = 12
const FIRST_SEGMENT = 8
const LAST_SEGMENT = 4
const FIRST_FRAME = 2
const LAST_FRAME = 1
/** The limit for a control, a command or a header segment. */
const MAX_METHOD_BYTES = 65_536
/** The limit for controls and commands that have begun and not ended, on all channels. */
const MAX_INCOMPLETE = 4

/** One control or command. The receiver may keep the bytes. */
export interface Assembly {
  readonly channel: number
  readonly isControl: boolean
  readonly method: Uint8Array
  readonly header?: Uint8Array | undefined
  readonly body?: Uint8Array | undefined
}

/** A control or command that has begun and not ended: its segments by type, and the type of the last one. */
interface Incomplete {
  readonly segments: Map<number, Segment>
  type: number
  isSegmentComplete: boolean
}

/**
 * Collects the protocol header of the server, cut anywhere. A server of another version answers with its own and
 * closes.
 */
export class HeaderReader {
  readonly #bytes = new Uint8Array(PROTOCOL_HEADER.length)
  #length = 0

  /** Returns the number of bytes it used. Throws ProtocolError as soon as they cannot be AMQP of any version. */
  push(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.#bytes.length - this.#length)
    for (let i = 0; i < count; i++) {
      const byte = bytes[i]!
      if (this.#length < 4 && byte !== PROTOCOL_HEADER[this.#length]) {
        throw new ProtocolError('UNKNOWN_MESSAGE', 'the server does not speak AMQP', this.#length)
      }
      this.#bytes[this.#length++] = byte
    }
    return count
  }

  get isComplete(): boolean {
    return this.#length === this.#bytes.length
  }

  /** The name of another version, undefined if it is 0-10. */
  get otherVersion(): string | undefined {
    const bytes = this.#bytes
    if (PROTOCOL_HEADER.every((byte, i) => byte === bytes[i])) return undefined
    const [id, ...version] = bytes.subarray(4)
    // 0-9 and older send `1 1` and two numbers; 0-9-1 and 1.0 send a protocol id (0: AMQP, 3: SASL) and three numbers.
    return `AMQP ${(id === 1 ? version.slice(1) : version).join('-')}`
  }
}

export class FrameAssembler {
  readonly #maxBodyBytes: number
  readonly #incomplete = new Map<number, Incomplete>()
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES)
  readonly #view = new DataView(this.#header.buffer)
  #headerBytes = 0
  #payload: Uint8Array | undefined
  #payloadBytes = 0
  #chunk: Uint8Array = new Uint8Array(0)
  #at = 0
  /** The position of the chunk in the stream. */
  #start = 0

  /** A longer body is a ProtocolError. */
  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
  }

  /** Adds the next bytes of the stream. Call `next` afterwards until it returns undefined. */
  push(chunk: Uint8Array): void {
    this.#start += this.#chunk.length
    this.#chunk = chunk
    this.#at = 0
  }

  /** Returns the next complete control or command. Throws ProtocolError, and must not be called again then. */
  next(): Assembly | undefined {
    while (this.#at < this.#chunk.length) {
      if (this.#payload === undefined) {
        this.#headerBytes += this.#fill(this.#header, this.#headerBytes)
        if (this.#headerBytes < FRAME_HEADER_BYTES) return undefined
        this.#payload = new Uint8Array(this.#frameSize() - FRAME_HEADER_BYTES)
      }
      this.#payloadBytes += this.#fill(this.#payload, this.#payloadBytes)
      if (this.#payloadBytes < this.#payload.length) return undefined
      const payload = this.#payload
      this.#headerBytes = this.#payloadBytes = 0
      this.#payload = undefined
      const assembly = this.#addFrame(payload)
      if (assembly) return assembly
    }
    return undefined
  }

  /** Copies what `target` still needs from the chunk and returns the number of bytes. */
  #fill(target: Uint8Array, filled: number): number {
    const count = Math.min(target.length - filled, this.#chunk.length - this.#at)
    target.set(this.#chunk.subarray(this.#at, this.#at + count), filled)
    this.#at += count
    return count
  }

  #frameSize(): number {
    const flags = this.#view.getUint8(0)
    const size = this.#view.getUint16(2)
    if (flags > 0xf) this.#fail('BAD_NUMBER', `a frame with the flags 0x${flags.toString(16)}`)
    if (size < FRAME_HEADER_BYTES) this.#fail('FRAME_TOO_SHORT', `a frame of ${size} bytes; the least is 12`)
    return size
  }

  #addFrame(payload: Uint8Array): Assembly | undefined {
    const flags = this.#view.getUint8(0)
    const type = this.#view.getUint8(1)
    const channel = this.#view.getUint16(6)
    const key = (channel << 4) | (this.#view.getUint8(5) & 0xf)
    if (type > SegmentType.BODY) this.#fail('BAD_TYPE', `a frame of the type ${type}; they are 0 to 3`)
    const incomplete = this.#incompleteOf(key, flags, type)
    const segment = incomplete.segments.get(type)!
    if (!segment.append(payload)) this.#fail('TOO_LONG', `a segment of more than ${segment.maxBytes} bytes`)
    if ((flags & LAST_FRAME) === 0) return undefined
    incomplete.isSegmentComplete = true
    if ((flags & LAST_SEGMENT) === 0) return undefined
    this.#incomplete.delete(key)
    const bytes = (type: number) => incomplete.segments.get(type)?.bytes()
    const control = bytes(SegmentType.CONTROL)
    return {
      channel,
      isControl: control !== undefined,
      method: control ?? bytes(SegmentType.COMMAND)!,
      header: bytes(SegmentType.HEADER),
      body: bytes(SegmentType.BODY),
    }
  }

  /** Returns the control or command that a frame begins or continues. */
  #incompleteOf(key: number, flags: number, type: number): Incomplete {
    const isFirstSegment = (flags & FIRST_SEGMENT) !== 0
    const isFirstFrame = (flags & FIRST_FRAME) !== 0
    const known = this.#incomplete.get(key)
    if (isFirstSegment && isFirstFrame) {
      if (known) this.#fail('UNKNOWN_MESSAGE', 'a control or command begins before the previous one has ended')
      if (type > SegmentType.COMMAND) this.#fail('BAD_TYPE', `begins with a segment of the type ${type}`)
      if (this.#incomplete.size === MAX_INCOMPLETE) {
        this.#fail('BAD_COUNT', `more than ${MAX_INCOMPLETE} commands have begun`)
      }
      const begun = { segments: new Map([[type, new Segment(MAX_METHOD_BYTES)]]), type, isSegmentComplete: false }
      this.#incomplete.set(key, begun)
      return begun
    }
    if (!known) return this.#fail('UNKNOWN_MESSAGE', 'a frame continues a control or command that has not begun')
    if (isFirstFrame) {
      if (!known.isSegmentComplete || type <= known.type || known.type === SegmentType.CONTROL) {
        this.#fail('BAD_TYPE', `a segment of the type ${type} after one of the type ${known.type}`)
      }
      known.segments.set(type, new Segment(type === SegmentType.BODY ? this.#maxBodyBytes : MAX_METHOD_BYTES))
      known.type = type
      known.isSegmentComplete = false
    } else if (known.isSegmentComplete || type !== known.type) {
      this.#fail('UNKNOWN_MESSAGE', 'a frame continues a segment that has not begun')
    }
    return known
  }

  #fail(code: ProtocolErrorCode, message: string): never {
    throw new ProtocolError(code, message, this.#start + this.#at)
  }
}

/** Collects the frames of a segment. A single frame is kept as it is; for more, the buffer grows as bytes arrive. */
class Segment {
  readonly maxBytes: number
  #bytes: Uint8Array = new Uint8Array(0)
  #length = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** Returns false, without adding anything, if the segment would get too long. Keeps the payload. */
  append(payload: Uint8Array): boolean {
    const length = this.#length + payload.length
    if (length > this.maxBytes) return false
    if (this.#length === 0) {
      this.#bytes = payload
    } else {
      if (length > this.#bytes.length) {
        const grown = new Uint8Array(Math.min(Math.max(length, 2 * this.#bytes.length), this.maxBytes))
        grown.set(this.#bytes.subarray(0, this.#length))
        this.#bytes = grown
      }
      this.#bytes.set(payload, this.#length)
    }
    this.#length = length
    return true
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }
}

/** Encodes the frames of one control or command, none longer than `maxFrameBytes`. */
export function encodeFrames(assembly: Assembly, maxFrameBytes: number): Uint8Array {
  const { channel, isControl, method, header, body } = assembly
  const segments: (readonly [type: number, bytes: Uint8Array])[] = []
  segments.push([isControl ? SegmentType.CONTROL : SegmentType.COMMAND, method])
  if (header) segments.push([SegmentType.HEADER, header])
  if (body) segments.push([SegmentType.BODY, body])
  const writer = new AmqpWriter(method.length + (header?.length ?? 0) + (body?.length ?? 0) + 64)
  const maxPayload = maxFrameBytes - FRAME_HEADER_BYTES
  for (const [i, [type, bytes]] of segments.entries()) {
    const segmentFlags = (i === 0 ? FIRST_SEGMENT : 0) | (i === segments.length - 1 ? LAST_SEGMENT : 0)
    let start = 0
    do {
      const end = Math.min(start + maxPayload, bytes.length)
      const flags = segmentFlags | (start === 0 ? FIRST_FRAME : 0) | (end === bytes.length ? LAST_FRAME : 0)
      writer.uint8(flags).uint8(type)
      writer.uint16(FRAME_HEADER_BYTES + end - start)
      writer.uint8(0).uint8(isControl ? 0 : 1)
      writer.uint16(channel).uint32(0)
      writer.raw(bytes.subarray(start, end))
      start = end
    } while (start < bytes.length)
  }
  return writer.bytes()
}
