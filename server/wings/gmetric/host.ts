/** A host and its metrics, as reported by its packets. Only hosts.ts changes them. */
import type { Metadata, ValueType } from '../../../protocol/gmetric/packet.ts'
import type { GmetricValue } from '../../../protocol/gmetric/value.ts'

/** The tmax of a metric that has none, in seconds: the default of gmetric. */
export const DEFAULT_TMAX_SECONDS = 60
const OBJECT_BYTES = 64

export interface GmetricHost {
  /** The identity: the source address as text, or the address part of a spoofed `address:name`. */
  readonly address: string
  /** The name that a spoofed packet gave it, under which it can also be found; '' if there is none. */
  readonly name: string
  /** A name for people: `name`, or what the sender calls itself, or the address. */
  readonly label: string
  /** When the last packet for it came. */
  readonly heardMs: number
}

/** The last value of a metric. */
export interface LastValue {
  readonly value: GmetricValue
  readonly timeMs: number
  /** The type in which it was sent, and its printf format, which only format.ts may interpret. */
  readonly sent: ValueType
  readonly format: string
}

/** One metric of one host. The object stays the same from the first packet about it until `expire` returns it. */
export interface HostMetric {
  readonly host: GmetricHost
  /** The name without the prefix `gmetric.`. */
  readonly metric: string
  readonly metadata: Metadata | undefined
  readonly latest: LastValue | undefined
  /** When the last value or metadata came. */
  readonly heardMs: number
}

/** The host that a value came from, and the metadata that its sender reported. */
export type ValueOrigin = Pick<HostMetric, 'host' | 'metadata'>

export interface GmetricHostState extends GmetricHost {
  name: string
  label: string
  heardMs: number
  /** When its name last changed. */
  namedMs: number
  /** The source whose packet created it; it counts against the capacity of that source. */
  readonly source: string
  readonly series: Map<string, HostMetricState>
}

export interface HostMetricState extends HostMetric {
  readonly host: GmetricHostState
  metadata: Metadata | undefined
  latest: LastValue | undefined
  heardMs: number
  bytes: number
  /** As for a host. */
  readonly source: string
}

export function tmaxMs({ metadata }: HostMetric): number {
  return (metadata?.tmax || DEFAULT_TMAX_SECONDS) * 1000
}

/** Whether no value came for longer than its tmax. */
export function isLate(series: HostMetric, nowMs: number): boolean {
  return nowMs - (series.latest ?? { timeMs: series.heardMs }).timeMs > tmaxMs(series)
}

/** Whether nothing came for longer than its dmax. */
export function isSilent({ metadata, heardMs }: HostMetric, nowMs: number): boolean {
  return metadata !== undefined && metadata.dmax > 0 && nowMs - heardMs > metadata.dmax * 1000
}

/** An estimate, as `maxBytes` counts. */
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
