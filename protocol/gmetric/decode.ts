/**
 * Decodes one datagram into one packet. It accepts what gmond accepts: padding may be anything, a boolean is true unless it
 * is 0, a short is the low half of its word, and bytes after the message are ignored. Lengths are never trusted.
 *
 * newer   id | host | metric | spoof | rest by id
 * older   id | rest by id: the host is the sender, unless id is 4096 or 4097 (name | address | ...)
 */
import { XdrReader } from '../bytes/reader.ts'
import { ProtocolError } from '../errors.ts'
import {
  decodeLabel,
  decodeName,
  decodeTextOrBytes,
  type ExtraElement,
  type GmetricPacket,
  MAX_METRIC_BYTES,
  type Metadata,
  type PacketHost,
  PacketId,
  type ValuePacket,
  type ValueType,
} from './packet.ts'

/** gmetric and gmond send up to four. The limit bounds the number of objects that a packet can create. */
export const MAX_EXTRA_ELEMENTS = 64

/** gmetric4j marks a packet that has a UUID (16 bytes) after the message by this bit of a newer id. */
const UUID_FLAG = 0x40
const COLON = 0x3a
const SENDER: PacketHost = { spoofed: false, label: '' }

/** Of the packets of the newer family that have a value. */
export const TYPES_BY_ID: Readonly<Record<number, ValueType | undefined>> = {
  [PacketId.USHORT]: 'uint16',
  [PacketId.SHORT]: 'int16',
  [PacketId.INT]: 'int32',
  [PacketId.UINT]: 'uint32',
  [PacketId.STRING]: 'string',
  [PacketId.FLOAT]: 'float',
  [PacketId.DOUBLE]: 'double',
}

/** Decodes a datagram. Throws ProtocolError and nothing else; keeps no view of `bytes`. */
export function decodePacket(bytes: Uint8Array): GmetricPacket {
  const reader = new PacketReader(bytes)
  const word = reader.uint32()
  const id = word >= 0xc0 && word <= 0xc8 ? word - UUID_FLAG : word
  if (id >= PacketId.METADATA && id <= PacketId.REQUEST) return newer(reader, id)
  const core = CORE_METRICS[id]
  if (core) return { kind: 'value', host: SENDER, metric: core.name, format: '', ...value(reader, core.type) }
  if (id === PacketId.USER_DEFINED) return userDefined(reader, SENDER)
  if (id === PacketId.SPOOF_METRIC) return userDefined(reader, nameThenAddress(reader))
  if (id === PacketId.SPOOF_HEARTBEAT) {
    // It reports only that the host is alive; 0 is the value of a spoofed heartbeat of the newer family.
    const host = nameThenAddress(reader)
    return { kind: 'value', host, metric: 'heartbeat', format: '', type: 'uint32', value: 0 }
  }
  throw new ProtocolError('UNKNOWN_MESSAGE', `no gmetric message has the number ${word}`)
}

function newer(reader: PacketReader, id: number): GmetricPacket {
  const hostAt = reader.offset
  const hostBytes = reader.view()
  const metric = reader.metric()
  const spoofed = reader.uint32() !== 0
  const host: PacketHost = spoofed
    ? addressThenName(hostBytes, hostAt)
    : { spoofed: false, label: decodeName(hostBytes) ?? '' }
  if (id === PacketId.METADATA) return { kind: 'metadata', host, metric, metadata: metadata(reader) }
  const type = TYPES_BY_ID[id]
  if (!type) return { kind: 'request', host, metric }
  return { kind: 'value', host, metric, format: reader.label(), ...value(reader, type) }
}

function userDefined(reader: PacketReader, host: PacketHost): GmetricPacket {
  const type = reader.label()
  const metric = reader.metric()
  const text = reader.text()
  const units = reader.label()
  const rest = { slope: reader.uint32(), tmax: reader.uint32(), dmax: reader.uint32() }
  return { kind: 'user-defined', host, metric, metadata: { type, units, ...rest, extra: [] }, value: text }
}

function metadata(reader: PacketReader): Metadata {
  const type = reader.label()
  reader.view() // the metric's name again: the one next to the host counts
  const units = reader.label()
  const slope = reader.uint32()
  const tmax = reader.uint32()
  const dmax = reader.uint32()
  const at = reader.offset
  const count = reader.uint32()
  if (count > MAX_EXTRA_ELEMENTS) {
    throw new ProtocolError('BAD_COUNT', `${count} extra elements; the limit is ${MAX_EXTRA_ELEMENTS}`, at)
  }
  const extra: ExtraElement[] = []
  for (let i = 0; i < count; i++) extra.push({ key: reader.label(), data: reader.label() })
  return { type, units, slope, tmax, dmax, extra }
}

