/**
 * The counters of one agent: found by metric name, and by the index under which the agent sends them; and the names and
 * metadata that they have as metrics.
 */

import { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem, type Value } from '../../../protocol/monitor/value.ts'
import {
  CATEGORY_NAMES,
  CUSTOM,
  type MonoHeader,
  type MonoName,
  MonoType,
  MonoUnit,
  MonoVariance,
} from '../../../protocol/mono/messages.ts'
import {
  type CataloguedSeries,
  type LabelName,
  type Labels,
  type Measurement,
  type MetricMetadata,
  NO_METADATA,
  type Subscription,
} from '../../kit/metrics.ts'

/** The counters in the status of the sensor that agents update. */
export interface MonoCounters {
  values: number
  samplings: number
  added: number
  removed: number
  /** Responses to Add and Remove other than OK. */
  refused: number
  /** Requests that were not answered in time. */
  unanswered: number
  /** Counters whose name cannot be that of a metric, or is already in use. */
  badName: number
  /** Samples of counters that are not served. */
  unserved: number
  /** Samplings with an impossible time; they get the time of their arrival. */
  badTime: number
}

/** The sensor, which all agents share. */
export interface MonoReceiver {
  readonly counters: MonoCounters
  readonly clock: { monotonicMs(): number; microseconds(): number }
  /** Whether one more series may be made; counts it if not. */
  hasRoom(): boolean
  born(series: MonoSeries, metadata: MetricMetadata): void
  /** Called when the type and unit of a series become known or unknown. */
  metadataChanged(series: MonoSeries): void
  received(series: MonoSeries, value: Value, time: number): void
  died(series: MonoSeries): void
}

/**
 * One counter of one agent: listed, requested, or sent. While a consumer has subscribed to it, its agent is made to send it;
 * afterwards the agent is asked to stop, unless it sent the counter from the beginning or a control requested it.
 */
export class MonoSeries implements CataloguedSeries {
  readonly name: string
  /** They change with the name of its agent, while the hub does not know the series. */
  labels: Labels
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA
  /** The name by which it is requested: the one in List or, before that, the one in its header. */
  counter: MonoName
  isListed = false
  /** Its header while the agent sends it. */
  header: MonoHeader | undefined
  /** The last value; an agent sends only changes. */
  last: Measurement | undefined
  isWanted = false
  /** Whether the agent sends it even if no consumer wants it. */
  isRequired = false
  /** Whether an Add or Remove for it is in flight. */
  isAsked = false
  /** Whether the agent refused to send it; it is not requested again until another consumer wants it. */
  isRefused = false
  readonly #changed: (series: MonoSeries) => void

  constructor(name: string, agent: string, counter: MonoName, changed: (series: MonoSeries) => void) {
    this.name = name
    this.labels = { name, agent }
    this.counter = counter
    this.#changed = changed
  }

  wanted(isWanted: boolean): void {
    this.isWanted = isWanted
    this.isRefused = false
    this.#changed(this)
  }

