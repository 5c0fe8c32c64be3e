/**
 * Values as gmetric sends them: first the metadata of a metric (and again every minute), then the value as text. Ganglia
 * distinguishes metrics by host and name alone, so all other labels become part of the name. gmond accepts nearly anything,
 * but its XML and gmetad cannot handle everything: what would break them is altered here.
 */
import { encodeMetadata, encodeText, encodeUint32 } from '../../../protocol/gmetric/encode.ts'
import { type ExtraElement, METRIC_PREFIX, type Metadata, type PacketHost } from '../../../protocol/gmetric/packet.ts'
import { SLOPES, safeName } from '../../../protocol/gmetric/xml.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { LabelName, Metric } from '../../kit/metrics.ts'
import type { DeliveredMetric } from '../../kit/push.ts'
import { ShownExtraElements } from './document.ts'
import type { GmetricHost, ValueOrigin } from './host.ts'
import { HostLiveness } from './liveness.ts'
import { GmetricSensor } from './sensor.ts'

const { INT32, UINT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, REC } = BasicType

/** The largest packet that gmetric sends and gmond reads. */
const MAX_PACKET_BYTES = 1464
/** gmond has 1,024 bytes for a line of its XML, a metric name with value and units, or an element, and truncates it. */
const MAX_LINE_BYTES = 900
/** The line of a host also has its name and address. */
const MAX_LOCATION_BYTES = 255
/** gmetad has 1,572 bytes for the name, value, units, extra elements, type, slope and source of a metric. */
const MAX_SHOWN_BYTES = 1500
const MAX_NUMBER_BYTES = 32
const MAX_UNITS_CHARACTERS = 64
/** The bytes of an element in a packet besides its text: two lengths and two paddings. */
const ELEMENT_BYTES = 14
const METADATA_MS = 60_000
/** After metadata of this many metrics was sent, all of it is sent again. */
const MAX_KNOWN = 65_536
/** gmond shows these two as attributes of the host. */
const HEARTBEAT = `${METRIC_PREFIX}heartbeat`
const LOCATION = `${METRIC_PREFIX}location`
const SLOPE_ZERO = 0
const SLOPE_BOTH = 3
const SLOPE_UNSPECIFIED = 4
const TMAX_SECONDS = 60
/** After a day of silence a metric is removed, like hosts by Ganglia's default. */
const DMAX_SECONDS = 86_400

/** The names of each type in Ganglia; names after the first are used only if the sender declared them. Ganglia has no 64-bit integers. */
const TYPES: ReadonlyMap<BasicType, readonly [string, ...string[]]> = new Map([
  [INT32, ['int32', 'int16', 'int8']],
  [UINT32, ['uint32', 'uint16', 'uint8', 'timestamp']],
  [INT64, ['double']],
  [UINT64, ['double']],
  [DOUBLE, ['double', 'float']],
  [BOOLEAN, ['uint8']],
  [STRING, ['string']],
])

/** Larger numbers would overflow gmetad's sums over all hosts. */
const MAX_NUMBER = 1e90

export interface PacketOptions {
  /** The name of this producer; its own metrics are not spoofed. */
  readonly name: string
  readonly metric: (name: string) => Pick<Metric, 'unit' | 'description'> | undefined
  /** Monotonic time in ms. */
  readonly now: () => number
}

type Labels = Partial<Record<LabelName, string>>

export class GmetricPackets {
  readonly #options: PacketOptions
  /** The type in the last metadata of each metric, and when it was sent. */
  readonly #known = new Map<string, { readonly type: string; readonly sentMs: number }>()
  readonly #extras = new ShownExtraElements()

  constructor(options: PacketOptions) {
    this.#options = options
  }

