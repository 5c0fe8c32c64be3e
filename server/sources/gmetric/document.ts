/**
 * What gmond would say of the hosts, in its XML, in pieces of one metric or tag each. gmond shows neither heartbeat nor
 * location as a metric, but as attributes of the host. A value whose metadata never came is shown too, as it travelled.
 */
import { formatNumber } from '../../../protocol/gmetric/format.ts'
import type { Metadata } from '../../../protocol/gmetric/packet.ts'
import {
  DOCUMENT_END,
  documentStart,
  HOST_END,
  hostStart,
  metricElement,
  safeName,
} from '../../../protocol/gmetric/xml.ts'
import type { ShownExtraElements } from './extras.ts'
import { DEFAULT_TMAX_SECONDS, type GmetricHost, type LastValue, type HostMetric } from './host.ts'
import type { Hosts } from './hosts.ts'
import { shownHost } from './series.ts'

/** Of the host, not of its metrics. */
const ATTRIBUTES = new Set(['heartbeat', 'location'])
const TYPES = new Set('string int8 uint8 int16 uint16 int32 uint32 float double timestamp'.split(' '))
const UNDECLARED: Metadata = { type: '', units: '', slope: 4, tmax: DEFAULT_TMAX_SECONDS, dmax: 0, extra: [] }
const lossyUtf8 = new TextDecoder()
/** gmetad writes a value, and the sum of those of all hosts, into 128 bytes without looking. */
const MAX_NUMBER = 1e90
const MAX_NUMBER_LENGTH = 100
/** Of what comes behind so much only the first bytes of names and texts are shown, so that there is an end. */
const IN_FULL_LENGTH = 128 * 1024 * 1024
const SHORT_BYTES = 400

export interface DocumentOptions {
  readonly cluster: string
  /** Monotonic. */
  readonly nowMs: number
  /** Seconds since 1970. */
  readonly localTime: number
}

interface Scope extends DocumentOptions {
  readonly hosts: Hosts
  readonly extras: ShownExtraElements
  /** Characters so far. */
  length: number
}

/** Of the hosts that are there when it begins, and of each its metrics when it comes to it: it may be read over many turns. */
export function* documentOf(hosts: Hosts, extras: ShownExtraElements, options: DocumentOptions): Generator<string> {
  extras.forget(options.nowMs)
  yield documentStart(options.cluster, options.localTime)
  const scope: Scope = { ...options, hosts, extras, length: 0 }
  const names = new Set<string>()
  for (const host of [...hosts.hosts()]) {
    // Two hosts under one name would be one directory, which gmetad calls by small letters: the first has it.
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
 * The declared one, if the value has it: metadata may have changed since the value came. What would spoil or overflow the
 * sum of all hosts is no number for gmetad.
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
    const text = formatNumber(format, sent, value.value)
    return text.length <= MAX_NUMBER_LENGTH ? text : formatNumber('', sent, value.value)
  }
  return typeof value.value === 'string' ? value.value : lossyUtf8.decode(value.value)
}

/** Seconds since 1970; 0 where what was sent cannot be that. */
function startedOf(heartbeat: LastValue | undefined): number {
  const started = heartbeat?.value.value
  return typeof started === 'number' && started >= 0 && started <= 0xffff_ffff ? Math.floor(started) : 0
}

/** Whole ones; what came while the document is made has an age of 0. */
function seconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000))
}