  /** An agent sends only changes: the value of a constant may have come between COLLECT and SUBSCRIBE, and no other will. */
  first(): Measurement | undefined {
    return this.last
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

  /** `changed` is called when the first consumer wants a series, or the last one does not any more. */
  constructor(agent: string, receiver: MonoReceiver, changed: (series: MonoSeries) => void) {
    this.#agent = agent
    this.#receiver = receiver
    this.#changed = changed
  }

  find(counter: MonoName): MonoSeries | undefined {
    return this.#series.get(metricName(counter) ?? '')
  }

  at(index: number): MonoSeries | undefined {
    return this.#byIndex.get(index)
  }

  /** The series of a counter, created if necessary; undefined if its name is not possible or there is no room. */
  findOrCreate(counter: MonoName): MonoSeries | undefined {
    const name = metricName(counter)
    if (name === undefined) {
      this.#receiver.counters.badName++
      return undefined
    }
    const known = this.#series.get(name)
    if (known !== undefined) return known
    if (!this.#receiver.hasRoom()) return undefined
    const series = new MonoSeries(name, this.#agent, counter, this.#changed)
    this.#series.set(name, series)
    this.#receiver.born(series, metadataOf(series.counter, series.header))
    return series
  }

  /** Adds a counter from a List, which has the name by which it is requested. */
  addListed(counter: MonoName): void {
    const series = this.findOrCreate(counter)
    if (series === undefined) return
    const isAnother = series.counter.category !== counter.category || series.counter.name !== counter.name
    if (series.isListed && isAnother) {
      this.#receiver.counters.badName++
      return
    }
    series.isListed = true
    series.counter = counter
  }

  /** The agent sends the series from now on. Throws ProtocolError if the index is in use, or the header is that of another counter. */
  started(series: MonoSeries, header: MonoHeader): void {
    if (!isHeaderOf(header, series.counter)) {
      throw new ProtocolError(
        'BAD_NAME',
        `the header of ${header.name} in response to a request for ${series.counter.name}`,
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

  /** Removes a counter that the agent does not have. */
  forget(series: MonoSeries): void {
    this.#series.delete(series.name)
    this.#receiver.died(series)
  }

  /** Gives the agent another name: its series end, and are born again with their last values. */
  rename(agent: string): void {
    this.#agent = agent
    for (const series of this.#series.values()) {
      this.#receiver.died(series)
      series.labels = { name: series.name, agent }
      series.isWanted = false
      this.#receiver.born(series, metadataOf(series.counter, series.header))
      this.#changed(series)
    }
  }

  end(): void {
    for (const series of this.#series.values()) this.#receiver.died(series)
  }
}

export const MONO_PREFIX = 'mono.'

const TYPES = {
  [MonoType.INT]: BasicType.INT32,
  [MonoType.LONG]: BasicType.INT64,
  // Always the wider type, because the size of a word differs between machines in one catalogue.
  [MonoType.WORD]: BasicType.INT64,
  [MonoType.DOUBLE]: BasicType.DOUBLE,
} as const
const UNITS: Readonly<Record<number, string>> = {
  [MonoUnit.BYTES]: 'B',
  [MonoUnit.TIME]: '100ns',
  [MonoUnit.EVENTS]: '1',
  [MonoUnit.PERCENTAGE]: 'percent',
}
const VARIANCES: Readonly<Record<number, string>> = {
  [MonoVariance.CONSTANT]: 'constant',
  [MonoVariance.MONOTONIC]: 'monotonic',
  [MonoVariance.VARIABLE]: 'variable',
}

/** `Mono GC`, `Major GC collections` -> `mono.gc.major_gc_collections`; undefined if that is not a valid name [MON 1]. */
export function metricName({ category, name }: MonoName): string | undefined {
  const family = category.replace(/^mono\s+/i, '')
  // Names that were not UTF-8 can neither be distinguished nor requested.
  if (family === '' || name === '' || `${category}${name}`.includes('\ufffd')) return undefined
  const metric = `${MONO_PREFIX}${family}.${name}`.toLowerCase().replaceAll(' ', '_')
  return nameProblem(metric) === undefined ? metric : undefined
}

/** The name by which the counter of a header is requested. */
export function counterName({ category, name }: MonoHeader): MonoName {
  if (category !== CUSTOM) return { category: CATEGORY_NAMES[category] ?? `category ${category}`, name }
  const colon = name.indexOf(':')
  return colon > 0
    ? { category: name.slice(0, colon), name: name.slice(colon + 1) }
    : { category: CATEGORY_NAMES[CUSTOM], name }
}

/** Whether a header can be that of the requested counter: some agents leave out a custom category. */
export function isHeaderOf({ name }: MonoHeader, counter: MonoName): boolean {
  const wanted = counter.name.toLowerCase()
  return [wanted, `${counter.category.toLowerCase()}:${wanted}`].includes(name.toLowerCase())
}

export function basicType({ type }: MonoHeader): (typeof TYPES)[MonoType] {
  return TYPES[type]
}

/** The metadata of a counter; before its header is known, it consists of its name. */
export function metadataOf({ category, name }: MonoName, header: MonoHeader | undefined): MetricMetadata {
  return {
    type: header && basicType(header),
    unit: header && UNITS[header.unit],
    description: `${category}: ${name}`,
    isCounter: header && header.variance === MonoVariance.MONOTONIC,
  }
}

/** The details in the catalogue: the name by which the counter is requested, and how its values vary. */
export function counterDetails({ category, name }: MonoName, header: MonoHeader | undefined): Field[] {
  const variance = header && VARIANCES[header.variance]
  return [
    { name: 'category', type: BasicType.STRING, value: category },
    { name: 'counter', type: BasicType.STRING, value: name },
    ...(variance === undefined ? [] : [{ name: 'variance', type: BasicType.STRING, value: variance }]),
  ]
}
