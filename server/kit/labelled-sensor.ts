/**
 * The families whose series have any labels: a sensor for each tenant, made when the first value or the first consumer needs
 * it. Doors such as those of OTLP and Prometheus hand in what they have decoded.
 */

import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import type { Count, Quotas } from '../kernel/accounts/quotas.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Steps } from '../kernel/core/fair-work.ts'
import { Catalogue, type MetricMetadata } from '../kernel/metrics/catalogue.ts'
import type { StillClock } from '../kernel/metrics/current.ts'
import type { Hub } from '../kernel/metrics/hub.ts'
import { labelsFrom, openLabelsProblem } from '../kernel/metrics/labels.ts'
import type { Labels, ListeningSensor, Measurement, Parameter, Series, TenantFamily } from '../kernel/metrics/metric.ts'
import type { Columns } from './columns.ts'
import { KnownSeries } from './known-series.ts'
import { LabelledSeries } from './labelled-series.ts'
import { ReceivingSensor, type SourceReport } from './receiving-sensor.ts'
import { keyOfSeries, seriesOfKey } from './series-key.ts'

/** In a sweep, which comes every second, this part of the series is looked at. */
const SWEEPS = 16
const LEAST_SWEPT = 1024

const OPEN: readonly Field[] = [{ name: 'labels', type: BasicType.STRING, value: 'any' }]

export interface LabelledOptions {
  /** The prefix of its metric names, with the dot, and its name in `producer.sensors`. */
  readonly family: string
  readonly kind: string
  /** Of its metrics; labels of other names are taken as well. */
  readonly parameters?: readonly Parameter[]
  /** Where its values come in, for people. */
  readonly from: string
  readonly hub: Pick<Hub, 'add' | 'born' | 'died' | 'emit' | 'emitEncoded' | 'emitNumber'>
  readonly quotas: Quotas
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  /** How long a series is kept after its last value, milliseconds. */
  readonly keptMs: () => number
  /** Set if it takes published values: PUBLISH decides who may bring some in. */
  readonly isPublished?: true
  /** Called when a tenant ends, for what is kept of it besides its series. */
  readonly ended?: (tenant: string) => void
  /** What the sensor of a tenant requests, besides what comes by itself. */
  readonly requests?: (tenant: string) => Requests
}

/** The part of a listening sensor that requests series. */
export type Requests = Required<Pick<ListeningSensor, 'expected' | 'refresh'>>

/** Why a series is not taken. */
export interface RefusedSeries {
  readonly refused: 'labels' | 'quota'
  /** For people. */
  readonly detail: string
}

export class LabelledFamily implements TenantFamily {
  readonly family: string
  readonly #options: LabelledOptions
  readonly #sensors = new Map<string, LabelledSensor>()

  constructor(options: LabelledOptions) {
    this.family = options.family
    this.#options = options
    options.hub.add(this)
  }

