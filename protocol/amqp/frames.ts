/**
 * Frames of AMQP 0-10, cut anywhere -> controls and commands, whole, with header and body where they have them.
 *
 *   uint8 flags | uint8 type | uint16 size, with these 12 bytes | uint8 0 | uint8 track | uint16 channel | uint32 0
 *
 * A control or command is up to three segments (itself, header, body), each of one or more frames. Flags say where in a
 * segment and where among the segments a frame stands. What a newcomer gets wrong: first and last *segment* is said by
 * every frame of that segment, first and last *frame* by one.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'
import { Segment } from './segment.ts'
import { Writer } from './writer.ts'

export const SegmentType = { CONTROL: 0, COMMAND: 1, HEADER: 2, BODY: 3 } as const
export const FRAME_HEADER_BYTES = 12
/** What every peer takes before a size is agreed on. */
export const MIN_MAX_FRAME_BYTES = 4096
export const MAX_FRAME_BYTES = 65_535

const FIRST_SEGMENT = 8
const LAST_SEGMENT = 4
const FIRST_FRAME = 2
const LAST_FRAME = 1
/** Of a control, a command, a header segment. */
const MAX_METHOD_BYTES = 65_536
/** Begun at once, on all channels. */
const MAX_OPEN = 4

/** One control or command; the bytes are the taker's to keep. */
export interface Assembly {
  readonly channel: number
  readonly isControl: boolean
  readonly method: Uint8Array
  readonly header?: Uint8Array | undefined
  readonly body?: Uint8Array | undefined
}

/** One that has begun and not ended. Segments by their type; `type` is the one that came last. */
interface Open {
  readonly segments: Map<number, Segment>
  type: number
  isWhole: boolean
}

const NO_BYTES = new Uint8Array(0)

