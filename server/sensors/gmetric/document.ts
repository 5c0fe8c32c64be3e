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
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { DEFAULT_TMAX_SECONDS, type Host, type Reading, type Series } from './host.ts'
import type { Hosts } from './hosts.ts'
import { shownHost } from './series.ts'

/** Of the host, not of its metrics. */
const ATTRIBUTES = new Set(['heartbeat', 'location'])
const TYPES = new Set('string int8 uint8 int16 uint16 int32 uint32 float double timestamp'.split(' '))
const UNDECLARED: Metadata = { type: '', units: '', slope: 4, tmax: DEFAULT_TMAX_SECONDS, dmax: 0, extra: [] }
const lossyUtf8 = new TextDecoder()

export interface DocumentOptions {
  readonly cluster: string
  /** Monotonic. */
  readonly nowMs: number
  /** Seconds since 1970. */
  readonly localTime: number
}

/** Goes on where hosts come or go while it is read: then it is the document of a time in between. */
export function* documentOf(hosts: Hosts, options: DocumentOptions): Generator<string> {
  yield documentStart(options.cluster, options.localTime)
  const names = new Set<string>()
  for (const host of hosts.hosts()) {
    // Two hosts under one name would be one directory, which gmetad calls by small letters: the first has it.
    const name = [shownHost(host), host.address].map(safeName).find((each) => !names.has(each.toLowerCase()))
    if (name === undefined) continue
    names.add(name.toLowerCase())
    yield* hostElement(hosts, host, name, options)
  }
  yield DOCUMENT_END
}

function* hostElement(
  hosts: Hosts,
  host: Host,
  name: string,
  { nowMs, localTime }: DocumentOptions,
): Generator<string> {
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
    started: Number(latest('heartbeat')?.value.value ?? 0),
  })
  const altered = new Set<string>()
  for (const series of hosts.all(host)) {
    if (series.latest === undefined || ATTRIBUTES.has(series.metric)) continue
    const shown = safeName(series.metric)
    if (shown !== series.metric) {
      if (altered.has(shown) || hosts.series(host.address, shown) !== undefined) continue
      altered.add(shown)
    }
    yield metricOf(series, series.latest, nowMs)
  }
  yield HOST_END
}

function metricOf({ metric: name, metadata = UNDECLARED }: Series, latest: Reading, nowMs: number): string {
  const { units, tmax, dmax, slope, extra } = metadata
  const tn = seconds(nowMs - latest.timeMs)
  return metricElement({
    name,
    value: textOf(latest),
    type: typeOf(metadata, latest),
    units,
    tn,
    tmax,
    dmax,
    slope,
    extra,
  })
}

/** The declared one, if the value has it: metadata may have changed since the value came. */
function typeOf({ type }: Metadata, { sent, value }: Reading): string {
  const isText = value.type === BasicType.STRING
  if (TYPES.has(type) && (type === 'string') === isText) return type
  return isText ? 'string' : sent === 'string' ? 'double' : sent
}

function textOf(reading: Reading | undefined): string {
  if (reading === undefined) return ''
  const { value, sent, format } = reading
  if (typeof value.value === 'number') return formatNumber(format, sent, value.value)
  return typeof value.value === 'string' ? value.value : lossyUtf8.decode(value.value)
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
