/**
 * Values as gmetric sends them: what is known of a metric first (and again every minute), then the value as text. Ganglia
 * tells metrics apart by host and name alone, so what else tells them apart here becomes part of the name. gmond takes
 * nearly everything, but its XML and gmetad behind it do not bear everything: what would break them is altered here.
 */
import { encodeMetadata, encodeText, encodeUint32 } from '../../../protocol/gmetric/encode.ts'
import type { ExtraElement, Metadata, PacketHost } from '../../../protocol/gmetric/packet.ts'
import { METRIC_PREFIX } from '../../../protocol/gmetric/text.ts'
import { SLOPES, safeName } from '../../../protocol/gmetric/xml.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { MetricInstance } from '../../metrics/instance.ts'
import { type LabelName, labelNames, type Metric } from '../../metrics/metric.ts'
import { ShownExtraElements } from './extras.ts'
import type { GmetricHost, ValueOrigin } from './host.ts'
import { HostLiveness } from './liveness.ts'
import { GmetricSensor } from './sensor.ts'

const { INT32, UINT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, REC } = BasicType

/** What gmetric itself sends at most, and gmond reads. */
const MAX_PACKET_BYTES = 1464
/** gmond has 1,024 bytes for a line of its XML, and cuts off the rest: of a metric name, value and units, or one element. */
const MAX_LINE_BYTES = 900
/** The line of a host has its name and address too. */
const MAX_LOCATION_BYTES = 255
/** gmetad has 1,572 bytes for name, value, units and extra elements of a metric, with type, slope and source. */
const MAX_SHOWN_BYTES = 1500
const MAX_NUMBER_BYTES = 32
const MAX_UNITS_CHARACTERS = 64
/** In a packet, beside its text: two lengths and two paddings. */
const ELEMENT_BYTES = 14
const METADATA_MS = 60_000
/** When so many metrics have told of themselves, all do so again. */
const MAX_KNOWN = 65_536
/** gmond shows these of the host, not as metrics. */
const HEARTBEAT = `${METRIC_PREFIX}heartbeat`
const LOCATION = `${METRIC_PREFIX}location`
const SLOPE_ZERO = 0
const SLOPE_BOTH = 3
const SLOPE_UNSPECIFIED = 4
const TMAX_SECONDS = 60
/** After a day of silence a metric is gone, as hosts are by Ganglia's default. */
const DMAX_SECONDS = 86_400

/** What Ganglia calls each type; another than the first only where the sender declared it so. 64 bits fit no integer of it. */
const TYPES: ReadonlyMap<BasicType, readonly [string, ...string[]]> = new Map([
  [INT32, ['int32', 'int16', 'int8']],
  [UINT32, ['uint32', 'uint16', 'uint8', 'timestamp']],
  [INT64, ['double']],
  [UINT64, ['double']],
  [DOUBLE, ['double', 'float']],
  [BOOLEAN, ['uint8']],
  [STRING, ['string']],
])

/** It would overflow gmetad's sums of all hosts. */
const MAX_NUMBER = 1e90

export interface PacketOptions {
  /** What this producer calls itself: its own metrics are not spoofed. */
  readonly name: string
  readonly metric: (name: string) => Pick<Metric, 'unit' | 'description'> | undefined
  /** Monotonic, ms. */
  readonly now: () => number
}

type Labels = Partial<Record<LabelName, string>>

export class GmetricPackets {
  readonly #options: PacketOptions
  /** As what each metric told of itself last, and when. */
  readonly #known = new Map<string, { readonly type: string; readonly toldMs: number }>()
  readonly #extras = new ShownExtraElements()

  constructor(options: PacketOptions) {
    this.#options = options
  }

  /** The datagrams that carry a value of `instance`; none if it cannot be said in gmetric. */
  of(instance: MetricInstance, given: Value): Uint8Array[] {
    const { labels, value } = taken(instance, given)
    if (value === undefined) return []
    const name = labels.name ?? instance.selection.name
    const types = typesOf(value)
    const text = name === LOCATION ? locationOf(value) : textOf(value)
    if (types === undefined || text === undefined) return []
    const origin = originOf(instance, name, labels.host)
    const host = origin ? spoofed(origin.host) : hostOf(labels.host, this.#options.name)
    const metric = nameOf(name, labels)
    const said = origin?.metadata ?? this.#described(name, types[0])
    const type = types.find((each) => each === said.type) ?? types[0]
    const units = clean(said.units).slice(0, MAX_UNITS_CHARACTERS)
    if (bytes(metric) + bytes(units) + bytes(escaped(text)) > MAX_LINE_BYTES) return []
    // gmond reads a heartbeat as the number it is, whatever it came as.
    const isBeat = name === HEARTBEAT && value.type === UINT32
    const packet = isBeat ? encodeUint32(host, metric, value.value) : encodeText(host, metric, text)
    if (packet.length > MAX_PACKET_BYTES) return []
    const metadata = this.#metadata(host, metric, { ...said, type, units })
    return metadata === undefined ? [] : [...metadata, packet]
  }

  /** Of what did not come from Ganglia. */
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

  /** Nothing where it was told lately; undefined if it cannot be told. */
  #metadata(host: PacketHost, metric: string, about: Metadata): Uint8Array[] | undefined {
    const now = this.#options.now()
    const key = JSON.stringify([host, metric])
    const known = this.#known.get(key)
    if (known?.type === about.type && now - known.toldMs < METADATA_MS) return []
    const extra = this.#extras.shown(metric, about.extra, now)
    const packet = metadataPacket(host, metric, { ...about, extra })
    if (packet.length > MAX_PACKET_BYTES) return undefined
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(key, { type: about.type, toldMs: now })
    return [packet]
  }
}