  /** The datagrams for a value of `instance`; none if gmetric cannot express it. */
  of(instance: DeliveredMetric, given: Value): Uint8Array[] {
    const { labels, value } = splitLabels(instance, given)
    if (value === undefined) return []
    const name = labels.name ?? instance.selection.name
    const types = typesOf(value)
    const text = name === LOCATION ? locationOf(value) : textOf(value)
    if (types === undefined || text === undefined) return []
    const origin = originOf(instance, name, labels.host)
    const host = origin ? spoofed(origin.host) : hostOf(labels.host, this.#options.name)
    const metric = nameOf(name, labels)
    const reported = origin?.metadata ?? this.#described(name, types[0])
    const type = types.find((each) => each === reported.type) ?? types[0]
    const units = clean(reported.units).slice(0, MAX_UNITS_CHARACTERS)
    if (bytes(metric) + bytes(units) + bytes(escaped(text)) > MAX_LINE_BYTES) return []
    // gmond reads a heartbeat as a number, in whatever form it was received.
    const isBeat = name === HEARTBEAT && value.type === UINT32
    const packet = isBeat ? encodeUint32(host, metric, value.value) : encodeText(host, metric, text)
    if (packet.length > MAX_PACKET_BYTES) return []
    const metadata = this.#metadata(host, metric, { ...reported, type, units })
    return metadata === undefined ? [] : [...metadata, packet]
  }

  /** The metadata of a metric that did not come from Ganglia. */
  #described(name: string, type: string): Metadata {
    const { unit = '', description = '' } = this.#options.metric(name) ?? {}
    return {
      type,
      units: unit,
      slope: type === 'string' ? SLOPE_ZERO : SLOPE_BOTH,
      tmax: TMAX_SECONDS,
      dmax: DMAX_SECONDS,
      extra: description === '' ? [] : [{ key: 'DESC', data: description }],
    }
  }

  /** The packet with the metadata; none if it was sent recently, undefined if it does not fit. */
  #metadata(host: PacketHost, metric: string, about: Metadata): Uint8Array[] | undefined {
    const now = this.#options.now()
    const key = JSON.stringify([host, metric])
    const known = this.#known.get(key)
    if (known?.type === about.type && now - known.sentMs < METADATA_MS) return []
    const extra = this.#extras.shown(metric, about.extra, now)
    const packet = metadataPacket(host, metric, { ...about, extra })
    if (packet.length > MAX_PACKET_BYTES) return undefined
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(key, { type: about.type, sentMs: now })
    return [packet]
  }
}

/** A metadata packet with as many extra elements as fit in the packet and in gmetad. */
function metadataPacket(host: PacketHost, metric: string, about: Metadata): Uint8Array {
  const slope = SLOPES[about.slope] === undefined ? SLOPE_UNSPECIFIED : about.slope
  const extra: ExtraElement[] = host.spoofed ? [{ key: 'SPOOF_HOST', data: `${host.address}:${host.name}` }] : []
  const packet = (): Uint8Array => encodeMetadata(host, metric, { ...about, slope, extra })
  const line = about.type === 'string' ? MAX_LINE_BYTES : bytes(metric) + bytes(about.units) + MAX_NUMBER_BYTES
  let left = Math.min(MAX_PACKET_BYTES - packet().length, MAX_SHOWN_BYTES - line - sizeOf(extra))
  for (const { key, data } of about.extra) {
    const element = { key: clean(key), data: clean(data) }
    const size = sizeOf([element])
    if (key === 'SPOOF_HOST' || data === '' || size > Math.min(left, MAX_LINE_BYTES)) continue
    left -= size
    extra.push(element)
  }
  return packet()
}

function sizeOf(extra: readonly ExtraElement[]): number {
  return extra.reduce((sum, { key, data }) => sum + bytes(key) + bytes(data) + ELEMENT_BYTES, 0)
}

const utf8 = new TextEncoder()
const lossyUtf8 = new TextDecoder()

function bytes(text: string): number {
  return utf8.encode(text).length
}

