/** Sensors that a test drives: pushed series `test.*` (or another family), a polled one whose readings may be late, and events. */
import type { Identity, Owner } from '../../auth/permissions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type {
  Arguments,
  EventSensor,
  LabelName,
  Labels,
  ListeningSensor,
  Measurement,
  Metric,
  PolledSensor,
  Series,
  Subscription,
} from '../../server/kernel/metrics/metric.ts'
import type { SensorHub } from '../../server/kernel/metrics/sensor-door.ts'

const host = { name: 'host', type: BasicType.STRING, description: '', selects: 'any' } as const

export class TestSeries implements Series {
  readonly name: string
  readonly labels: Labels
  readonly subscriptions: Subscription[] = []
  last: Measurement | undefined

  constructor(name: string, host: string) {
    this.name = name
    this.labels = { name, host }
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return matcher(String(this.labels[label] ?? ''))
  }
}

/** An open family of pushed metrics with a `host`. */
export class PushSensor implements ListeningSensor {
  readonly polled = false
  readonly family: string
  readonly owner: Owner
  readonly #hub: SensorHub
  readonly #series = new Map<string, TestSeries>()

  constructor(hub: SensorHub, family = 'test.', owner: Owner = { tenant: 'default' }) {
    this.#hub = hub
    this.family = family
    this.owner = owner
    hub.add(this)
  }

  /** A value of a series, which is born if it is new. `time`: microseconds. */
  push(name: string, value: Value, time: number, from = 'h1'): void {
    const key = `${from}/${name}`
    let series = this.#series.get(key)
    if (series === undefined) {
      series = new TestSeries(name, from)
      this.#series.set(key, series)
      this.#hub.born(this, series)
    }
    series.last = { value, time }
    this.#hub.emit(series, value, time)
  }

  die(name: string, from = 'h1'): void {
    const series = this.#series.get(`${from}/${name}`)
    if (series === undefined) return
    this.#series.delete(`${from}/${name}`)
    this.#hub.died(series)
  }

  *metrics(): Iterable<Metric> {
    for (const name of [...new Set([...this.#series.values()].map((series) => series.name))].sort())
      yield metricOf(name)
  }

  metric(name: string): Metric | undefined {
    return metricOf(name)
  }

  *series(name?: string): Iterable<Series> {
    for (const series of this.#series.values()) if (name === undefined || series.name === name) yield series
  }

  last(series: Series): Measurement | undefined {
    return (series as TestSeries).last
  }
}

function metricOf(name: string): Metric {
  return { name, kind: 'continuous', type: undefined, unit: '', description: '', parameters: [host] }
}

/** An open family of pushed metrics with any labels. */
export class OpenSensor implements ListeningSensor {
  readonly polled = false
  readonly family = 'open.'
  readonly owner: Owner
  readonly hasOpenLabels = true
  readonly #hub: SensorHub
  readonly #series = new Map<string, Series & { last?: Measurement }>()

  constructor(hub: SensorHub, owner: Owner = { tenant: 'default' }) {
    this.#hub = hub
    this.owner = owner
    hub.add(this)
  }

  /** A value of a series, which is born if it is new. */
  push(name: string, labels: Readonly<Record<string, string>>, value: Value, time: number): void {
    const key = JSON.stringify([name, labels])
    let series = this.#series.get(key)
    if (series === undefined) {
      series = { name, labels: { ...labels, name }, subscriptions: [], matches: () => false }
      this.#series.set(key, series)
      this.#hub.born(this, series)
    }
    series.last = { value, time }
    this.#hub.emit(series, value, time)
  }

  *metrics(): Iterable<Metric> {
    for (const name of new Set([...this.#series.values()].map((series) => series.name)).values())
      yield this.metric(name)
  }

  metric(name: string): Metric {
    return { name, kind: 'continuous', type: BasicType.UINT32, unit: '', description: '', parameters: [] }
  }

  *series(name?: string): Iterable<Series> {
    for (const series of this.#series.values()) if (name === undefined || series.name === name) yield series
  }

  last(series: Series): Measurement | undefined {
    return (series as { last?: Measurement }).last
  }
}

/** `slow.value`: each reading is answered when the test says so. */
export class SlowSensor implements PolledSensor {
  readonly polled = true
  readonly family: string = 'slow.'
  readonly owner: Owner = 'producer'
  readonly personal: boolean = false
  /** Readings asked for and not answered. */
  readonly asked: ((measured: Measurement) => void)[] = []
  readonly #metric: Metric = {
    name: 'slow.value',
    kind: 'continuous',
    type: BasicType.UINT32,
    unit: '1',
    description: 'late',
    parameters: [{ name: 'which', type: BasicType.UINT32, description: 'makes readings differ' }],
  }

  metrics(): Iterable<Metric> {
    return [this.#metric]
  }

  metric(name: string): Metric | undefined {
    return name === this.#metric.name ? this.#metric : undefined
  }

  labels(metric: Metric): Labels {
    return { name: metric.name }
  }

  check(): void {}

  measure(_metric: Metric, _args: Arguments, _identity: Identity): Promise<Measurement> {
    return new Promise((resolve) => this.asked.push(resolve))
  }
}

/** `events.thing`: event-like. */
export class ThingSensor implements EventSensor {
  readonly polled = 'event'
  readonly family = 'events.'
  readonly owner: Owner = 'producer'
  readonly #listeners = new Set<(event: Measurement) => void>()
  readonly #metric: Metric = {
    name: 'events.thing',
    kind: 'event',
    type: BasicType.UINT32,
    unit: '',
    description: 'a thing happened',
    parameters: [],
  }

  metrics(): Iterable<Metric> {
    return [this.#metric]
  }

  metric(name: string): Metric | undefined {
    return name === this.#metric.name ? this.#metric : undefined
  }

  subscribe(_metric: Metric, _identity: Identity, listener: (event: Measurement) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  happen(value: number, time: number): void {
    for (const listener of [...this.#listeners]) listener({ value: { type: BasicType.UINT32, value }, time })
  }
}
