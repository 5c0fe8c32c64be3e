/**
 * Ganglia's gmetric as metrics `gmetric.<name>`: decodes datagrams, keeps their content in `Hosts`, and reports to the hub.
 * It has no socket: a listener calls `packet`. Ages are measured with the monotonic clock, and values are stamped with the
 * wall clock, because setting the wall clock must neither expire a metric nor keep it.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { PacketDecoder } from '../../../protocol/gmetric/decoder.ts'
import { encodeRequest } from '../../../protocol/gmetric/encode.ts'
import { type GmetricPacket, METRIC_PREFIX } from '../../../protocol/gmetric/packet.ts'
import type { TenantFeed } from '../../kit/by-tenant.ts'
import { Catalogue, type Measurement, type Series } from '../../kit/metrics.ts'
import { ReceivingSensor, type SourceReport } from '../../kit/receiving-sensor.ts'
import type { Clock, Steps } from '../../kit/running.ts'
import type { GmetricSection } from './config.ts'
import { documentOf, ShownExtraElements } from './document.ts'
import type { GmetricHost, HostMetric as Received, ValueOrigin } from './host.ts'
import { DEFAULT_LIMITS, Hosts } from './hosts.ts'
import { MetadataRequests, RateLimits } from './limits.ts'
import { type GmetricHub, HostLiveness } from './liveness.ts'
import { detailsOf, GmetricSeries, HOST_PARAMETERS } from './series.ts'

export type GmetricConfig = Pick<
  GmetricSection,
  'tenant' | 'allow' | 'spoof' | 'maxHosts' | 'maxMetrics' | 'hostTmaxMs' | 'hostDmaxMs' | 'packetsPerSecond'
>

/** Sends a request for metadata after a packet from `source`. */
export type SendRequest = (request: Uint8Array, source: string) => void

export interface GmetricOptions extends TenantFeed {
  /** Whether an operator has the values of the sensor discarded. */
  readonly isFenced?: (sensor: GmetricSensor) => boolean
}

export interface XmlCounts {
  readonly served: number
  readonly refused: number
  readonly cutOff: number
}

export class GmetricSensor extends ReceivingSensor<GmetricSeries> {
  /** The sensor that reports which hosts are alive; it is swept with this one. */
  readonly liveness: HostLiveness
  readonly #hub: GmetricHub
  readonly #isFenced: (sensor: GmetricSensor) => boolean
  #isSwept = false
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #decoder = new PacketDecoder()
  readonly #hosts: Hosts
  readonly #series = new Map<Received, GmetricSeries>()
  readonly #budgets: RateLimits
  readonly #requests = new MetadataRequests()
  readonly #extras = new ShownExtraElements()
  #sendRequest: SendRequest | undefined
  #requested = 0
  #xml: XmlCounts | undefined

  constructor(
    config: GmetricConfig,
    hub: GmetricHub,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
    { isFenced = () => false, ...feed }: GmetricOptions = {},
  ) {
    const { tenant, allow, spoof, maxHosts, maxMetrics, hostTmaxMs, hostDmaxMs } = config
    const catalogue = new Catalogue(METRIC_PREFIX, HOST_PARAMETERS, detailsOf)
    super({ ...feed, kind: 'gmetric', family: METRIC_PREFIX, tenant, allow, catalogue, hub })
    this.#hub = hub
    this.#isFenced = isFenced
    this.#clock = clock
    this.#hosts = new Hosts({ ...DEFAULT_LIMITS, spoof, maxHosts, maxMetrics, hostTmaxMs, hostDmaxMs })
    this.#budgets = new RateLimits(config.packetsPerSecond)
    this.liveness = new HostLiveness({
      owner: this.owner,
      hosts: this.#hosts,
      hub,
      clock,
      isFenced: () => this.isFenced,
    })
  }

  /** Whether its values are discarded; then its document must be withheld too. */
  get isFenced(): boolean {
    return this.#isFenced(this)
  }

  last(series: Series): Measurement | undefined {
    if (!(series instanceof GmetricSeries)) return undefined
    const reading = this.#hosts.fresh(series.received, this.#clock.monotonicMs())
    return reading && { value: reading.value, time: series.time }
  }

  hostHeardMs(series: Series): number | undefined {
    return series instanceof GmetricSeries ? series.received.host.heardMs : undefined
  }

