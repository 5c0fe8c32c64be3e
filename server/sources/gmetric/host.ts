/** A host with its metrics, as its packets made them. Others read these; only hosts.ts changes them. */
import type { Metadata, ValueType } from '../../../protocol/gmetric/packet.ts'
import type { GmetricValue } from '../../../protocol/gmetric/value.ts'

/** A metric that says no tmax: gmetric's own default, in seconds. */
export const DEFAULT_TMAX_SECONDS = 60
const OBJECT_BYTES = 64

export interface GmetricHost {
  /** The identity: the source address as text, or the address part of a spoofed `address:name`. */
  readonly address: string
  /** The name a spoofed packet gave it, by which it is found too; '' if none did. */
  readonly name: string
  /** For people: `name`, else what the sender calls itself, else the address. */
  readonly label: string
  /** When anything came of it last. */
  readonly heardMs: number
}

export interface LastValue {
  readonly value: GmetricValue
  readonly timeMs: number
  /** How it travelled, and how it wants to be shown: to be given to format.ts alone. */
  readonly sent: ValueType
  readonly format: string
}

/** One metric of one host. The object stays the same from the first packet about it until `expire` returns it. */
export interface HostMetric {
  readonly host: GmetricHost
  /** Without the prefix `gmetric.`. */
  readonly metric: string
  readonly metadata: Metadata | undefined
  readonly latest: LastValue | undefined
  /** When the last value or metadata came. */
  readonly heardMs: number
}

/** Where a value came from, and what its sender says of the metric. */
export type ValueOrigin = Pick<HostMetric, 'host' | 'metadata'>

export interface GmetricHostState extends GmetricHost {
  name: string
  label: string
  heardMs: number
  /** When its name was changed last. */
  namedMs: number
  /** The source whose packet made it: it counts as theirs. */
  readonly source: string
  readonly series: Map<string, HostMetricState>
}

export interface HostMetricState extends HostMetric {
  readonly host: GmetricHostState
  metadata: Metadata | undefined
  latest: LastValue | undefined
  heardMs: number
  bytes: number
  /** As of a host. */
  readonly source: string
}

export function tmaxMs({ metadata }: HostMetric): number {
  return (metadata?.tmax || DEFAULT_TMAX_SECONDS) * 1000
}

/** No value for longer than its tmax. */
export function isLate(series: HostMetric, nowMs: number): boolean {
  return nowMs - (series.latest ?? { timeMs: series.heardMs }).timeMs > tmaxMs(series)
}

/** Nothing for longer than its dmax. */
export function isSilent({ metadata, heardMs }: HostMetric, nowMs: number): boolean {
  return metadata !== undefined && metadata.dmax > 0 && nowMs - heardMs > metadata.dmax * 1000
}

/** Roughly, as `maxBytes` counts. */
export function bytesOf(metric: string, metadata: Metadata | undefined, latest: LastValue | undefined): number {
  let bytes = OBJECT_BYTES + metric.length
  if (metadata) {
    bytes += OBJECT_BYTES + metadata.type.length + metadata.units.length
    for (const { key, data } of metadata.extra) bytes += OBJECT_BYTES + key.length + data.length
  }
  if (latest === undefined) return bytes
  const { value } = latest.value
  return bytes + OBJECT_BYTES + latest.format.length + (typeof value === 'number' ? 0 : value.length)
}
