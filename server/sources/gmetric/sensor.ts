/**
 * Ganglia's gmetric as metrics `gmetric.<name>`: takes datagrams, keeps what `Hosts` makes of them, tells the hub.
 * It knows no socket: a listener calls `packet`. Ages are measured on the monotonic clock, values are stamped by the
 * other; a wall clock that is set must neither expire a metric nor keep it.
 */
import type { Owner } from '../../../auth/permissions.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { decodePacket } from '../../../protocol/gmetric/decode.ts'
import { encodeRequest } from '../../../protocol/gmetric/encode.ts'
import type { GmetricPacket } from '../../../protocol/gmetric/packet.ts'
import { METRIC_PREFIX } from '../../../protocol/gmetric/text.ts'
import type { Clock } from '../../core/clock.ts'
import { Catalogue } from '../../metrics/catalogue.ts'
import type { ListeningSensor, Measurement, Metric, Series } from '../../metrics/metric.ts'
import { AllowedSenders } from '../allowed.ts'
import { feedName, type Meter, type TenantFeed, UNMETERED } from '../by-tenant.ts'
import { RateLimits } from './budget.ts'
import type { GmetricSection } from './config.ts'
import { documentOf } from './document.ts'
import { ShownExtraElements } from './extras.ts'
import type { GmetricHost, ValueOrigin, HostMetric as Received } from './host.ts'
import { DEFAULT_LIMITS, Hosts } from './hosts.ts'
import type { GmetricHub } from './hub.ts'
import { HostLiveness } from './liveness.ts'
import { MetadataRequests } from './requests.ts'
import { detailsOf, GmetricSeries, HOST_PARAMETERS } from './series.ts'

export type GmetricConfig = Pick<
  GmetricSection,
  'tenant' | 'allow' | 'spoof' | 'maxHosts' | 'maxMetrics' | 'hostTmaxMs' | 'hostDmaxMs' | 'packetsPerSecond'
>

/** Sends a request for metadata on its way, on account of a packet from `source`. */
export type SendRequest = (request: Uint8Array, source: string) => void

export interface XmlCounts {
  readonly served: number
  readonly refused: number
  readonly cutOff: number
}

export interface GmetricStatus {
  readonly name: string
  readonly state: 'listening' | 'off' | 'failed'
  readonly detail: string
  readonly counters: Readonly<Record<string, number>>
}

export class GmetricSensor implements ListeningSensor {
  readonly family = METRIC_PREFIX
  readonly polled = false
  readonly owner: Owner
  /** Which of its hosts are alive: a sensor of its own, to be swept behind this one. */
  readonly liveness: HostLiveness
  readonly #name: string
  readonly #meter: Meter
  readonly #hub: GmetricHub
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #sources: AllowedSenders
  readonly #hosts: Hosts
  readonly #catalogue = new Catalogue(METRIC_PREFIX, HOST_PARAMETERS, detailsOf)
  readonly #series = new Map<Received, GmetricSeries>()
  readonly #budgets: RateLimits
  readonly #requests = new MetadataRequests()
  readonly #extras = new ShownExtraElements()
  #ask: SendRequest | undefined
  #asked = 0
  #xml: XmlCounts | undefined
  #state: GmetricStatus['state'] = 'off'
  #detail = ''
  #kernelDrops: () => number | undefined = () => undefined

