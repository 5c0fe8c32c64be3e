/** The counters of one agent: found by metric name, and by the index under which the agent sends them. */

import { ProtocolError } from '../../../protocol/errors.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { MonoHeader, MonoName } from '../../../protocol/mono/constants.ts'
import { type CataloguedSeries, type MetricMetadata, NO_METADATA } from '../../metrics/catalogue.ts'
import type { LabelName, Labels, Measurement, Subscription } from '../../metrics/metric.ts'
import { isHeaderOf, metricName } from './names.ts'

export interface MonoCounters {
  values: number
  samplings: number
  added: number
  removed: number
  /** Answers to Add and Remove other than OK. */
  refused: number
  /** Requests that were not answered in time. */
  unanswered: number
  /** Counters whose name cannot be a metric's, or is another's. */
  badName: number
  /** Samples of counters that are not served. */
  unserved: number
  /** Samplings whose time cannot be: they get the time of their arrival. */
  badTime: number
}

/** The sensor, which all agents share. */
export interface MonoReceiver {
  readonly counters: MonoCounters
  readonly clock: { monotonicMs(): number; microseconds(): number }
  /** Whether one more series may be made; counts it if not. */
  hasRoom(): boolean
  born(series: MonoSeries): void
  /** It is known, or not known any more, what the series is. */
  metadataChanged(series: MonoSeries): void
  received(series: MonoSeries, value: Value, time: number): void
  died(series: MonoSeries): void
}

export class MonoSeries implements CataloguedSeries {
  readonly name: string
  /** They change with the name of its agent, while nobody knows it. */
  labels: Labels
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA
  /** How the agent is asked for it: as List calls it, before that as its header does. */
  counter: MonoName
  isListed = false
  /** While the agent sends it. */
  header: MonoHeader | undefined
  /** The last value; an agent sends only what changed. */
  last: Measurement | undefined
  isWanted = false
  /** It stays though nobody wants it. */
  isRequired = false
  /** Add or Remove was sent and is not answered. */
  isAsked = false
  /** The agent did not want to send it: not asked again before somebody new wants it. */
  isRefused = false
  readonly #changed: (series: MonoSeries) => void

  constructor(name: string, agent: string, called: MonoName, changed: (series: MonoSeries) => void) {
    this.name = name
    this.labels = { name, agent }
    this.counter = called
    this.#changed = changed
  }

  wanted(isWanted: boolean): void {
    this.isWanted = isWanted
    this.isRefused = false
    this.#changed(this)
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'agent' && matcher(this.labels.agent as string)
  }
}

export class AgentCounters {
  #agent: string
  readonly #receiver: MonoReceiver
  readonly #changed: (series: MonoSeries) => void
  readonly #series = new Map<string, MonoSeries>()
  readonly #byIndex = new Map<number, MonoSeries>()

  /** `changed`: somebody wants a series, or nobody does any more. */
  constructor(agent: string, receiver: MonoReceiver, changed: (series: MonoSeries) => void) {
    this.#agent = agent
    this.#receiver = receiver
    this.#changed = changed
  }

  find(called: MonoName): MonoSeries | undefined {
    return this.#series.get(metricName(called) ?? '')
  }

  at(index: number): MonoSeries | undefined {
    return this.#byIndex.get(index)
  }

  /** The series of a counter, made if there is none; undefined if there can be none. */
  findOrCreate(called: MonoName): MonoSeries | undefined {
    const name = metricName(called)
    if (name === undefined) {
      this.#receiver.counters.badName++
      return undefined
    }
    const known = this.#series.get(name)
    if (known !== undefined) return known
    if (!this.#receiver.hasRoom()) return undefined
    const series = new MonoSeries(name, this.#agent, called, this.#changed)
    this.#series.set(name, series)
    this.#receiver.born(series)
    return series
  }

  /** The agent says that it has a counter: it is known now how to ask for it. */
  addListed(called: MonoName): void {
    const series = this.findOrCreate(called)
    if (series === undefined) return
    const isAnother = series.counter.category !== called.category || series.counter.name !== called.name
    if (series.isListed && isAnother) {
      this.#receiver.counters.badName++
      return
    }
    series.isListed = true
    series.counter = called
  }

  /** It is sent from now on. Throws ProtocolError if its index is another's, or the header is not its own. */
  started(series: MonoSeries, header: MonoHeader): void {
    if (!isHeaderOf(header, series.counter)) {
      throw new ProtocolError(
        'BAD_NAME',
        `the header of ${header.name} for ${series.counter.name}, which was asked for`,
      )
    }
    if (this.#byIndex.has(header.index)) {
      throw new ProtocolError('BAD_NUMBER', `a second counter with the index ${header.index}: ${header.name}`)
    }
    series.header = header
    this.#byIndex.set(header.index, series)
    this.#receiver.metadataChanged(series)
  }

  stopped(series: MonoSeries, { index }: MonoHeader): void {
    this.#byIndex.delete(index)
    series.header = undefined
    series.last = undefined
    this.#receiver.metadataChanged(series)
  }

  /** There is no such counter. */
  forget(series: MonoSeries): void {
    this.#series.delete(series.name)
    this.#receiver.died(series)
  }

  /** The agent is called otherwise from now on: its series die, and are there again with the values they have. */
  rename(agent: string): void {
    this.#agent = agent
    for (const series of this.#series.values()) {
      this.#receiver.died(series)
      series.labels = { name: series.name, agent }
      series.isWanted = false
      this.#receiver.born(series)
      if (series.last !== undefined) this.#receiver.received(series, series.last.value, series.last.time)
      this.#changed(series)
    }
  }

  end(): void {
    for (const series of this.#series.values()) this.#receiver.died(series)
  }
}