  /** The sensor of a tenant, which is made if it is missing. */
  of(tenant: string): LabelledSensor {
    let sensor = this.#sensors.get(tenant)
    if (sensor === undefined) {
      sensor = new LabelledSensor(tenant, this.#options)
      this.#sensors.set(tenant, sensor)
      this.#options.hub.add(sensor)
    }
    return sensor
  }

  open(tenant: string): void {
    this.of(tenant)
  }

  *endSeries(tenant: string): Steps<void> {
    this.#options.ended?.(tenant)
    yield* this.#sensors.get(tenant)?.endAll() ?? []
  }

  /** To be called every second: ends series that nobody has sent for too long. */
  sweep(): void {
    for (const sensor of this.#sensors.values()) sensor.sweep()
  }
}

export class LabelledSensor extends ReceivingSensor<LabelledSeries> {
  readonly hasOpenLabels = true
  readonly isPublished?: true
  /** By the numbers that decoders know them by. */
  readonly known = new KnownSeries<LabelledSeries>()
  readonly #options: LabelledOptions
  readonly #requests: Requests | undefined
  readonly #quota: Count
  readonly #series = new Map<string, LabelledSeries>()
  /** By the names of labels, how many series have them. */
  readonly #labels = new Map<string, number>()
  #sweeping: Iterator<LabelledSeries> | undefined
  #values = 0
  #repeated = 0
  #refusedLabels = 0
  #refusedSeries = 0
  #refusedRequests = 0
  #forgottenLabels = 0
  #renumbered = 0

  constructor(tenant: string, options: LabelledOptions) {
    const { family, kind, parameters = [], hub, quotas } = options
    const { values, series } = quotas.of(tenant)
    const catalogue = new Catalogue<LabelledSeries>(family, parameters, () => OPEN)
    super({ kind, named: tenant, family, tenant, allow: [], meter: values, catalogue, hub })
    this.#options = options
    this.#requests = options.requests?.(tenant)
    this.#quota = series
    if (options.isPublished) this.isPublished = true
    this.listens(options.from)
  }

  /**
   * The series with this name, which begins with the family, and these labels; it is born if it is new. An empty text is no
   * label.
   */
  of(name: string, labels: Iterable<readonly [name: string, text: string]>): LabelledSeries | RefusedSeries {
    const given = labelsFrom(labels)
    const key = keyOfSeries(name, given)
    return this.#series.get(key) ?? this.#begin(name, given, key)
  }

  /** The series with this key, if there is one. */
  find(key: string): LabelledSeries | undefined {
    return this.#series.get(key)
  }

  /** The series with this key; it is born if it is new. */
  byKey(key: string): LabelledSeries | RefusedSeries {
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const { name, labels } = seriesOfKey(key)
    return this.#begin(name, labels, key)
  }

  /** Counts new series that were refused before they came here. */
  refusedLabels(count: number): void {
    this.#refusedLabels += count
  }

  /** Counts a request that is to be sent again, since too much waits or is in memory. */
  notNow(): void {
    this.#refusedRequests++
  }

  /** Counts what the decoder of a request had no room to remember. */
  decoderForgot({ forgotten, renumbered }: Pick<Columns, 'forgotten' | 'renumbered'>): void {
    this.#forgottenLabels += forgotten
    this.#renumbered += renumbered
  }

  #begin(name: string, given: Labels, key: string): LabelledSeries | RefusedSeries {
    const problem = this.metric(name) === undefined ? `not a name of ${this.family}*` : openLabelsProblem(name, given)
    if (problem !== undefined) {
      this.#refusedLabels++
      return { refused: 'labels', detail: problem }
    }
    if (!this.#quota.hasRoom()) {
      this.#refusedSeries++
      this.#quota.refused++
      return { refused: 'quota', detail: `the tenant has ${this.#quota.used} series and may have ${this.#quota.limit}` }
    }
    this.#quota.enter()
    const texts = Object.entries(given).filter(([, text]) => text !== '') as [string, string][]
    const series = new LabelledSeries(name, labelsFrom([...texts, ['name', name]]), key)
    series.heardMs = this.#options.clock.monotonicMs()
    this.#series.set(key, series)
    this.#countLabels(series, 1)
    this.born(series)
    return series
  }

  hasLabel(label: string): boolean {
    return this.#labels.has(label)
  }

  #countLabels({ labels }: LabelledSeries, change: 1 | -1): void {
    for (const label of Object.keys(labels)) {
      const count = (this.#labels.get(label) ?? 0) + change
      if (count > 0) this.#labels.set(label, count)
      else this.#labels.delete(label)
    }
  }

  /** The series that its tenant may have, in all families. */
  get mostSeries(): number {
    return this.#quota.limit
  }

  /** What a source says about the metric of a series. */
  describe(series: LabelledSeries, metadata: MetricMetadata): void {
    this.catalogue.update(series, metadata)
  }

  /**
   * Takes a value; VOID says that the series has ended. `time`: microseconds since 1970. Returns false if the same value of this
   * time was taken before: then it is passed over.
   */
  take(series: LabelledSeries, value: Value, time: number): boolean {
    if (!series.isNew(value, time)) return this.#passOver()
    this.#values++
    const { clock, hub } = this.#options
    series.heardMs = clock.monotonicMs()
    if (series.current.isTaken(time, clock)) series.setLast(value, time)
    hub.emit(series, value, time)
    return true
  }

  /** The same for a DOUBLE; `clock` may stand still over numbers that came together. */
  takeSentNumber(series: LabelledSeries, number: number, time: number, clock: StillClock): boolean {
    if (!series.isNewNumber(number, time)) return this.#passOver()
    this.takeNumber(series, number, time, clock)
    return true
  }

  /** The same for a value that is encoded, by type and value; the bytes are copied as far as they are kept. */
  takeEncoded(series: LabelledSeries, encoded: Uint8Array, time: number, clock: StillClock): boolean {
    if (!series.isNewEncoded(encoded, time)) return this.#passOver()
    this.#values++
    series.heardMs = clock.monotonicMs()
    if (series.current.isTaken(time, clock)) series.setLastEncoded(encoded, time)
    this.#options.hub.emitEncoded(series, encoded, time)
    return true
  }

  #passOver(): false {
    this.#repeated++
    return false
  }

