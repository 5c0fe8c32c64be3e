/**
 * Which hosts of Ganglia are alive, as metrics `ganglia.*`: names that begin with `gmetric.` belong to senders. This is
 * checked once a second instead of per packet, because the silence of a host is not a packet.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { Feed } from '../../kit/feed.ts'
import type {
  LabelName,
  Labels,
  ListeningSensor,
  Measurement,
  Metric,
  Owner,
  Series,
  Subscription,
} from '../../kit/metrics.ts'
import type { Clock, Steps } from '../../kit/running.ts'
import { type GmetricHost, isLate, type ValueOrigin } from './host.ts'
import type { Hosts } from './hosts.ts'
import { HOST_PARAMETERS, isHost, shownHost } from './series.ts'

/** The hub, to which births, values and deaths are reported. */
export type GmetricHub = Pick<Feed, 'born' | 'emit' | 'died'>

/** Metrics that are looked at in one step. */
const PER_STEP = 256
const FAMILY = 'ganglia.'
const { BOOLEAN, UINT32 } = BasicType

const metric = (name: string, type: BasicType, description: string): Metric => {
  return {
    name: FAMILY + name,
    kind: 'continuous',
    type,
    unit: '',
    description,
    parameters: HOST_PARAMETERS,
    isCounter: false,
  }
}

const UP = metric('host.up', BOOLEAN, 'Whether a packet for the host came within four times `gmetric.host_tmax`')
const LATE = metric('host.late', UINT32, 'Number of metrics of the host whose value is older than their tmax')
const METRICS = [UP, LATE]

class LiveSeries implements Series {
  readonly name: string
  readonly labels: Labels
  readonly subscriptions: Subscription[] = []
  readonly host: GmetricHost
  measured: Measurement

  constructor({ name }: Metric, host: GmetricHost, measured: Measurement) {
    this.name = name
    this.host = host
    this.labels = { name, host: shownHost(host) }
    this.measured = measured
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'host' && isHost(this.host, matcher)
  }
}

export interface LivenessOptions {
  readonly owner: Owner
  readonly hosts: Hosts
  readonly hub: GmetricHub
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  /** Whether the sensor of the hosts is fenced: then the state of its hosts must not be reported either. */
  readonly isFenced: () => boolean
}

type Watched = readonly [up: LiveSeries, late: LiveSeries]

export class HostLiveness implements ListeningSensor {
  readonly family = FAMILY
  readonly polled = false
  readonly owner: Owner
  readonly #hosts: Hosts
  readonly #hub: GmetricHub
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #isFenced: () => boolean
  readonly #watched = new Map<GmetricHost, Watched>()

  constructor({ owner, hosts, hub, clock, isFenced }: LivenessOptions) {
    this.owner = owner
    this.#hosts = hosts
    this.#hub = hub
    this.#clock = clock
    this.#isFenced = isFenced
  }

  metrics(): readonly Metric[] {
    return METRICS
  }

  metric(name: string): Metric | undefined {
    return METRICS.find((each) => each.name === name)
  }

  *series(name?: string): Generator<LiveSeries> {
    for (const both of this.#watched.values()) {
      for (const series of both) if (name === undefined || series.name === name) yield series
    }
  }

  last(series: Series): Measurement | undefined {
    return series instanceof LiveSeries && !this.#isFenced() ? series.measured : undefined
  }

  /** The origin of the metric; `host` is its label. */
  originOf(_name: string, host: string): ValueOrigin | undefined {
    const found = this.#hosts.find(host)
    return found && { host: found, metadata: undefined }
  }

  /** Run this about once a second, after silent metrics and hosts were removed. While fenced, no host is reported. */
  *sweep(): Steps<void> {
    const now = this.#clock.monotonicMs()
    const there = new Set(this.#isFenced() ? [] : this.#hosts.hosts())
    for (const [host, both] of this.#watched) {
      yield
      if (there.has(host) && both[0].labels.host === shownHost(host)) continue
      this.#watched.delete(host)
      for (const series of both) this.#hub.died(series)
    }
    for (const host of there) {
      yield
      this.#check(host, now, yield* this.#late(host, now))
    }
  }

  #check(host: GmetricHost, now: number, lateMetrics: number): void {
    const time = this.#clock.microseconds()
    const up: Value = { type: BOOLEAN, value: this.#hosts.isUp(host, now) }
    const late: Value = { type: UINT32, value: lateMetrics }
    const watched = this.#watched.get(host)
    if (watched) {
      this.#report(watched[0], { value: up, time })
      this.#report(watched[1], { value: late, time })
      return
    }
    const both = [
      new LiveSeries(UP, host, { value: up, time }),
      new LiveSeries(LATE, host, { value: late, time }),
    ] as const
    this.#watched.set(host, both)
    for (const series of both) {
      this.#hub.born(this, series)
      this.#hub.emit(series, series.measured.value, time)
    }
  }

  /** Keeps the measurement for queries, and emits it if its value changed. */
  #report(series: LiveSeries, measured: Measurement): void {
    const before = series.measured.value.value
    series.measured = measured
    if (before !== measured.value.value) this.#hub.emit(series, measured.value, measured.time)
  }

  *#late(host: GmetricHost, now: number): Steps<number> {
    let [looked, count] = [0, 0]
    for (const series of this.#hosts.all(host)) {
      if (++looked % PER_STEP === 0) yield
      if (isLate(series, now)) count++
    }
    return count
  }
}
