/**
 * Decodes the datagrams of a feed. Those of one series differ in their value only: what stands before a number is decoded once
 * and found again by its bytes.
 */
import { XdrReader } from '../bytes/reader.ts'
import { RecentByBytes } from '../bytes/recent.ts'
import { decodeNumber, decodePacket, TYPES_BY_ID } from './decode.ts'
import { type GmetricPacket, PacketId, type ValuePacket, type ValueType } from './packet.ts'

const KEPT_HEADS = 4_096
/** Longer heads are decoded each time. */
const MAX_HEAD_BYTES = 256
const WORD_BYTES = 4
const DOUBLE_BYTES = 8

/** What comes before the value means this. */
interface Head {
  readonly packet: ValuePacket
  readonly type: Exclude<ValueType, 'string'>
}

export class PacketDecoder {
  readonly #heads = new RecentByBytes<Head>(KEPT_HEADS, MAX_HEAD_BYTES)
  readonly #reader = new XdrReader()

  /** As `decodePacket`. */
  decode(bytes: Uint8Array): GmetricPacket {
    const end = bytes.length - valueBytesOf(bytes)
    if (end <= WORD_BYTES || end > MAX_HEAD_BYTES) return decodePacket(bytes)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const head = this.#heads.get(view, 0, end)
    if (head !== undefined) {
      const { type, packet } = head
      const { host, metric, format } = packet
      const value = decodeNumber(this.#reader.reset(bytes, end, bytes.length, view), type)
      return { kind: 'value', host, metric, format, type, value }
    }
    const packet = decodePacket(bytes)
    // Bytes after the message would be taken for a value.
    if (packet.kind === 'value' && packet.type !== 'string' && headBytesOf(view) === end) {
      this.#heads.keep(view, 0, end, { packet, type: packet.type })
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
function headBytesOf(view: DataView): number {
  const afterText = (at: number): number => at + WORD_BYTES + ((view.getUint32(at) + 3) & ~3)
  return afterText(afterText(afterText(WORD_BYTES)) + WORD_BYTES)
}
