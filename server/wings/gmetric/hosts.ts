/**
 * The hosts that gmetric senders reported, their metrics, and the metadata and last value of each. This is pure state,
 * bounded in hosts, metrics and bytes; time is handed in. A host is identified by its address: that of the sender, or the
 * spoofed one. The name in an unspoofed packet is only shown, never used for look-ups, because it cannot be trusted.
 */
import type { GmetricPacket, PacketHost } from '../../../protocol/gmetric/packet.ts'
import { basicValue } from '../../../protocol/gmetric/value.ts'
import {
  bytesOf,
  type GmetricHost,
  type GmetricHostState,
  type HostMetric,
  type HostMetricState,
  isSilent,
  type LastValue,
  tmaxMs,
} from './host.ts'
import { type Amount, Capacity } from './limits.ts'

export interface HostLimits {
  readonly spoof: boolean
  readonly maxHosts: number
  /** The limit for all hosts together. */
  readonly maxMetrics: number
  /** The limit for names, metadata and last values together. It is an estimate: a character counts as a byte, an object as OBJECT_BYTES. */
  readonly maxBytes: number
  /** A host that has been silent for longer than four times this is down. */
  readonly hostTmaxMs: number
  /** A host that has been silent for this long is removed, whatever the dmax of its metrics. */
  readonly hostDmaxMs: number
}

export const DEFAULT_LIMITS: HostLimits = {
  spoof: true,
  maxHosts: 10_000,
  maxMetrics: 200_000,
  maxBytes: 256 * 1024 * 1024,
  hostTmaxMs: 20_000,
  hostDmaxMs: 86_400_000,
}

/** As in Ganglia, a metric is late after one tmax and gone after four. */
const FRESH_TMAXES = 4
/** How long a changed name is kept, because every change ends all series of the host and begins new ones. */
const NAME_HELD_MS = 60_000
/** Metrics that are looked at in one step. */
const PER_STEP = 256
const NONE: readonly GmetricHost[] = []
const FULL = { hosts: 'hostsFull', metrics: 'metricsFull', bytes: 'bytesFull' } as const

/** A packet was taken. `renamed` has the hosts that gained or lost a name by it. */
interface Taken {
  readonly series: HostMetric
  readonly born: boolean
  readonly renamed: readonly GmetricHost[]
}

export type AcceptResult =
  | (Taken & { readonly kind: 'value'; readonly reading: LastValue })
  | (Taken & { readonly kind: 'metadata' })
  | { readonly kind: 'request' }
  | { readonly kind: 'refused'; readonly reason: 'spoof' | 'unparsable' | 'full' }

export class Hosts {
  readonly tally: Tally
  readonly #limits: HostLimits
  readonly #byAddress = new Map<string, GmetricHostState>()
  readonly #byName = new Map<string, GmetricHostState>()
  readonly #room: Capacity

  constructor(limits: HostLimits = DEFAULT_LIMITS, tally = new Tally()) {
    this.#limits = limits
    this.#room = new Capacity({ hosts: limits.maxHosts, metrics: limits.maxMetrics, bytes: limits.maxBytes })
    this.tally = tally
  }

  get hostCount(): number {
    return this.#byAddress.size
  }

  get metricCount(): number {
    return this.#room.taken.metrics
  }

  /** The number that `maxBytes` bounds. */
  get bytes(): number {
    return this.#room.taken.bytes
  }

  /** The limits, and the times after which a host is down or removed. */
  get limits(): HostLimits {
    return this.#limits
  }

  hosts(): Iterable<GmetricHost> {
    return this.#byAddress.values()
  }

  isUp(host: GmetricHost, nowMs: number): boolean {
    return nowMs - host.heardMs <= FRESH_TMAXES * this.#limits.hostTmaxMs
  }

  /** Finds a host by address or, if no host has that address, by spoofed name. */
  find(host: string): GmetricHost | undefined {
    return this.#find(host)
  }

  series(host: string, metric: string): HostMetric | undefined {
    return this.#find(host)?.series.get(metric)
  }