/** With as many of the extra elements as there is room for, here and where it is shown. */
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

/** The labels of a value, and itself: those that the arguments name, and those that stand in the REC of a pattern. */
function taken(
  { selection }: MetricInstance,
  given: Value,
): { readonly labels: Labels; readonly value: Value | undefined } {
  const labels: Labels = {}
  for (const { name, value } of selection.args) {
    if (isLabel(name) && typeof value === 'string' && !value.includes('*')) labels[name] = value
  }
  if (!selection.isPattern) return { labels, value: given }
  if (given.type !== REC) return { labels, value: undefined }
  let value: Field | undefined
  for (const field of given.value) {
    if (field.name === 'value') value = field
    else if (isLabel(field.name) && typeof field.value === 'string') labels[field.name] = field.value
  }
  return { labels, value }
}

function isLabel(name: string): name is LabelName {
  return (labelNames as readonly string[]).includes(name)
}

/** What spoils a sum, or overflows it, is no number for gmetad. */
function typesOf({ type, value }: Value): readonly [string, ...string[]] | undefined {
  const isText = type === DOUBLE && !(Math.abs(value) <= MAX_NUMBER)
  return TYPES.get(isText ? STRING : type)
}

/** undefined: gmetric has no form for it. */
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

/** gmond means to escape what is not ASCII, or no character of XML, and writes what no parser reads. */
function plain(value: string | Uint8Array): string {
  const text = typeof value === 'string' ? value : lossyUtf8.decode(value)
  return text.replaceAll(/[^\t\n\r -~]/gu, '_')
}

/** It goes into gmond's line of the host, as names do. */
function locationOf(value: Value): string | undefined {
  const text = clean(textOf(value) ?? '')
  return text.length > MAX_LOCATION_BYTES ? undefined : text
}

/** At least as long as what gmond makes of it. */
function escaped(text: string): string {
  return text.replaceAll(/[\t\n\r&<>"']/g, '&quot;')
}

/** As strtod reads it. */
function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  return Number.isFinite(value) ? String(value) : value > 0 ? 'inf' : '-inf'
}

/** Where a value came from, if it is one of Ganglia's and its host is still known. */
function originOf({ selection }: MetricInstance, name: string, host = ''): ValueOrigin | undefined {
  for (const sensor of selection.listening()) {
    const isGanglia = sensor instanceof GmetricSensor || sensor instanceof HostLiveness
    const origin = isGanglia && name.startsWith(sensor.family) ? sensor.origin(name, host) : undefined
    if (origin) return origin
  }
  return undefined
}

/** gmond parts address and name at the first colon. */
function spoofed({ address, name }: Pick<GmetricHost, 'address' | 'name'>): PacketHost {
  return { spoofed: true, address: safe(address).replaceAll(':', '_'), name: safe(name || address) }
}

/** Whose it is: the sender's own, or that of a host for which we speak, and of which nothing but the name is known. */
function hostOf(label: string | undefined, own: string): PacketHost {
  if (label === undefined || label === '' || label === own) return { spoofed: false, label: own }
  return spoofed({ address: label, name: label })
}

function nameOf(name: string, labels: Labels): string {
  const plain = name.startsWith(METRIC_PREFIX) ? name.slice(METRIC_PREFIX.length) : name
  const { agent, source, index, broker, object } = labels
  const parts = [plain, agent, source, index, broker, object].filter((part) => part !== undefined && part !== '')
  // gmond makes `_` of a colon in the names of its own host, and leaves it elsewhere.
  return safe(parts.join('.')).replaceAll(':', '_')
}

/** gmetad makes files and directories of names. */
function safe(name: string): string {
  return safeName(clean(name))
}

/** gmond writes names, units and extra elements into its XML as they are. */
function clean(text: string): string {
  return text.replaceAll(/["&'<>\p{Cc}]/gu, '_')
}
