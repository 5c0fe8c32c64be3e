/**
 * The content of a Ganglia datagram of either family. docs/protocol/gmetric.md shows the bytes. Note that there is not one
 * packet per value: in the newer family, a value and its metadata (unit, type, times) are sent in separate datagrams, and
 * either may be missing.
 */

import { MAX_NAME_BYTES } from '../monitor/constants.ts'

/** The first word of a packet. 1 to 50 are the fixed metrics in decode.ts. */
export const PacketId = {
  USER_DEFINED: 0,
  METADATA: 128,
  USHORT: 129,
  SHORT: 130,
  INT: 131,
  UINT: 132,
  STRING: 133,
  FLOAT: 134,
  DOUBLE: 135,
  REQUEST: 136,
  SPOOF_METRIC: 4096,
  SPOOF_HEARTBEAT: 4097,
} as const

export type GmetricPacket = MetadataPacket | ValuePacket | UserDefinedPacket | RequestPacket

/**
 * The host of a metric. Without spoofing it is the sender of the datagram: `label` is only what the sender calls itself, or
 * '' if that cannot be shown. With spoofing, the sender reports for the host `name` at `address`.
 */
export type PacketHost =
  | { readonly spoofed: false; readonly label: string }
  | { readonly spoofed: true; readonly address: string; readonly name: string }

interface Identified {
  readonly host: PacketHost
  readonly metric: string
}

export interface Metadata {
  /** The declared type, unchecked: value.ts has the types with a meaning. */
  readonly type: string
  readonly units: string
  /** 0 zero, 1 positive, 2 negative, 3 both, 4 unspecified, 5 derivative; other numbers are accepted. */
  readonly slope: number
  /** Seconds within which the next value may be expected; 0 if not stated. */
  readonly tmax: number
  /** Seconds of silence after which the metric is removed; 0 for never. */
  readonly dmax: number
  readonly extra: readonly ExtraElement[]
}

/** GROUP (may repeat), TITLE, DESC, CLUSTER, SPOOF_HOST ... in the order of the packet. */
export interface ExtraElement {
  readonly key: string
  readonly data: string
}

/** 128 */
export interface MetadataPacket extends Identified {
  readonly kind: 'metadata'
  readonly metadata: Metadata
}

export type ValueType = 'uint16' | 'int16' | 'int32' | 'uint32' | 'string' | 'float' | 'double'

/** 129 to 135, 1 to 50, and 4097 (as `heartbeat`). */
export interface ValuePacket extends Identified {
  readonly kind: 'value'
  /** The type in which the value was sent, which means little: gmetric sends every value as text. */
  readonly type: ValueType
  /** A number, or text; text that is not UTF-8 as its bytes. */
  readonly value: number | string | Uint8Array
  /** A printf format from the network, which must never be given to printf; '' in the older family. */
  readonly format: string
}

/** 0 and 4096: metadata and value in one. */
export interface UserDefinedPacket extends Identified {
  readonly kind: 'user-defined'
  readonly metadata: Metadata
  readonly value: string | Uint8Array
}

/** 136: somebody has a value and requests its metadata. */
export interface RequestPacket extends Identified {
  readonly kind: 'request'
}

/** Cinnabar serves the metric `load_one` as `gmetric.load_one`, and the result must be a valid name [MON 1]. */
export const METRIC_PREFIX = 'gmetric.'
export const MAX_METRIC_BYTES = MAX_NAME_BYTES - METRIC_PREFIX.length

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lossyUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })

// The three kinds of text in a packet treat bytes that are not UTF-8 differently: a name is refused, a label gets
// replacement characters, and a value keeps its bytes.

/** The name; undefined unless it has 1 to `maxBytes` bytes of UTF-8, none below 0x20 [MON 1]. */
export function decodeName(bytes: Uint8Array, maxBytes = MAX_NAME_BYTES): string | undefined {
  if (bytes.length === 0 || bytes.length > maxBytes) return undefined
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i]! < 0x20) return undefined
  }
  const text = decodeTextOrBytes(bytes)
  return typeof text === 'string' ? text : undefined
}

export function decodeLabel(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : lossyUtf8.decode(bytes)
}

/** The text, or a copy of its bytes if it is not UTF-8. `slice` would not copy: for a Node Buffer it makes a view. */
export function decodeTextOrBytes(bytes: Uint8Array): string | Uint8Array {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return new Uint8Array(bytes)
  }
}