  /** All series, or those of one host. */
  *all(host?: GmetricHost): Generator<HostMetric> {
    if (host) yield* this.#byAddress.get(host.address)?.series.values() ?? []
    else for (const each of this.#byAddress.values()) yield* each.series.values()
  }

  /** The last value, unless it is older than the dmax of the metric or four times its tmax (60 s if that is 0 or unknown). */
  fresh(series: HostMetric, nowMs: number): LastValue | undefined {
    const { latest } = series
    return latest && nowMs - latest.timeMs <= FRESH_TMAXES * tmaxMs(series) && !isSilent(series, nowMs)
      ? latest
      : undefined
  }

  /** Accepts and counts a packet that came from `sourceAddress` at `nowMs`. Its objects are kept, not copied. */
  accept(packet: GmetricPacket, sourceAddress: string, nowMs: number): AcceptResult {
    const { counters } = this.tally
    if (packet.host.spoofed && !this.#limits.spoof) {
      counters.spoofRefused++
      return { kind: 'refused', reason: 'spoof' }
    }
    if (packet.kind === 'request') {
      counters.requests++
      return { kind: 'request' }
    }
    const address = packet.host.spoofed ? packet.host.address : sourceAddress
    const known = this.#byAddress.get(address)?.series.get(packet.metric)
    const metadata = packet.kind === 'value' ? known?.metadata : packet.metadata
    let latest = known?.latest
    if (packet.kind !== 'metadata') {
      const sent = packet.kind === 'value' ? packet.type : 'string'
      const value = basicValue(metadata?.type ?? undeclaredType(packet.metric), sent, packet.value)
      if (!value) {
        this.tally.countBad('unparsable', sourceAddress)
        return { kind: 'refused', reason: 'unparsable' }
      }
      latest = { value, timeMs: nowMs, sent, format: packet.kind === 'value' ? packet.format : '' }
    }
    const bytes = bytesOf(packet.metric, metadata, latest)
    const maker = known?.source ?? sourceAddress
    const more = this.#additional(address, known, bytes)
    const lacking = more && this.#room.findFull(maker, more)
    if (lacking) {
      this.tally.countBad(FULL[lacking], sourceAddress)
      return { kind: 'refused', reason: 'full' }
    }
    const shadowed = this.#byAddress.has(address) ? undefined : this.#byName.get(address)
    const series = known ?? this.#create(address, packet.metric, maker)
    if (more) this.#room.book(maker, more)
    series.metadata = metadata
    series.latest = latest
    series.bytes = bytes
    series.heardMs = series.host.heardMs = nowMs
    const renamed = this.#identify(series.host, packet.host, shadowed, more?.hosts === 1, nowMs)
    const born = known === undefined
    if (packet.kind === 'metadata' || !latest) {
      counters.metadata++
      return { kind: 'metadata', series, born, renamed }
    }
    counters.values++
    return { kind: 'value', series, reading: latest, born, renamed }
  }

  /**
   * Removes the metrics that were silent for longer than their dmax, and silent hosts with all their metrics; gives each of them.
   * Undefined is a place to pause: packets may come then.
   */
  *expire(nowMs: number): Generator<HostMetric | undefined, void, void> {
    let looked = 0
    for (const host of this.#byAddress.values()) {
      const isGone = (): boolean => nowMs - host.heardMs > this.#limits.hostDmaxMs
      for (const series of host.series.values()) {
        if (++looked % PER_STEP === 0) yield
        if (!isGone() && !isSilent(series, nowMs)) continue
        host.series.delete(series.metric)
        this.#room.book(series.source, { hosts: 0, metrics: -1, bytes: -series.bytes })
        yield series
      }
      // A packet that came during a pause has brought it back.
      if (!isGone() || host.series.size > 0) continue
      this.#byAddress.delete(host.address)
      this.#byName.delete(host.name)
      this.#room.book(host.source, { hosts: -1, metrics: 0, bytes: 0 })
    }
  }

  #find(host: string): GmetricHostState | undefined {
    return this.#byAddress.get(host) ?? this.#byName.get(host)
  }

  /** The additional capacity that a packet needs; undefined if none, as for most values. */
  #additional(address: string, known: HostMetricState | undefined, bytes: number): Amount | undefined {
    if (known) return bytes === known.bytes ? undefined : { hosts: 0, metrics: 0, bytes: bytes - known.bytes }
    return { hosts: this.#byAddress.has(address) ? 0 : 1, metrics: 1, bytes }
  }

