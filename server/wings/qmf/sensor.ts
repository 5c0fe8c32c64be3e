/**
 * The Qpid brokers of one tenant as metrics `qmf.<package>.<class>.<property or statistic>` and events
 * `qmf.<package>.<event>`. The sensor knows no sockets: connect.ts makes the connections, and each console reports to
 * its broker here. Until the schemas of all brokers have been known once, every well-formed name may turn out to be a
 * metric.
 */
import { nameProblem, type Value } from '../../../protocol/monitor/value.ts'
import type { Schema } from '../../../protocol/qmf/types.ts'
import type { Labels, ListeningSensor, Measurement, Metric, SensorStatus, Series } from '../../kit/metrics.ts'
import { type Meter, type Poll, UNMETERED } from '../../kit/poll.ts'
import { feedName } from '../../kit/receiving-sensor.ts'
import type { Clock } from '../../kit/running.ts'
import { type BrokerContext, QmfBroker } from './broker.ts'
import { BROKER_UP, objectParameters, QMF_PREFIX, QmfCatalogue } from './catalogue.ts'
import { newCounters } from './console-events.ts'
import { BrokerSeries, type ClassSeries, ObjectSeries, type QmfSeries } from './series.ts'

export interface QmfOptions {
  readonly tenant: string
  /** The names of its brokers. */
  readonly brokers: readonly string[]
  readonly meter?: Meter
  /** The tenant if it is not `default`. */
  readonly named?: string | undefined
  /** The demand for series, which include those that never have a value. */
  readonly demand: Pick<Poll['demand'], 'born'>
}

/** Receives births, values and deaths of series. */
export interface QmfHub {
  born(sensor: ListeningSensor, series: Series): void
  /** `time`: microseconds since 1970. */
  emit(series: Series, value: Value, time: number): void
  died(series: Series): void
}

/** The limit for remembered names that somebody asked for; beyond it, all series are made. */
const MAX_ASKED = 10_000
/** The number of brokers in the status; those without a connection come first. */
const SHOWN = 10

export class QmfSensor implements ListeningSensor, BrokerContext {
  readonly family = QMF_PREFIX
  readonly polled = false
  readonly owner: { readonly tenant: string }
  readonly counters = { ...newCounters(), connections: 0, values: 0, badTime: 0, tooLong: 0 }
  readonly clock: Pick<Clock, 'microseconds'>
  /** Brokers are only read while the meter lets values in, so that they lose nothing. */
  readonly meter: Meter
  readonly catalogue = new QmfCatalogue()
  readonly #name: string
  readonly #hub: QmfHub
  readonly #demand: QmfOptions['demand']
  readonly #brokers: ReadonlyMap<string, QmfBroker>
  /** The names that were asked for, undefined if everything was. */
  #asked: Set<string> | undefined = new Set()

  constructor(options: QmfOptions, hub: QmfHub, clock: Pick<Clock, 'microseconds'>) {
    this.#name = feedName('qmf', options.named)
    this.owner = { tenant: options.tenant }
    this.meter = options.meter ?? UNMETERED
    this.#hub = hub
    this.#demand = options.demand
    this.clock = clock
    this.#brokers = new Map(options.brokers.map((name) => [name, new QmfBroker(name, this)]))
  }

  get metricsChanges(): number {
    return this.catalogue.changes
  }

  metrics(prefix?: string, after?: string): Iterable<Metric> {
    return this.catalogue.metrics(prefix, after)
  }

  metric(name: string): Metric | undefined {
    return this.catalogue.metric(name) ?? (this.#isClosed ? undefined : unknownMetric(name))
  }

  *series(name?: string): Generator<QmfSeries> {
    this.#ask(name)
    if (name === undefined || name === BROKER_UP) for (const { up } of this.brokers()) yield up
    if (name === undefined) {
      for (const broker of this.brokers()) {
        yield* broker.eventSeries()
        for (const object of broker.objects()) for (const field of object.known.fields) yield object.series(field)
      }
      return
    }
    if (this.catalogue.metric(name)?.kind === 'event') {
      for (const broker of this.brokers()) for (const one of broker.eventSeries()) if (one.name === name) yield one
    }
    for (const [known, field] of this.catalogue.fields(name)) {
      for (const broker of this.brokers()) for (const object of broker.objectsOf(known)) yield object.series(field)
    }
  }

  *expected(name?: string): Generator<ClassSeries> {
    this.#ask(name)
    for (const broker of this.brokers()) yield* broker.expected(name)
  }

  refresh(selects: (name: string, labels: Labels) => boolean): Promise<unknown> | undefined {
    const answers = [...this.brokers()].flatMap((broker) => broker.refresh(selects) ?? [])
    return answers.length === 0 ? undefined : Promise.all(answers)
  }

  last(series: Series): Measurement | undefined {
    return series instanceof ObjectSeries || series instanceof BrokerSeries ? series.last : undefined
  }

  brokers(): Iterable<QmfBroker> {
    return this.#brokers.values()
  }

  /** `name`: its name in the configuration. */
  broker(name: string): QmfBroker | undefined {
    return this.#brokers.get(name)
  }

  /** The schemas of all brokers, each once. A broker that is gone keeps those it had. */
  schemas(): Iterable<Schema> {
    return this.catalogue.schemas()
  }

  status(): SensorStatus {
    const brokers = [...this.brokers()]
    const shown = brokers.toSorted((a, b) => Number(a.isUp) - Number(b.isUp)).slice(0, SHOWN)
    const details = shown.map(({ name, detail }) => `${name}: ${detail}`)
    const more = brokers.length - shown.length
    const up = brokers.filter(({ isUp }) => isUp).length
    return {
      name: this.#name,
      state: up > 0 ? 'listening' : 'failed',
      detail: [...details, ...(more > 0 ? [`and ${more} more`] : [])].join('; '),
      counters: {
        ...this.counters,
        badName: this.catalogue.badName,
        brokers: brokers.length,
        brokersUp: up,
        objects: brokers.reduce((sum, { objectCount }) => sum + objectCount, 0),
      },
    }
  }

  isAsked(name: string): boolean {
    return this.#asked === undefined || this.#asked.has(name)
  }

  born(series: QmfSeries): void {
    this.#hub.born(this, series)
  }

  expects(series: ClassSeries): void {
    this.#demand.born(this, series)
  }

  emit(series: QmfSeries, value: Value, time: number): void {
    this.counters.values++
    this.meter.take()
    this.#hub.emit(series, value, time)
  }

  died(series: QmfSeries): void {
    this.#hub.died(series)
  }

  get #isClosed(): boolean {
    for (const { isKnown } of this.brokers()) if (!isKnown) return false
    return true
  }

  #ask(name: string | undefined): void {
    if (name === undefined) this.#asked = undefined
    if (this.#asked === undefined || name === undefined || this.#asked.has(name)) return
    if (this.#asked.size >= MAX_ASKED) this.#asked = undefined
    else this.#asked.add(name)
  }
}

function unknownMetric(name: string): Metric | undefined {
  const isOurs = name.startsWith(QMF_PREFIX) && name.length > QMF_PREFIX.length && nameProblem(name) === undefined
  if (!isOurs) return undefined
  return { name, kind: 'continuous', type: undefined, unit: '', description: '', parameters: objectParameters }
}
