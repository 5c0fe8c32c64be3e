/**
 * Values as gmetric sends them: what is known of a metric first (and again every minute), then the value as text. Ganglia
 * tells metrics apart by host and name alone, so what else tells them apart here becomes part of the name.
 */
import { encodeMetadata, encodeText } from '../../protocol/gmetric/encode.ts'
import type { Metadata, PacketHost } from '../../protocol/gmetric/packet.ts'
import { METRIC_PREFIX } from '../../protocol/gmetric/text.ts'
import { SLOPES } from '../../protocol/gmetric/xml.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import type { Instance } from '../metrics/instance.ts'
import { type LabelName, labelNames, type Metric } from '../metrics/metric.ts'

/** What gmetric itself sends at most, and gmond reads. */
const MAX_PACKET_BYTES = 1464
const METADATA_MS = 60_000
/** When so many metrics have told of themselves, all do so again. */
const MAX_KNOWN = 65_536
const SLOPE_ZERO = 0
const SLOPE_BOTH = 3
const TMAX_SECONDS = 60
/** After a day of silence a metric is gone, as hosts are by Ganglia's default. */
const DMAX_SECONDS = 86_400

export interface PacketOptions {
  /** What this producer calls itself: its own metrics are not spoofed. */
  readonly name: string
  readonly metric: (name: string) => Pick<Metric, 'unit' | 'description' | 'details'> | undefined
  /** Monotonic, ms. */
  readonly now: () => number
}

/** What a metric tells of itself under. */
interface Told {
  /** Here. */
  readonly name: string
  readonly host: PacketHost
  /** There. */
  readonly metric: string
  readonly type: string
}

type Labels = Partial<Record<LabelName, string>>

export class GmetricPackets {
  readonly #options: PacketOptions
  /** When each metric last told what it is. */
  readonly #known = new Map<string, number>()

  constructor(options: PacketOptions) {
    this.#options = options
  }

  /** The datagrams that carry a value of `instance`; none if it cannot be said in gmetric. */
  of(instance: Instance, given: Value): Uint8Array[] {
    const { labels, value } = taken(instance, given)
    const text = value && textOf(value)
    if (text === undefined) return []
    const name = labels.name ?? instance.selection.name
    const host = hostOf(labels.host, this.#options.name)
    const metric = nameOf(name, labels)
    const packet = encodeText(host, metric, text.value)
    if (packet.length > MAX_PACKET_BYTES) return []
    const metadata = this.#metadata({ name, host, metric, type: text.type })
    return metadata === undefined ? [] : [...metadata, packet]
  }

  /** Nothing where it was told lately; undefined if it cannot be told. */
  #metadata({ name, host, metric, type }: Told): Uint8Array[] | undefined {
    const now = this.#options.now()
    const key = JSON.stringify([host, metric, type])
    const told = this.#known.get(key)
    if (told !== undefined && now - told < METADATA_MS) return []
    const { unit = '', description = '', details } = this.#options.metric(name) ?? {}
    const said = new Map(details?.().map((field) => [field.name, field.value]))
    const about: Metadata = {
      type,
      units: clean(unit),
      slope: slopeOf(said.get('slope')) ?? (type === 'string' ? SLOPE_ZERO : SLOPE_BOTH),
      tmax: secondsOf(said.get('tmax')) ?? TMAX_SECONDS,
      dmax: secondsOf(said.get('dmax')) ?? DMAX_SECONDS,
      extra: host.spoofed ? [{ key: 'SPOOF_HOST', data: `${host.address}:${host.name}` }] : [],
    }
    const extra = [...about.extra, ...texts('DESC', description), ...texts('TITLE', said.get('title'))]
    const groups = said.get('groups')
    if (isList(groups)) for (const group of groups.items) extra.push(...texts('GROUP', group))
    const fitting = [encodeMetadata(host, metric, { ...about, extra }), encodeMetadata(host, metric, about)].find(
      ({ length }) => length <= MAX_PACKET_BYTES,
    )
    if (fitting === undefined) return undefined
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(key, now)
    return [fitting]
  }
}

/** The labels of a value, and itself: those that the arguments name, and those that stand in the REC of a pattern. */
function taken({ selection }: Instance, given: Value): { readonly labels: Labels; readonly value: Value | undefined } {
  const labels: Labels = {}
  for (const { name, value } of selection.args) {
    if (isLabel(name) && typeof value === 'string' && !value.includes('*')) labels[name] = value
  }
  if (!selection.isPattern) return { labels, value: given }
  if (given.type !== BasicType.REC) return { labels, value: undefined }
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

/** 64 bits fit no integer of Ganglia's: as text of a double they keep all their digits. */
function textOf(value: Value): { readonly type: string; readonly value: string | Uint8Array } | undefined {
  switch (value.type) {
    case BasicType.INT32:
      return { type: 'int32', value: String(value.value) }
    case BasicType.UINT32:
      return { type: 'uint32', value: String(value.value) }
    case BasicType.INT64:
    case BasicType.UINT64:
      return { type: 'double', value: String(value.value) }
    case BasicType.DOUBLE:
      return { type: 'double', value: doubleText(value.value) }
    case BasicType.BOOLEAN:
      return { type: 'uint8', value: value.value ? '1' : '0' }
    case BasicType.STRING:
      return { type: 'string', value: value.value }
    default:
      return undefined
  }
}

type Said = Field['value'] | undefined

/** What Ganglia itself said of its metric goes on as it was. */
function slopeOf(said: Said): number | undefined {
  const slope = (SLOPES as readonly unknown[]).indexOf(said)
  return slope < 0 ? undefined : slope
}

function secondsOf(said: Said): number | undefined {
  return typeof said === 'number' ? said : undefined
}

function isList(said: Said): said is Extract<Value, { type: typeof BasicType.ARRAY }>['value'] {
  return typeof said === 'object' && said !== null && 'items' in said
}

function texts(key: string, said: unknown): { key: string; data: string }[] {
  return typeof said === 'string' && said !== '' ? [{ key, data: clean(said) }] : []
}

/** As strtod reads it. */
function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  return Number.isFinite(value) ? String(value) : value > 0 ? 'inf' : '-inf'
}

/** Whose it is: the sender's own, or that of a host for which we speak. gmond parts address and name at the first colon. */
function hostOf(label: string | undefined, own: string): PacketHost {
  if (label === undefined || label === '' || label === own) return { spoofed: false, label: own }
  const name = clean(label).replaceAll(':', '_')
  return { spoofed: true, address: name, name }
}

function nameOf(name: string, labels: Labels): string {
  const plain = name.startsWith(METRIC_PREFIX) ? name.slice(METRIC_PREFIX.length) : name
  const { agent, source, index, broker, object } = labels
  const parts = [plain, agent, source, index, broker, object].filter((part) => part !== undefined && part !== '')
  // gmond makes `_` of a colon in the names of its own host, and leaves it elsewhere.
  return clean(parts.join('.')).replaceAll(':', '_')
}

/** gmond writes names and units into its XML as they are. */
function clean(text: string): string {
  return text.replaceAll(/["&'<>\p{Cc}]/gu, '_')
}
