/**
 * The hosts in gmond's XML, in pieces of one metric or tag each. As in gmond, heartbeat and location are attributes of the
 * host instead of metrics. A value without metadata is included with the type in which it was sent.
 */
import { printfNumber } from '../../../protocol/gmetric/format.ts'
import type { ExtraElement, Metadata } from '../../../protocol/gmetric/packet.ts'
import {
  DOCUMENT_END,
  documentStart,
  HOST_END,
  hostStart,
  metricElement,
  safeName,
} from '../../../protocol/gmetric/xml.ts'
import { DEFAULT_TMAX_SECONDS, type GmetricHost, type HostMetric, type LastValue } from './host.ts'
import type { Hosts } from './hosts.ts'
import { shownHost } from './series.ts'

/** Metrics that are attributes of the host. */
const ATTRIBUTES = new Set(['heartbeat', 'location'])
const TYPES = new Set('string int8 uint8 int16 uint16 int32 uint32 float double timestamp'.split(' '))
const UNDECLARED: Metadata = { type: '', units: '', slope: 4, tmax: DEFAULT_TMAX_SECONDS, dmax: 0, extra: [] }
const lossyUtf8 = new TextDecoder()
/** gmetad writes a value, and the sum over all hosts, into 128 bytes without a check. */
const MAX_NUMBER = 1e90
const MAX_NUMBER_LENGTH = 100
/** After this many characters, names and texts are shortened to their first bytes, to bound the document. */
const IN_FULL_LENGTH = 128 * 1024 * 1024
const SHORT_BYTES = 400

export interface DocumentOptions {
  readonly cluster: string
  /** Monotonic time in ms. */
  readonly nowMs: number
  /** Seconds since 1970. */
  readonly localTime: number
}

interface Scope extends DocumentOptions {
  readonly hosts: Hosts
  readonly extras: ShownExtraElements
  /** The number of characters so far. */
  length: number
}

/** The document may be read over many turns. It has the hosts that exist at its start, each with the metrics that exist when its turn comes. */
export function* documentOf(hosts: Hosts, extras: ShownExtraElements, options: DocumentOptions): Generator<string> {
  extras.forget(options.nowMs)
  yield documentStart(options.cluster, options.localTime)
  const scope: Scope = { ...options, hosts, extras, length: 0 }
  const names = new Set<string>()
  for (const host of [...hosts.hosts()]) {
    // gmetad makes a directory of each name, in lower case, so two hosts must not share one: the first host keeps the name.
    const name = [shownHost(host), host.address].map(safeName).find((each) => !names.has(each.toLowerCase()))
    if (name === undefined) continue
    names.add(name.toLowerCase())
    yield* hostElement(scope, host, name)
  }
  yield DOCUMENT_END
}

function* hostElement(scope: Scope, host: GmetricHost, name: string): Generator<string> {
  const { hosts, nowMs, localTime } = scope
  const tn = seconds(nowMs - host.heardMs)
  const { hostTmaxMs, hostDmaxMs } = hosts.limits
  const latest = (metric: string) => hosts.series(host.address, metric)?.latest
  yield hostStart({
    name,
    address: host.address,
    reported: localTime - tn,
    tn,
    tmax: seconds(hostTmaxMs),
    dmax: seconds(hostDmaxMs),
    location: textOf(latest('location')) || 'unspecified',
    started: startedOf(latest('heartbeat')),
  })
  const altered = new Set<string>()
  for (const series of [...hosts.all(host)]) {
    if (series.latest === undefined || ATTRIBUTES.has(series.metric)) continue
    const shown = safeName(series.metric)
    if (shown !== series.metric) {
      if (altered.has(shown) || hosts.series(host.address, shown) !== undefined) continue
      altered.add(shown)
    }
    const element = metricOf(series, series.latest, scope)
    scope.length += element.length
    yield element
  }
  yield HOST_END
}