  constructor(
    config: GmetricConfig,
    hub: GmetricHub,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
    { meter = UNMETERED, named }: TenantFeed = {},
  ) {
    const { tenant, allow, spoof, maxHosts, maxMetrics, hostTmaxMs, hostDmaxMs } = config
    this.#name = feedName('gmetric', named)
    this.#meter = meter
    this.owner = { tenant }
    this.#hub = hub
    this.#clock = clock
    this.#sources = new AllowedSenders(allow)
    this.#hosts = new Hosts({ ...DEFAULT_LIMITS, spoof, maxHosts, maxMetrics, hostTmaxMs, hostDmaxMs })
    this.#budgets = new RateLimits(config.packetsPerSecond)
    const isFenced = (): boolean => this.isFenced
    this.liveness = new HostLiveness({ owner: this.owner, hosts: this.#hosts, hub, clock, isFenced })
  }

  /** Its values are kept out: its document is to be kept back too. */
  get isFenced(): boolean {
    return this.#hub.fences.has(this)
  }

  metrics(): Iterable<Metric> {
    return this.#catalogue.metrics()
  }

  metric(name: string): Metric | undefined {
    return this.#catalogue.metric(name)
  }

  series(name?: string): Iterable<GmetricSeries> {
    return this.#catalogue.series(name)
  }

  last(series: Series): Measurement | undefined {
    if (!(series instanceof GmetricSeries)) return undefined
    const reading = this.#hosts.fresh(series.received, this.#clock.monotonicMs())
    return reading && { value: reading.value, time: series.time }
  }

  /** Whose `name` is, and what its sender says of it; `host` as its label has it. */
  origin(name: string, host: string): ValueOrigin | undefined {
    const found = this.#hosts.find(host)
    if (found === undefined) return undefined
    return { host: found, metadata: this.#hosts.series(found.address, name.slice(METRIC_PREFIX.length))?.metadata }
  }

  /** Takes one datagram; `from` is its source address. Keeps no view of `bytes`, and nothing in them makes it throw. */
  packet(bytes: Uint8Array, from: string): void {
    const { tally } = this.#hosts
    tally.counters.packets++
    const source = this.#sources.of(from)
    if (!source.allowed) {
      tally.counters.refusedSource++
      return
    }
    const nowMs = this.#clock.monotonicMs()
    if (!this.#budgets.take(source.address, nowMs)) {
      tally.countBad('rateLimited', source.address)
      return
    }
    let packet: GmetricPacket
    try {
      packet = decodePacket(bytes)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      tally.countBad(error.code === 'UNKNOWN_MESSAGE' ? 'unknownId' : 'malformed', source.address)
      return
    }
    this.#accept(packet, source.address, nowMs)
  }

  /** To be called every second or so: forgets what was silent for too long. */
  sweep(): void {
    for (const received of this.#hosts.expire(this.#clock.monotonicMs())) {
      const series = this.#series.get(received)
      if (series) this.#remove(series)
    }
  }

  /** gmond's XML of all its hosts, in pieces. */
  document(cluster: string): Iterable<string> {
    const localTime = Math.floor(this.#clock.microseconds() / 1_000_000)
    return documentOf(this.#hosts, this.#extras, { cluster, nowMs: this.#clock.monotonicMs(), localTime })
  }

  /** From now on asks for the metadata of values that come without. */
  sendRequestsBy(ask: SendRequest): void {
    this.#ask = ask
  }

  /** A listener was opened; `kernelDrops`: datagrams that the kernel threw away, undefined where it does not say. */
  listens(detail: string, kernelDrops: () => number | undefined): void {
    this.#state = 'listening'
    this.#detail = detail
    this.#kernelDrops = kernelDrops
  }

  /** Its XML is served: what became of who came for it. */
  servesXml(counts: XmlCounts): void {
    this.#xml = counts
  }

  failed(detail: string): void {
    this.#state = 'failed'
    this.#detail = detail
  }

  status(): GmetricStatus {
    const { tally, hostCount, metricCount, bytes } = this.#hosts
    const kernelDrops = this.#kernelDrops()
    return {
      name: this.#name,
      state: this.#state,
      detail: [this.#detail, this.#worstSource()].filter(Boolean).join('; '),
      counters: {
        ...tally.counters,
        hosts: hostCount,
        metrics: metricCount,
        bytes,
        ...(this.#xml && { xmlServed: this.#xml.served, xmlRefused: this.#xml.refused, xmlCutOff: this.#xml.cutOff }),
        ...(this.#ask !== undefined && { asked: this.#asked }),
        ...(kernelDrops !== undefined && { kernelDrops }),
      },
    }
  }

  #accept(packet: GmetricPacket, source: string, nowMs: number): void {
    const isValue = packet.kind !== 'metadata' && packet.kind !== 'request'
    if (isValue && !this.#meter.take()) {
      this.#hosts.tally.counters.overQuota++
      return
    }
    const accepted = this.#hosts.accept(packet, source, nowMs)
    if (accepted.kind === 'refused' || accepted.kind === 'request') return
    // What the older family sends by number has no metadata that could be asked for.
    if (
      this.#ask &&
      packet.kind === 'value' &&
      packet.format !== '' &&
      this.#requests.isDue(accepted.series, source, nowMs)
    ) {
      this.#asked++
      this.#ask(encodeRequest(packet.host, packet.metric), source)
    }
    for (const host of accepted.renamed) this.#rename(host)
    const known = this.#series.get(accepted.series)
    const series = known ?? new GmetricSeries(accepted.series)
    if (known) this.#catalogue.update(series, series.reportedMetadata())
    else this.#add(series)
    if (accepted.kind !== 'value') return
    series.time = this.#clock.microseconds()
    this.#hub.emit(series, accepted.reading.value, series.time)
  }

  /** What a consumer of several hosts tells them by has changed: the old series ends for it, and another one begins. */
  #rename(host: GmetricHost): void {
    for (const received of this.#hosts.all(host)) {
      const before = this.#series.get(received)
      if (!before) continue
      if (!before.isRenamed) {
        this.#hub.born(this, before)
        continue
      }
      this.#remove(before)
      const after = new GmetricSeries(received)
      after.time = before.time
      this.#add(after)
    }
  }

  #add(series: GmetricSeries): void {
    this.#series.set(series.received, series)
    this.#catalogue.add(series)
    this.#catalogue.update(series, series.reportedMetadata())
    this.#hub.born(this, series)
  }

  #remove(series: GmetricSeries): void {
    this.#series.delete(series.received)
    this.#catalogue.remove(series)
    this.#hub.died(series)
  }

  #worstSource(): string {
    const [address, count] = [...this.#hosts.tally.badBySource].reduce(
      (worst, each) => (each[1] > worst[1] ? each : worst),
      ['', 0],
    )
    return count === 0 ? '' : `most bad packets came from ${address}: ${count}`
  }
}