export class FrameAssembler {
  readonly #maxBodyBytes: number
  readonly #open = new Map<number, Open>()
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES)
  readonly #view = new DataView(this.#header.buffer)
  #headerBytes = 0
  #payload: Uint8Array | undefined
  #payloadBytes = 0
  #chunk: Uint8Array = NO_BYTES
  #at = 0
  /** Where in the stream the chunk begins. */
  #start = 0

  /** A longer body is a ProtocolError. */
  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
  }

  /** Takes the next bytes of the stream; then `next` is to be called until it gives undefined. */
  push(chunk: Uint8Array): void {
    this.#start += this.#chunk.length
    this.#chunk = chunk
    this.#at = 0
  }

  /** The next control or command that is whole. Throws ProtocolError, and then must not be called again. */
  next(): Assembly | undefined {
    while (this.#at < this.#chunk.length) {
      if (this.#payload === undefined) {
        this.#headerBytes += this.#fill(this.#header, this.#headerBytes)
        if (this.#headerBytes < FRAME_HEADER_BYTES) return undefined
        this.#payload = new Uint8Array(this.#size() - FRAME_HEADER_BYTES)
      }
      this.#payloadBytes += this.#fill(this.#payload, this.#payloadBytes)
      if (this.#payloadBytes < this.#payload.length) return undefined
      const payload = this.#payload
      this.#headerBytes = this.#payloadBytes = 0
      this.#payload = undefined
      const assembly = this.#frame(payload)
      if (assembly) return assembly
    }
    return undefined
  }

  /** Copies of the chunk what `target` lacks; gives how many bytes. */
  #fill(target: Uint8Array, filled: number): number {
    const count = Math.min(target.length - filled, this.#chunk.length - this.#at)
    target.set(this.#chunk.subarray(this.#at, this.#at + count), filled)
    this.#at += count
    return count
  }

  #size(): number {
    const flags = this.#view.getUint8(0)
    const size = this.#view.getUint16(2)
    if (flags > 0xf) this.#fail('BAD_NUMBER', `a frame with the flags 0x${flags.toString(16)}`)
    if (size < FRAME_HEADER_BYTES) this.#fail('FRAME_TOO_SHORT', `a frame of ${size} bytes; the least is 12`)
    return size
  }

  #frame(payload: Uint8Array): Assembly | undefined {
    const flags = this.#view.getUint8(0)
    const type = this.#view.getUint8(1)
    const channel = this.#view.getUint16(6)
    const key = (channel << 4) | (this.#view.getUint8(5) & 0xf)
    if (type > SegmentType.BODY) this.#fail('BAD_TYPE', `a frame of the type ${type}; they are 0 to 3`)
    const open = this.#segment(key, flags, type)
    this.#append(open.segments.get(type)!, payload)
    if ((flags & LAST_FRAME) === 0) return undefined
    open.isWhole = true
    if ((flags & LAST_SEGMENT) === 0) return undefined
    this.#open.delete(key)
    return assembled(channel, open.segments)
  }

  /** What a frame goes on with, or begins. */
  #segment(key: number, flags: number, type: number): Open {
    const isFirstSegment = (flags & FIRST_SEGMENT) !== 0
    const isFirstFrame = (flags & FIRST_FRAME) !== 0
    const open = this.#open.get(key)
    if (isFirstSegment && isFirstFrame) {
      if (open) this.#fail('UNKNOWN_MESSAGE', 'a control or command begins before the one in front of it has ended')
      if (type > SegmentType.COMMAND) this.#fail('BAD_TYPE', `begins with a segment of the type ${type}`)
      if (this.#open.size === MAX_OPEN) this.#fail('BAD_COUNT', `more than ${MAX_OPEN} commands have begun`)
      const begun: Open = { segments: new Map([[type, new Segment(MAX_METHOD_BYTES)]]), type, isWhole: false }
      this.#open.set(key, begun)
      return begun
    }
    if (!open) return this.#fail('UNKNOWN_MESSAGE', 'a frame goes on with what has not begun')
    if (isFirstFrame) {
      if (!open.isWhole || type <= open.type || open.type === SegmentType.CONTROL) {
        this.#fail('BAD_TYPE', `a segment of the type ${type} behind one of the type ${open.type}`)
      }
      open.segments.set(type, new Segment(type === SegmentType.BODY ? this.#maxBodyBytes : MAX_METHOD_BYTES))
      open.type = type
      open.isWhole = false
    } else if (open.isWhole || type !== open.type) {
      this.#fail('UNKNOWN_MESSAGE', 'a frame goes on with a segment that has not begun')
    }
    return open
  }

  #append(segment: Segment, payload: Uint8Array): void {
    if (segment.append(payload)) return
    this.#fail('TOO_LONG', `a segment of more than ${segment.maxBytes} bytes`)
  }

  #fail(code: ProtocolErrorCode, message: string): never {
    throw new ProtocolError(code, message, this.#start + this.#at)
  }
}

function assembled(channel: number, segments: ReadonlyMap<number, Segment>): Assembly {
  const bytes = (type: number) => segments.get(type)?.bytes()
  const control = bytes(SegmentType.CONTROL)
  return {
    channel,
    isControl: control !== undefined,
    method: control ?? bytes(SegmentType.COMMAND)!,
    header: bytes(SegmentType.HEADER),
    body: bytes(SegmentType.BODY),
  }
}

/** The frames of one control or command, none longer than `maxFrameBytes`. */
export function encodeFrames(assembly: Assembly, maxFrameBytes: number): Uint8Array {
  const { channel, isControl, method, header, body } = assembly
  const segments: (readonly [type: number, bytes: Uint8Array])[] = []
  segments.push([isControl ? SegmentType.CONTROL : SegmentType.COMMAND, method])
  if (header) segments.push([SegmentType.HEADER, header])
  if (body) segments.push([SegmentType.BODY, body])
  const writer = new Writer(method.length + (header?.length ?? 0) + (body?.length ?? 0) + 64)
  const most = maxFrameBytes - FRAME_HEADER_BYTES
  for (const [i, [type, bytes]] of segments.entries()) {
    const place = (i === 0 ? FIRST_SEGMENT : 0) | (i === segments.length - 1 ? LAST_SEGMENT : 0)
    let start = 0
    do {
      const end = Math.min(start + most, bytes.length)
      const flags = place | (start === 0 ? FIRST_FRAME : 0) | (end === bytes.length ? LAST_FRAME : 0)
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