/** Splits labels and value: labels are arguments of the selection and, for a pattern, fields of the REC. */
function splitLabels(
  { selection }: DeliveredMetric,
  given: Value,
): { readonly labels: Labels; readonly value: Value | undefined } {
  const labels: Labels = {}
  for (const { name, value } of selection.args) {
    if (isLabel(name) && typeof value === 'string' && !value.includes('*')) labels[name] = value
  }
  if (!selection.carriesLabels()) return { labels, value: given }
  if (given.type !== REC) return { labels, value: undefined }
  let value: Field | undefined
  for (const field of given.value) {
    if (field.name === 'value') value = field
    else if (isLabel(field.name) && typeof field.value === 'string') labels[field.name] = field.value
    // Without its other labels a series could not be told from those beside it.
    else return { labels, value: undefined }
  }
  return { labels, value }
}

function isLabel(name: string): name is LabelName {
  return (labelNames as readonly string[]).includes(name)
}

/** The possible Ganglia types. A number that would spoil or overflow a sum of gmetad is sent as text. */
function typesOf({ type, value }: Value): readonly [string, ...string[]] | undefined {
  const isText = type === DOUBLE && !(Math.abs(value) <= MAX_NUMBER)
  return TYPES.get(isText ? STRING : type)
}

/** The value as text; undefined if gmetric cannot express it. */
function textOf(value: Value): string | undefined {
  switch (value.type) {
    case INT32:
    case UINT32:
    case INT64:
    case UINT64:
      return String(value.value)
    case DOUBLE:
      return doubleText(value.value)
    case BOOLEAN:
      return value.value ? '1' : '0'
    case STRING:
      return plain(value.value)
    default:
      return undefined
  }
}

/** Replaces what is not printable ASCII: gmond escapes such characters into XML that no parser accepts. */
function plain(value: string | Uint8Array): string {
  const text = typeof value === 'string' ? value : lossyUtf8.decode(value)
  return text.replaceAll(/[^\t\n\r -~]/gu, '_')
}

/** The location, which is part of gmond's line of the host, like names. */
function locationOf(value: Value): string | undefined {
  const text = clean(textOf(value) ?? '')
  return text.length > MAX_LOCATION_BYTES ? undefined : text
}

/** A text at least as long as the escaped one of gmond. */
function escaped(text: string): string {
  return text.replaceAll(/[\t\n\r&<>"']/g, '&quot;')
}

/** The number as strtod reads it. */
function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  return Number.isFinite(value) ? String(value) : value > 0 ? 'inf' : '-inf'
}

/** The origin of a value, if it came from Ganglia and its host still exists. */
function originOf({ selection }: DeliveredMetric, name: string, host = ''): ValueOrigin | undefined {
  for (const sensor of selection.listening()) {
    const isGanglia = sensor instanceof GmetricSensor || sensor instanceof HostLiveness
    const origin = isGanglia && name.startsWith(sensor.family) ? sensor.originOf(name, host) : undefined
    if (origin) return origin
  }
  return undefined
}

/** A spoofed host; its address has no colon, because gmond splits address and name at the first one. */
function spoofed({ address, name }: Pick<GmetricHost, 'address' | 'name'>): PacketHost {
  return { spoofed: true, address: safe(address).replaceAll(':', '_'), name: safe(name || address) }
}

/** The host of a metric: this producer, or a spoofed host of which only the name is known. */
function hostOf(label: string | undefined, own: string): PacketHost {
  if (label === undefined || label === '' || label === own) return { spoofed: false, label: own }
  return spoofed({ address: label, name: label })
}

function nameOf(name: string, labels: Labels): string {
  const plain = name.startsWith(METRIC_PREFIX) ? name.slice(METRIC_PREFIX.length) : name
  const { agent, source, index, broker, object } = labels
  const parts = [plain, agent, source, index, broker, object].filter((part) => part !== undefined && part !== '')
  // gmond replaces a colon by `_` in the metric names of its own host, but not in others.
  return safe(parts.join('.')).replaceAll(':', '_')
}

/** A name that gmetad can use for a file or directory. */
function safe(name: string): string {
  return safeName(clean(name))
}

/** Text without XML syntax: gmond does not escape names, units and extra elements. */
function clean(text: string): string {
  return text.replaceAll(/["&'<>\p{Cc}]/gu, '_')
}