  /**
   * Takes a number that is sent once only, such as one that was fetched. `time`: microseconds since 1970; `clock` may stand still over
   * numbers that came together.
   */
  takeNumber(
    series: LabelledSeries,
    number: number,
    time: number,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
  ): void {
    this.#values++
    series.heardMs = clock.monotonicMs()
    if (series.current.isTaken(time, clock)) series.setLastNumber(number, time)
    this.#options.hub.emitNumber(series, number, time)
  }

  last(series: Series): Measurement | undefined {
    return (series as LabelledSeries).last
  }

  expected(name?: string): Iterable<Series> {
    return this.#requests?.expected(name) ?? []
  }

  refresh(selects: Parameters<Requests['refresh']>[0]): Promise<unknown> | undefined {
    return this.#requests?.refresh(selects)
  }

  /** Whether a series has not ended. */
  has(series: LabelledSeries): boolean {
    return series.isLive
  }

  sweep(): void {
    const oldest = this.#options.clock.monotonicMs() - this.#options.keptMs()
    const most = Math.max(LEAST_SWEPT, Math.ceil(this.#series.size / SWEEPS))
    for (let looked = 0; looked < most; looked++) {
      this.#sweeping ??= this.#series.values()
      const { done, value } = this.#sweeping.next()
      if (done === true) {
        this.#sweeping = undefined
        return
      }
      if (value.heardMs < oldest) this.end(value)
    }
  }

  /** Ends a series, which its subscribers get one VOID of. Does nothing if it has ended. */
  end(series: LabelledSeries): void {
    if (!series.isLive) return
    series.isLive = false
    this.#series.delete(series.key)
    this.#countLabels(series, -1)
    this.#quota.leave()
    this.known.ended()
    this.died(series)
  }

  *endAll(): Steps<void> {
    for (const series of this.#series.values()) {
      this.end(series)
      yield
    }
  }

  protected report(): SourceReport {
    const [values, repeated, series] = [this.#values, this.#repeated, this.seriesCount]
    const [refusedLabels, refusedSeries] = [this.#refusedLabels, this.#refusedSeries]
    const requests = this.isPublished && {
      refusedRequests: this.#refusedRequests,
      forgottenLabels: this.#forgottenLabels,
      renumbered: this.#renumbered,
      lookedUpAgain: this.known.letGo,
    }
    return { notes: [], counters: { values, series, repeated, refusedLabels, refusedSeries, ...requests } }
  }
}