function value(reader: PacketReader, type: ValueType): Pick<ValuePacket, 'type' | 'value'> {
  return { type, value: type === 'string' ? reader.text() : decodeNumber(reader, type) }
}

/** Reads a number as it was sent. */
export function decodeNumber(reader: XdrReader, type: Exclude<ValueType, 'string'>): number {
  switch (type) {
    case 'uint16':
      return reader.uint32() & 0xffff
    case 'int16':
      return (reader.int32() << 16) >> 16
    case 'int32':
      return reader.int32()
    case 'uint32':
      return reader.uint32()
    case 'float':
      return reader.float()
    case 'double':
      return reader.double()
  }
}

/** Splits `ip:name` at the first colon from the second byte on, as gmond does: an IPv6 address cannot be expressed. */
function addressThenName(bytes: Uint8Array, at: number): PacketHost {
  const colon = bytes.indexOf(COLON, 1)
  if (colon < 0) throw new ProtocolError('BAD_NAME', 'a spoofed host is written address:name; there is no colon', at)
  return spoofedHost(bytes.subarray(0, colon), bytes.subarray(colon + 1), at)
}

function nameThenAddress(reader: PacketReader): PacketHost {
  const at = reader.offset
  const name = reader.view()
  return spoofedHost(reader.view(), name, at)
}

function spoofedHost(addressBytes: Uint8Array, nameBytes: Uint8Array, at: number): PacketHost {
  const address = decodeName(addressBytes)
  const name = decodeName(nameBytes)
  if (address === undefined || name === undefined) {
    throw new ProtocolError('BAD_NAME', 'a spoofed host whose address or name is empty, too long or not text', at)
  }
  return { spoofed: true, address, name }
}

/** XDR as gmond reads it: unlike the strings of XdrReader, these may have any padding and any bytes. */
class PacketReader extends XdrReader {
  readonly #packet: Uint8Array

  constructor(packet: Uint8Array) {
    super(packet)
    this.#packet = packet
  }

  view(): Uint8Array {
    const at = this.offset
    const length = this.uint32()
    const padded = length + (-length & 3)
    if (padded > this.remaining) {
      throw new ProtocolError('TRUNCATED', `a string of ${length} bytes but only ${this.remaining} bytes are left`, at)
    }
    const start = this.offset
    this.offset = start + padded
    return this.#packet.subarray(start, start + length)
  }

  label(): string {
    return decodeLabel(this.view())
  }

  text(): string | Uint8Array {
    return decodeTextOrBytes(this.view())
  }

  metric(): string {
    const at = this.offset
    const name = decodeName(this.view(), MAX_METRIC_BYTES)
    if (name === undefined) {
      const rule = `1 to ${MAX_METRIC_BYTES} bytes of UTF-8 without control characters`
      throw new ProtocolError('BAD_NAME', `a metric name must be ${rule}`, at)
    }
    return name
  }
}

export interface CoreMetric {
  readonly name: string
  readonly type: ValueType
}

const metrics = (type: ValueType, names: string): CoreMetric[] => names.split(' ').map((name) => ({ name, type }))

/**
 * The metrics that Ganglia 2.5 and 3.0 knew by number: such a packet has the number and one value, nothing else. The index
 * is the number; 0 stands for a metric that brings its own name.
 */
export const CORE_METRICS: readonly (CoreMetric | undefined)[] = [
  undefined,
  ...metrics('uint16', 'cpu_num'),
  ...metrics('uint32', 'cpu_speed mem_total swap_total boottime sys_clock'),
  ...metrics('string', 'machine_type os_name os_release'),
  ...metrics('float', 'cpu_user cpu_nice cpu_system cpu_idle cpu_aidle load_one load_five load_fifteen'),
  ...metrics('uint32', 'proc_run proc_total mem_free mem_shared mem_buffers mem_cached swap_free'),
  ...metrics('string', 'gexec'),
  ...metrics('uint32', 'heartbeat mtu'),
  ...metrics('string', 'location'),
  ...metrics('float', 'bytes_out bytes_in pkts_in pkts_out'),
  ...metrics('double', 'disk_total disk_free'),
  ...metrics('float', 'part_max_used cpu_wio bread_sec bwrite_sec lread_sec lwrite_sec rcache wcache'),
  ...metrics('float', 'phread_sec phwrite_sec cpu_intr cpu_sintr'),
  ...metrics('uint32', 'mem_arm mem_rm mem_avm mem_vm'),
]
