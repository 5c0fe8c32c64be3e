/**
 * What a Ganglia datagram says, whichever of its two families it comes from. docs/protocol/gmetric.md draws the bytes.
 * A newcomer expects one packet per value: in the newer family a value and what is known about it (unit, type, times)
 * travel in separate datagrams, and either may be missing.
 */

/** The first word of a packet. 1 to 50 are the fixed metrics of core-metrics.ts. */
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
 * Whose metric it is. Unspoofed, that is whoever sent the datagram: `label` is only what the sender calls itself, ''
 * where it says nothing that can be shown. Spoofed, the sender speaks for the host at `address`, called `name`.
 */
export type PacketHost =
  | { readonly spoofed: false; readonly label: string }
  | { readonly spoofed: true; readonly address: string; readonly name: string }

interface Identified {
  readonly host: PacketHost
  readonly metric: string
}

export interface Metadata {
  /** As declared, not checked: see value.ts for the types that mean something. */
  readonly type: string
  readonly units: string
  /** 0 zero, 1 positive, 2 negative, 3 both, 4 unspecified, 5 derivative; others pass. */
  readonly slope: number
  /** Seconds in which the next value may be expected; 0 = not said. */
  readonly tmax: number
  /** Seconds of silence after which the metric is to be forgotten; 0 = never. */
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
  /** How the value travelled, which says little: gmetric sends every value as text. */
  readonly type: ValueType
  /** A number; or text, as its bytes where it is no UTF-8. */
  readonly value: number | string | Uint8Array
  /** A printf format from the network: never to be given to anything that obeys it. '' in the older family. */
  readonly format: string
}

/** 0 and 4096: metadata and value in one. */
export interface UserDefinedPacket extends Identified {
  readonly kind: 'user-defined'
  readonly metadata: Metadata
  readonly value: string | Uint8Array
}

/** 136: somebody has a value and asks for the metadata that goes with it. */
export interface RequestPacket extends Identified {
  readonly kind: 'request'
}
