/**
 * Decodes the datagrams of a feed. Those of one series differ in their value only: what stands before a number is decoded once
 * and found again by its bytes, in a table with one place for each hash, so that it never grows.
 */
import { XdrReader } from '../bytes/reader.ts'
import { decodeNumber, decodePacket, TYPES_BY_ID } from './decode.ts'
import { type GmetricPacket, PacketId, type ValuePacket, type ValueType } from './packet.ts'

const PLACES = 4_096
/** Longer heads are decoded each time. */
const MAX_HEAD_BYTES = 256
const WORD_BYTES = 4
const DOUBLE_BYTES = 8

/** What comes before the value, its bytes and what they mean. */
interface Head {
  readonly bytes: Uint8Array
  readonly packet: ValuePacket
  readonly type: Exclude<ValueType, 'string'>
}

export class PacketDecoder {
  readonly #heads: (Head | undefined)[] = []
  readonly #reader = new XdrReader()

  /** As `decodePacket`. */
  decode(bytes: Uint8Array): GmetricPacket {
    const end = bytes.length - valueBytesOf(bytes)
    if (end <= WORD_BYTES || end > MAX_HEAD_BYTES) return decodePacket(bytes)
    const place = placeOf(bytes, end)
    const head = this.#heads[place]
    if (head !== undefined && isSame(head.bytes, bytes, end)) {
      const { type, packet } = head
      const { host, metric, format } = packet
      const value = decodeNumber(this.#reader.reset(bytes, end, bytes.length), type)
      return { kind: 'value', host, metric, format, type, value }
    }
    const packet = decodePacket(bytes)
    // Bytes after the message would be taken for a value.
    if (packet.kind === 'value' && packet.type !== 'string' && headBytesOf(bytes) === end) {
      this.#heads[place] = { bytes: Uint8Array.from(bytes.subarray(0, end)), packet, type: packet.type }
    }
    return packet
  }
}

/** Bytes of the number in a packet of the newer family; Infinity if it has none. */
function valueBytesOf(bytes: Uint8Array): number {
  const id = bytes[0] === 0 && bytes[1] === 0 && bytes[2] === 0 ? (bytes[3] as number) : 0
  if (TYPES_BY_ID[id] === undefined || id === PacketId.STRING) return Number.POSITIVE_INFINITY
  return id === PacketId.DOUBLE ? DOUBLE_BYTES : WORD_BYTES
}

/** id | host | metric | spoof | format, in a packet that was decoded. */
function headBytesOf(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const afterText = (at: number): number => at + WORD_BYTES + ((view.getUint32(at) + 3) & ~3)
  return afterText(afterText(afterText(WORD_BYTES)) + WORD_BYTES)
}

function placeOf(bytes: Uint8Array, end: number): number {
  let hash = 0
  for (let at = WORD_BYTES; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0
  return (hash >>> 0) % PLACES
}

function isSame(head: Uint8Array, bytes: Uint8Array, end: number): boolean {
  if (head.length !== end) return false
  for (let at = 0; at < end; at++) if (head[at] !== bytes[at]) return false
  return true
}