function metricOf({ metric: name, metadata = UNDECLARED }: HostMetric, latest: LastValue, scope: Scope): string {
  const { nowMs, extras, length } = scope
  const { units, tmax, dmax, slope } = metadata
  const tn = seconds(nowMs - latest.timeMs)
  const extra = extras.shown(safeName(name), metadata.extra, nowMs)
  const metric = { name, value: textOf(latest), type: typeOf(metadata, latest), units, tn, tmax, dmax, slope, extra }
  return length < IN_FULL_LENGTH ? metricElement(metric) : metricElement(metric, SHORT_BYTES)
}

/**
 * The declared type, if the value still has it: metadata may have changed since the value came. A number that would spoil or
 * overflow the sum over all hosts is sent as text.
 */
function typeOf({ type }: Metadata, { sent, value }: LastValue): string {
  const isText = typeof value.value !== 'number' || !(Math.abs(value.value) <= MAX_NUMBER)
  if (TYPES.has(type) && (type === 'string') === isText) return type
  return isText ? 'string' : sent === 'string' ? 'double' : sent
}

function textOf(reading: LastValue | undefined): string {
  if (reading === undefined) return ''
  const { value, sent, format } = reading
  if (typeof value.value === 'number') {
    const text = printfNumber(format, sent, value.value)
    return text.length <= MAX_NUMBER_LENGTH ? text : printfNumber('', sent, value.value)
  }
  return typeof value.value === 'string' ? value.value : lossyUtf8.decode(value.value)
}

/** Seconds since 1970; 0 if the heartbeat cannot be such a time. */
function startedOf(heartbeat: LastValue | undefined): number {
  const started = heartbeat?.value.value
  return typeof started === 'number' && started >= 0 && started <= 0xffff_ffff ? Math.floor(started) : 0
}

/** Whole seconds; 0 for what came while the document was being made. */
function seconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000))
}

/** gmetad has room for 32, some of which may be from before a restart of this server, and for 1,572 bytes with the first metric. */
const MAX_ELEMENTS = 16
const MAX_BYTES = 1000
/** The only element that gmetad does not keep by name. */
const NOT_KEPT = 'SPOOF_HOST'
const ENTRY_BYTES = 64
const MAX_HELD_BYTES = 64 * 1024 * 1024
/** A name that was not used for this long may get other elements. */
const FORGOTTEN_MS = 3_600_000

interface Shown {
  readonly elements: Set<string>
  bytes: number
  usedMs: number
}

/**
 * Selects the extra elements for the XML. For each metric name, gmetad keeps every element that any host ever sent, for as
 * long as it runs, and crashes when they overflow its arrays. So only the first few elements of each name are shown.
 */
export class ShownExtraElements {
  readonly #byName = new Map<string, Shown>()
  #heldBytes = 0

  /** The elements of `extra` that may be shown for a metric of this name. */
  shown(metric: string, extra: readonly ExtraElement[], nowMs: number): readonly ExtraElement[] {
    if (extra.length === 0) return extra
    let shown = this.#byName.get(metric)
    if (shown === undefined) {
      shown = { elements: new Set(), bytes: 0, usedMs: nowMs }
      if (this.#hold(ENTRY_BYTES + metric.length)) this.#byName.set(metric, shown)
      else shown.bytes = MAX_BYTES
    }
    shown.usedMs = nowMs
    return extra.filter((element) => this.#mayShow(shown, element))
  }

  /** Removes unused names; call this now and then. */
  forget(nowMs: number): void {
    for (const [name, { bytes, usedMs }] of this.#byName) {
      if (nowMs - usedMs < FORGOTTEN_MS) continue
      this.#byName.delete(name)
      this.#heldBytes -= ENTRY_BYTES + name.length + bytes
    }
  }

  #mayShow(shown: Shown, { key, data }: ExtraElement): boolean {
    if (key.toUpperCase() === NOT_KEPT) return true
    const element = `${key}\0${data}`
    if (shown.elements.has(element)) return true
    if (shown.elements.size >= MAX_ELEMENTS || shown.bytes + element.length > MAX_BYTES) return false
    const bytes = Buffer.byteLength(element) + 1
    if (shown.bytes + bytes > MAX_BYTES || !this.#hold(bytes)) return false
    shown.elements.add(element)
    shown.bytes += bytes
    return true
  }

  #hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > MAX_HELD_BYTES) return false
    this.#heldBytes += bytes
    return true
  }
}