  #create(address: string, metric: string, source: string): HostMetricState {
    let host = this.#byAddress.get(address)
    if (!host) {
      host = {
        address,
        name: '',
        label: address,
        heardMs: 0,
        namedMs: Number.NEGATIVE_INFINITY,
        source,
        series: new Map(),
      }
      this.#byAddress.set(address, host)
    }
    const series = { host, metric, metadata: undefined, latest: undefined, heardMs: 0, bytes: 0, source }
    host.series.set(metric, series)
    return series
  }

  /**
   * Updates the names. A name belongs to the host whose packet used it last, so a machine that moved is found at its new
   * address, but a name is not moved again within NAME_HELD_MS. An address takes precedence over an equal name: `shadowed`
   * is a host whose name equals the address of a new host, and loses that name.
   */
  #identify(
    host: GmetricHostState,
    reported: PacketHost,
    shadowed: GmetricHostState | undefined,
    isNew: boolean,
    nowMs: number,
  ): readonly GmetricHost[] {
    if (shadowed) this.#unname(shadowed, nowMs)
    const renamed = shadowed ? [shadowed] : NONE
    if (!reported.spoofed) {
      if (host.name === '') host.label = reported.label || host.address
      return renamed
    }
    const isNameHeld = ({ namedMs }: GmetricHostState): boolean => nowMs - namedMs <= NAME_HELD_MS
    const previous = this.#byName.get(reported.name)
    if (previous === host || this.#isOther(reported.name, host)) return renamed
    if (isNameHeld(host) || (previous && isNameHeld(previous))) return renamed
    if (previous) this.#unname(previous, nowMs)
    this.#byName.delete(host.name)
    this.#byName.set(reported.name, host)
    host.name = host.label = reported.name
    // A new host has no series that would end.
    if (!isNew) host.namedMs = nowMs
    return [host, ...(previous ? [previous] : []), ...renamed]
  }

  #isOther(address: string, host: GmetricHostState): boolean {
    const other = this.#byAddress.get(address)
    return other !== undefined && other !== host
  }

  #unname(host: GmetricHostState, nowMs: number): void {
    this.#byName.delete(host.name)
    host.name = ''
    host.label = host.address
    host.namedMs = nowMs
  }
}

/** Until its metadata is known, a value has the type in which it was sent; but a heartbeat is a number even if sent as text. */
function undeclaredType(metric: string): string | undefined {
  return metric === 'heartbeat' ? 'uint32' : undefined
}

export interface GmetricCounters {
  /** All datagrams that arrived. */
  packets: number
  /** Refused before decoding because the source is not allowed. */
  refusedSource: number
  /** Not decoded because the source exceeded its packets per second. */
  rateLimited: number
  /** Not decodable: an impossible length, name or count. */
  malformed: number
  /** Not decodable: the first number is not that of a gmetric message. */
  unknownId: number
  /** Refused because the packet is spoofed and spoofing is off. */
  spoofRefused: number
  /** Values that do not fit their declared type. */
  unparsable: number
  /** Refused because there is no capacity for another host, another metric, or the bytes. */
  hostsFull: number
  metricsFull: number
  bytesFull: number
  /** Values discarded because the tenant exceeded its values per second. */
  overQuota: number
  /** Accepted values, with or without metadata. */
  values: number
  /** Accepted metadata without a value. */
  metadata: number
  /** Requests for metadata. They are not answered, because the metadata here belongs to others. */
  requests: number
}

/** The counters that are also kept per source. */
type Bad = 'rateLimited' | 'malformed' | 'unknownId' | 'unparsable' | 'hostsFull' | 'metricsFull' | 'bytesFull'

/**
 * Counts the outcomes of datagrams. Each has exactly one: packets = values + metadata + requests + all refusals. `Hosts`
 * counts the packets it is given; the sensor counts `packets`, `refusedSource` and what does not decode. Bad packets are
 * also counted per source, for a bounded number of sources: forged sender addresses must not cost memory.
 */
export class Tally {
  readonly counters: GmetricCounters = {
    packets: 0,
    refusedSource: 0,
    rateLimited: 0,
    malformed: 0,
    unknownId: 0,
    spoofRefused: 0,
    unparsable: 0,
    hostsFull: 0,
    metricsFull: 0,
    bytesFull: 0,
    overQuota: 0,
    values: 0,
    metadata: 0,
    requests: 0,
  }
  readonly #maxSources: number
  readonly #badBySource = new Map<string, number>()
  #badFromOthers = 0

  constructor(maxSources = 256) {
    this.#maxSources = maxSources
  }

  /** The number of bad packets by source address, for the first sources only. */
  get badBySource(): ReadonlyMap<string, number> {
    return this.#badBySource
  }

  /** The number of bad packets from all other sources. */
  get badFromOthers(): number {
    return this.#badFromOthers
  }

  /** Counts a datagram that is faulty, or beyond a limit, against its source. */
  countBad(counter: Bad, source: string): void {
    this.counters[counter]++
    const count = this.#badBySource.get(source)
    if (count !== undefined) this.#badBySource.set(source, count + 1)
    else if (this.#badBySource.size < this.#maxSources) this.#badBySource.set(source, 1)
    else this.#badFromOthers++
  }
}
