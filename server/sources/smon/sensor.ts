/**
 * smon streams as metrics `smon.<name>` with the parameters `source` and `index`. The sensor has no socket: listeners open a
 * stream per connection and hand in its bytes, or hand in datagrams. When a source disappears, its series end, and
 * subscribers get VOID.
 */
import type { Owner } from '../../../auth/permissions.ts'
import type { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { SmonLimits } from '../../../protocol/smon/decode.ts'
import { formatAddress } from '../../core/address.ts'
import type { Clock } from '../../core/clock.ts'
import { Catalogue } from '../../metrics/catalogue.ts'
import type { Hub } from '../../metrics/hub.ts'
import type { ListeningSensor, Measurement, Metric, Parameter, SensorStatus, Series } from '../../metrics/metric.ts'
import { AllowedSenders } from '../allowed.ts'
import { feedName, type Meter, type TenantFeed, UNMETERED } from '../by-tenant.ts'
import type { SmonSection } from './config.ts'
import { SmonSeries, SmonSource } from './series.ts'
import { SMON_PREFIX, type SmonReceiver, SmonStream } from './stream.ts'

export type SmonConfig = Pick<SmonSection, 'tenant' | 'allow' | 'sources' | 'maxSources' | 'maxTokens' | 'maxMetrics'>

/** The hub, to which births, values and deaths are reported. */
export type SmonHub = Pick<Hub, 'born' | 'emitEncoded' | 'died'>

/** The bytes of one connection. */
export interface SmonFeed {
  /** Never throws, whatever the bytes. */
  push(bytes: Uint8Array): void
  end(): void
}

/** A sender of datagrams is removed after this silence: four times the usual minute, as in gmetric. */
const DATAGRAM_SOURCE_MS = 240_000
const MAX_STRING_BYTES = 65_536
/** The limit for the names and texts of one stream together. */
const MAX_STREAM_BYTES = 1 << 20
const MAX_INDEX_DEPTH = 16
/** The limit for a metric name [MON 1]. A name that exceeds it with the prefix `smon.` is ignored, and its stream stays valid. */
const MAX_NAME_BYTES = 1_024

const PARAMETERS: readonly Parameter[] = [
  {
    name: 'source',
    type: BasicType.STRING,
    description: 'The source: its name in the configuration, or its address and port.',
    selects: 'any',
  },
  {
    name: 'index',
    type: BasicType.STRING,
    description: 'The numbers of the index, separated by commas, such as 3,0; if left out, values without an index.',
    selects: 'any',
  },
]

export class SmonSensor implements ListeningSensor, SmonReceiver {
  readonly family = SMON_PREFIX
  readonly polled = false
  readonly owner: Owner
  readonly counters = {
    streams: 0,
    datagrams: 0,
    values: 0,
    badName: 0,
    invalid: 0,
    resets: 0,
    skippedBytes: 0,
    cutOff: 0,
    refusedSource: 0,
    sourcesFull: 0,
    metricsFull: 0,
    overQuota: 0,
  }
  /** Streams are read only while it accepts values, so nothing is lost. */
  readonly meter: Meter
  readonly #name: string
  readonly #hub: SmonHub
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #config: SmonConfig
  readonly #allowed: AllowedSenders
  readonly #limits: SmonLimits
  readonly #catalogue = new Catalogue<SmonSeries>(SMON_PREFIX, PARAMETERS)
  readonly #sources = new Map<string, SmonSource>()
  readonly #streams = new Set<SmonStream>()
  #metrics = 0
  #listening: string[] = []
  #kernelDrops: () => number | undefined = () => undefined
  #lastError = ''
  #failure = ''

  constructor(
    config: SmonConfig,
    hub: SmonHub,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
    { meter = UNMETERED, named }: TenantFeed = {},
  ) {
    this.#name = feedName('smon', named)
    this.meter = meter
    this.owner = { tenant: config.tenant }
    this.#config = config
    this.#hub = hub
    this.#clock = clock
    this.#allowed = new AllowedSenders(config.allow)
    this.#limits = {
      maxTokens: config.maxTokens,
      maxNameBytes: MAX_NAME_BYTES,
      maxStringBytes: MAX_STRING_BYTES,
      maxBytes: MAX_STREAM_BYTES,
      maxIndexDepth: MAX_INDEX_DEPTH,
    }
  }

  metrics(prefix?: string, after?: string): Iterable<Metric> {
    return this.#catalogue.metrics(prefix, after)
  }

  metric(name: string): Metric | undefined {
    return this.#catalogue.metric(name)
  }

  series(name?: string, prefix?: string): Iterable<SmonSeries> {
    return this.#catalogue.series(name, prefix)
  }

  last(series: Series): Measurement | undefined {
    if (!(series instanceof SmonSeries) || series.time === 0) return undefined
    return { value: series.value(), time: series.time }
  }

  /** Opens a connection from an address; returns undefined if it is refused, which is counted. */
  open(address: string, port: number): SmonFeed | undefined {
    const source = this.#source(address, port)
    if (source === undefined) return undefined
    source.streams++
    this.counters.streams++
    const stream = new SmonStream(source, this, this.#limits)
    this.#streams.add(stream)
    return {
      push: (bytes) => stream.push(bytes, this.#clock.microseconds()),
      end: () => this.#close(stream),
    }
  }

  /** Takes a datagram, which is a complete stream. */
  datagram(bytes: Uint8Array, address: string, port: number): void {
    this.counters.datagrams++
    const source = this.#source(address, port)
    if (source === undefined) return
    source.datagramMs = this.#clock.monotonicMs()
    if (this.meter.waitMs > 0) {
      this.counters.overQuota++
      return
    }
    const stream = new SmonStream(source, this, this.#limits)
    stream.push(bytes, this.#clock.microseconds())
    this.#count(stream)
  }

  /** Removes senders of datagrams that were silent for too long; call this about once a second. */
  sweep(): void {
    const now = this.#clock.monotonicMs()
    for (const source of this.#sources.values()) {
      if (source.datagramMs === undefined || now - source.datagramMs <= DATAGRAM_SOURCE_MS) continue
      source.datagramMs = undefined
      this.#leave(source)
    }
  }

  listens(detail: string, kernelDrops?: () => number | undefined): void {
    this.#listening.push(detail)
    if (kernelDrops) this.#kernelDrops = kernelDrops
  }

  /** A listener has failed. */
  failed(detail: string): void {
    this.#failure = detail
  }

  status(): SensorStatus {
    const invalid = [...this.#streams].filter(({ valid }) => !valid)
    const skipped = invalid.reduce((sum, stream) => sum + stream.skipped, this.counters.skippedBytes)
    const kernelDrops = this.#kernelDrops()
    return {
      name: this.#name,
      state: this.#failure !== '' ? 'failed' : this.#listening.length > 0 ? 'listening' : 'off',
      detail: [
        this.#failure,
        ...this.#listening,
        invalid.length > 0 && `${invalid.length} streams are invalid now`,
        this.#lastError,
      ]
        .filter(Boolean)
        .join('; '),
      counters: {
        ...this.counters,
        skippedBytes: skipped,
        openStreams: this.#streams.size,
        sources: this.#sources.size,
        metrics: this.#metrics,
        ...(kernelDrops !== undefined && { kernelDrops }),
      },
    }
  }

  hasRoom(): boolean {
    if (this.#metrics < this.#config.maxMetrics) return true
    this.counters.metricsFull++
    return false
  }

  born(series: SmonSeries): void {
    this.#metrics++
    this.#catalogue.add(series)
    this.#hub.born(this, series)
  }

  typed(series: SmonSeries, type: BasicType): void {
    this.#catalogue.update(series, { type, unit: undefined, description: undefined })
  }

  received(series: SmonSeries): void {
    this.counters.values++
    this.meter.take()
    this.#hub.emitEncoded(series, series.tail, series.time)
  }

  invalid(source: SmonSource, error: ProtocolError): void {
    this.counters.invalid++
    this.#lastError = `last error: ${source.name}: ${error.message}`
  }

  #source(from: string, port: number): SmonSource | undefined {
    const { address, allowed } = this.#allowed.check(from)
    if (!allowed) {
      this.counters.refusedSource++
      return undefined
    }
    const name = this.#nameOf(address, port)
    const known = this.#sources.get(name)
    if (known !== undefined) return known
    if (this.#sources.size >= this.#config.maxSources) {
      this.counters.sourcesFull++
      return undefined
    }
    const source = new SmonSource(name)
    this.#sources.set(name, source)
    return source
  }

  #nameOf(address: string, port: number): string {
    const of = (wanted: number | undefined) =>
      this.#config.sources.find((named) => named.address === address && named.port === wanted)?.name
    return of(port) ?? of(undefined) ?? formatAddress({ host: address, port })
  }

  #close(stream: SmonStream): void {
    if (!this.#streams.delete(stream)) return
    this.#count(stream)
    stream.source.streams--
    this.#leave(stream.source)
  }

  /** Adds the counters of a stream that has ended to those of the sensor. */
  #count(stream: SmonStream): void {
    this.counters.skippedBytes += stream.skipped
    if (stream.valid && !stream.complete) this.counters.cutOff++
  }

  #leave(source: SmonSource): void {
    if (source.streams > 0 || source.datagramMs !== undefined) return
    this.#sources.delete(source.name)
    for (const series of source.series()) {
      this.#metrics--
      this.#catalogue.remove(series)
      this.#hub.died(series)
    }
  }
}