  /** The host of the metric and its reported metadata; `host` is its label. */
  originOf(name: string, host: string): ValueOrigin | undefined {
    const found = this.#hosts.find(host)
    if (found === undefined) return undefined
    return { host: found, metadata: this.#hosts.series(found.address, name.slice(METRIC_PREFIX.length))?.metadata }
  }

  /** Takes one datagram from the address `from`. Keeps no view of `bytes`, and never throws because of them. */
  packet(bytes: Uint8Array, from: string): void {
    const { tally } = this.#hosts
    tally.counters.packets++
    const source = this.senders.check(from)
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
      packet = this.#decoder.decode(bytes)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      tally.countBad(error.code === 'UNKNOWN_MESSAGE' ? 'unknownId' : 'malformed', source.address)
      return
    }
    this.#accept(packet, source.address, nowMs)
  }

  /** Removes what was silent for too long, and reports which hosts are alive; run this about once a second. */
  *sweep(): Steps<void> {
    // The last one may still be under way.
    if (this.#isSwept) return
    this.#isSwept = true
    try {
      for (const received of this.#hosts.expire(this.#clock.monotonicMs())) {
        const series = received && this.#series.get(received)
        if (series) this.#remove(series)
        yield
      }
      yield* this.liveness.sweep()
    } finally {
      this.#isSwept = false
    }
  }

  /** gmond's XML of all its hosts, in pieces. */
  document(cluster: string): Iterable<string> {
    const localTime = Math.floor(this.#clock.microseconds() / 1_000_000)
    return documentOf(this.#hosts, this.#extras, { cluster, nowMs: this.#clock.monotonicMs(), localTime })
  }

  /** From now on requests the metadata of values that come without. */
  sendRequestsBy(ask: SendRequest): void {
    this.#sendRequest = ask
  }

  /** The XML is served; `counts` has the outcomes of its connections. */
  servesXml(counts: XmlCounts): void {
    this.#xml = counts
  }

  /** It receives nothing any more. */
  override failed(detail: string): void {
    this.listening.length = 0
    super.failed(detail)
  }

  protected report(): SourceReport {
    const { tally, hostCount, metricCount, bytes } = this.#hosts
    return {
      notes: [this.#worstSource()],
      counters: {
        ...tally.counters,
        hosts: hostCount,
        metrics: metricCount,
        bytes,
        ...(this.#xml && { xmlServed: this.#xml.served, xmlRefused: this.#xml.refused, xmlCutOff: this.#xml.cutOff }),
        ...(this.#sendRequest !== undefined && { asked: this.#requested }),
      },
    }
  }

  #accept(packet: GmetricPacket, source: string, nowMs: number): void {
    const isValue = packet.kind !== 'metadata' && packet.kind !== 'request'
    if (isValue && !this.meter.take()) {
      this.#hosts.tally.counters.overQuota++
      return
    }
    const accepted = this.#hosts.accept(packet, source, nowMs)
    if (accepted.kind === 'refused' || accepted.kind === 'request') return
    // Metrics that the older family sends by number have no metadata that could be requested.
    if (
      this.#sendRequest &&
      packet.kind === 'value' &&
      packet.format !== '' &&
      this.#requests.isDue(accepted.series, source, nowMs)
    ) {
      this.#requested++
      this.#sendRequest(encodeRequest(packet.host, packet.metric), source)
    }
    for (const host of accepted.renamed) this.#rename(host)
    const known = this.#series.get(accepted.series)
    const series = known ?? new GmetricSeries(accepted.series)
    if (known) this.catalogue.update(series, series.reportedMetadata())
    else this.#add(series)
    if (accepted.kind !== 'value') return
    series.time = this.#clock.microseconds()
    this.#hub.emit(series, accepted.reading.value, series.time)
  }

  /** The label of a host has changed: its old series end, and new ones begin. */
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
    this.born(series, series.reportedMetadata())
  }

  #remove(series: GmetricSeries): void {
    this.#series.delete(series.received)
    this.died(series)
  }

  #worstSource(): string {
    const [address, count] = [...this.#hosts.tally.badBySource].reduce(
      (worst, each) => (each[1] > worst[1] ? each : worst),
      ['', 0],
    )
    return count === 0 ? '' : `most bad packets came from ${address}: ${count}`
  }
}
