/**
 * smon streams as metrics `smon.<name>` with the parameters `source` and `index`. The sensor has no socket: listeners open a
 * stream per connection and hand in its bytes, or hand in datagrams. When a source disappears, its series end, and
 * subscribers get VOID.
 */
import type { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { SmonLimits } from '../../../protocol/smon/decode.ts'
import type { TenantFeed } from '../../kit/by-tenant.ts'
import type { Feed } from '../../kit/feed.ts'
import { formatAddress } from '../../kit/io/address.ts'
import type { StreamTaker } from '../../kit/io/pacer.ts'
import { Catalogue, type Measurement, type Parameter, type Series } from '../../kit/metrics.ts'
import type { Poll } from '../../kit/poll.ts'
import { ReceivingSensor, type SourceReport } from '../../kit/receiving-sensor.ts'
import type { Clock, Steps } from '../../kit/running.ts'
import { SmonBudget } from './budget.ts'
import type { SmonSection } from './config.ts'
import { SMON_PREFIX, type SmonReceiver, SmonSeries, SmonSource, SmonStream } from './stream.ts'

export type SmonConfig = Pick<SmonSection, 'tenant' | 'allow' | 'sources' | 'maxSources' | 'maxTokens' | 'maxMetrics'>

/** The hub, to which births, values and deaths are reported. */
export type SmonHub = Pick<Feed, 'born' | 'emitEncoded' | 'emitRun' | 'died'>

export interface SmonOptions extends TenantFeed {
  /** Ends the series of a source in steps. */
  readonly run: Poll['run']
}

/** A sender of datagrams is removed after this silence: four times the usual minute, as in gmetric. */
const DATAGRAM_SOURCE_MS = 240_000
const MAX_STRING_BYTES = 65_536
/** The limit for the names and texts of one stream together. */
const MAX_STREAM_BYTES = 1 << 20
/** The limit for the names and texts of the tokens of all streams together. */
const MAX_TOKEN_BYTES = 64 << 20
/** The limit for last values that are text: those of all metrics, and those of one source. */
const MAX_TEXT_BYTES = 64 << 20
const MAX_SOURCE_TEXT_BYTES = 16 << 20
/** For each metric that there may be, the tokens and the indexes that all streams together may have. */
const TOKENS_A_METRIC = 2
const INDEXES_A_METRIC = 2
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

export class SmonSensor extends ReceivingSensor<SmonSeries> implements SmonReceiver {
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
    tokensFull: 0,
    tokenBytesFull: 0,
    textBytesFull: 0,
    indexesFull: 0,
    overQuota: 0,
  }
  readonly indexes: SmonBudget
  readonly #hub: SmonHub
  readonly #run: Poll['run']
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #config: SmonConfig
  readonly #limits: SmonLimits
  readonly #sources = new Map<string, SmonSource>()
  readonly #streams = new Set<SmonStream>()
  readonly #tokens: SmonBudget
  readonly #tokenBytes: SmonBudget
  readonly #textBytes: SmonBudget
  /** The number of sources that send datagrams. */
  #datagramSources = 0
  #lastError = ''

  constructor(
    config: SmonConfig,
    hub: SmonHub,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
    { run, ...feed }: SmonOptions,
  ) {
    const catalogue = new Catalogue<SmonSeries>(SMON_PREFIX, PARAMETERS)
    const { tenant, allow } = config
    super({ ...feed, kind: 'smon', family: SMON_PREFIX, tenant, allow, catalogue, hub })
    this.#config = config
    this.#hub = hub
    this.#run = run
    this.#clock = clock
    const { counters } = this
    const { maxTokens, maxMetrics } = config
    this.#tokens = new SmonBudget(Math.max(maxTokens, TOKENS_A_METRIC * maxMetrics), () => counters.tokensFull++)
    this.#tokenBytes = new SmonBudget(MAX_TOKEN_BYTES, () => counters.tokenBytesFull++)
    this.#textBytes = new SmonBudget(MAX_TEXT_BYTES, () => counters.textBytesFull++)
    this.indexes = new SmonBudget(INDEXES_A_METRIC * maxMetrics, () => counters.indexesFull++)
    this.#limits = {
      maxTokens,
      maxNameBytes: MAX_NAME_BYTES,
      maxStringBytes: MAX_STRING_BYTES,
      maxBytes: MAX_STREAM_BYTES,
      maxIndexDepth: MAX_INDEX_DEPTH,
      shared: { tokens: this.#tokens, bytes: this.#tokenBytes },
    }
  }

  last(series: Series): Measurement | undefined {
    if (!(series instanceof SmonSeries) || series.time === 0) return undefined
    return { value: series.value(), time: series.time }
  }

  /** Opens a connection from an address; returns undefined if it is refused, which is counted. Never throws, whatever the bytes. */
  open(address: string, port: number): StreamTaker | undefined {
    const name = this.#nameIfAllowed(address, port)
    if (name === undefined || !this.#hasPlace()) return undefined
    const source = this.#source(name)
    this.counters.streams++
    const stream = this.#stream(source)
    this.#streams.add(stream)
    return {
      push: (bytes) => stream.push(bytes, this.#clock.microseconds()),
      end: () => this.#close(stream),
    }
  }

  /** Takes a datagram, which is a complete stream: at once if it asks for little, as most do, or else the rest in steps. */
  datagram(bytes: Uint8Array, address: string, port: number): Steps<void> | undefined {
    this.counters.datagrams++
    const name = this.#nameIfAllowed(address, port)
    if (name === undefined) return undefined
    const isKnown = this.#sources.get(name)?.datagramMs !== undefined
    if (!isKnown && !this.#hasPlace()) return undefined
    if (!isKnown) this.#datagramSources++
    const source = this.#source(name)
    source.datagramMs = this.#clock.monotonicMs()
    if (this.meter.waitMs > 0) {
      this.counters.overQuota++
      return undefined
    }
    const steps = this.#take(bytes, this.#stream(source))
    return steps.next().done === true ? undefined : steps
  }

  *#take(datagram: Uint8Array, stream: SmonStream): Steps<void> {
    const time = this.#clock.microseconds()
    try {
      for (let taken = stream.push(datagram, time); taken < datagram.length; ) {
        yield
        taken += stream.push(datagram.subarray(taken), time)
      }
    } finally {
      this.#ended(stream)
    }
  }

  /** Removes senders of datagrams that were silent for too long; call this about once a second. */
  sweep(): void {
    const now = this.#clock.monotonicMs()
    for (const source of this.#sources.values()) {
      if (source.datagramMs === undefined || now - source.datagramMs <= DATAGRAM_SOURCE_MS) continue
      source.datagramMs = undefined
      this.#datagramSources--
      this.#leave(source)
    }
  }

  protected report(): SourceReport {
    const invalid = [...this.#streams].filter(({ valid }) => !valid)
    const skipped = invalid.reduce((sum, stream) => sum + stream.skipped, this.counters.skippedBytes)
    return {
      notes: [invalid.length > 0 ? `${invalid.length} streams are invalid now` : '', this.#lastError],
      counters: {
        ...this.counters,
        skippedBytes: skipped,
        openStreams: this.#streams.size,
        sources: this.#sources.size,
        metrics: this.seriesCount,
        tokens: this.#tokens.used,
        tokenBytes: this.#tokenBytes.used,
        textBytes: this.#textBytes.used,
        indexes: this.indexes.used,
      },
    }
  }

  hasRoom(): boolean {
    if (this.seriesCount < this.#config.maxMetrics) return true
    this.counters.metricsFull++
    return false
  }

  typed(series: SmonSeries, type: BasicType): void {
    this.catalogue.update(series, { type, unit: undefined, description: undefined })
  }

  received(series: SmonSeries, tail: Uint8Array, time: number): void {
    this.counters.values++
    this.meter.take()
    this.#hub.emitEncoded(series, tail, time)
  }

  receivedRun(series: SmonSeries, tails: readonly Uint8Array[], time: number): void {
    this.counters.values += tails.length
    for (let taken = 0; taken < tails.length; taken++) this.meter.take()
    this.#hub.emitRun(series, tails, time)
  }

  invalid(source: SmonSource, error: ProtocolError): void {
    this.counters.invalid++
    this.#lastError = `last error: ${source.name}: ${error.message}`
  }

  #nameIfAllowed(from: string, port: number): string | undefined {
    const { address, allowed } = this.senders.check(from)
    if (!allowed) {
      this.counters.refusedSource++
      return undefined
    }
    return this.#nameOf(address, port)
  }

  /** Whether there may be one more stream or sender of datagrams; counts it if not. */
  #hasPlace(): boolean {
    if (this.#streams.size + this.#datagramSources < this.#config.maxSources) return true
    this.counters.sourcesFull++
    return false
  }

  #source(name: string): SmonSource {
    const known = this.#sources.get(name)
    if (known !== undefined) return known
    const texts = new SmonBudget(MAX_SOURCE_TEXT_BYTES, () => this.counters.textBytesFull++, this.#textBytes)
    const source = new SmonSource(name, texts)
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
    this.#ended(stream)
  }

  #stream(source: SmonSource): SmonStream {
    source.streams++
    return new SmonStream(source, this, this.#limits)
  }

  #ended(stream: SmonStream): void {
    this.counters.skippedBytes += stream.skipped
    if (stream.valid && !stream.complete) this.counters.cutOff++
    stream.end()
    stream.source.streams--
    this.#leave(stream.source)
  }

  /** Ends the series of a source that is not used any more. */
  #leave(source: SmonSource): void {
    if (source.isUsed || source.isEnding) return
    source.isEnding = true
    this.#run(this, this.#end(source))
  }

  /** If the source is used again meanwhile, the series that are left live on, as if it had been used all the time. */
  *#end(source: SmonSource): Steps<void> {
    for (const series of source.end()) {
      this.died(series)
      yield
    }
    if (!source.isUsed) this.#sources.delete(source.name)
  }
}
