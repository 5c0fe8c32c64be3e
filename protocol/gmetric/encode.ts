/**
 * Encodes the two packets that gmetric sends: 128 with the metadata and 133 with the value as text; and two that gmond sends:
 * 132 with a number, and the request 136. The sender must check whether a packet fits a datagram: gmetric sends no more than
 * 1464 bytes.
 */
import { XdrWriter } from '../bytes/writer.ts'
import type { Metadata, PacketHost } from './packet.ts'
import { PacketId } from './packet.ts'

/** A 128 packet. */
export function encodeMetadata(host: PacketHost, metric: string, metadata: Metadata): Uint8Array {
  const { type, units, slope, tmax, dmax, extra } = metadata
  const writer = header(PacketId.METADATA, host, metric)
  writer.string(type).string(metric).string(units).uint32(slope).uint32(tmax).uint32(dmax).uint32(extra.length)
  for (const { key, data } of extra) writer.string(key).string(data)
  return writer.bytes()
}

/** A 133 packet with the format `%s`. The metadata has the declared type, as which the receiver reads the text. */
export function encodeText(host: PacketHost, metric: string, value: string | Uint8Array): Uint8Array {
  const writer = header(PacketId.STRING, host, metric).string('%s')
  return (typeof value === 'string' ? writer.string(value) : writer.opaque(value)).bytes()
}

/** A 132 packet with the format `%u`. */
export function encodeUint32(host: PacketHost, metric: string, value: number): Uint8Array {
  return header(PacketId.UINT, host, metric).string('%u').uint32(value).bytes()
}

/** A 136 packet, which asks the sender of the metric for its metadata. */
export function encodeRequest(host: PacketHost, metric: string): Uint8Array {
  return header(PacketId.REQUEST, host, metric).bytes()
}

function header(id: number, host: PacketHost, metric: string): XdrWriter {
  const hostText = host.spoofed ? `${host.address}:${host.name}` : host.label
  return new XdrWriter().uint32(id).string(hostText).string(metric).boolean(host.spoofed)
}
