/**
 * The hub connects sensors with consumers. Sensors report births, values and deaths of series; binding an instance to a sink
 * (a lane of a channel) subscribes it to every series that it selects. A value is encoded once, however many subscriptions
 * its series has.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import { Count } from '../accounts/quotas.ts'
import type { Clock } from '../core/clock.ts'
import { Demand } from './demand.ts'
import { Fences } from './fences.ts'
import type { MetricInstance } from './instance.ts'
import type { ListeningSensor, Measurement, ResumePoint, Sensor, Series, Sink, Subscription } from './metric.ts'
import { NameIndex } from './name-index.ts'
import { Poller } from './poller.ts'
import type { EventTarget, PolledTarget } from './selection.ts'
import { SensorFaults } from './sensor-faults.ts'

/** The resume point of bindings that are not kept. */
const unkept: ResumePoint = { reached: undefined, reach() {} }

interface ActiveSubscription {
  readonly sensor: ListeningSensor
  readonly subscription: Subscription
}

/** An instance that is bound to a sink, with all its current subscriptions. */
class BoundInstance {
  readonly instance: MetricInstance
  readonly sink: Sink
  readonly resumePoint: ResumePoint
  /** The number of metrics that its tenant has bound. */
  readonly count: Count
  /** What ends its polled metrics and events, by target. */
  readonly ending = new Map<string, () => void>()
  readonly series = new Map<Series, ActiveSubscription>()

  constructor(instance: MetricInstance, sink: Sink, resumePoint: ResumePoint, count: Count) {
    this.instance = instance
    this.sink = sink
    this.resumePoint = resumePoint
    this.count = count
  }

  /** Removes and returns the subscription to a series; undefined if there was none. */
  forget(series: Series): Subscription | undefined {
    const active = this.series.get(series)
    if (active === undefined) return undefined
    this.series.delete(series)
    this.count.leave()
    return active.subscription
  }

  get size(): number {
    return this.ending.size + this.series.size
  }
}

export class Hub {
  readonly fences: Fences
  readonly faults: SensorFaults
  readonly demand: Demand
  readonly #sensors: Sensor[] = []
  readonly #bound = new Set<BoundInstance>()
  readonly #named = new NameIndex<BoundInstance>()
  /** Bindings that lack a subscription because their tenant had reached its quota. */
  readonly #starved = new Set<BoundInstance>()
  readonly #quotaOf: (tenant: string) => Count
  readonly #poller: Poller
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #writer = new XdrWriter()

  /** `quotaOf` counts the metrics that a tenant has bound; each match of a pattern counts separately. */
  constructor(clock: Clock, fences = new Fences(), quotaOf = unlimited(), faults = new SensorFaults(clock)) {
    this.#quotaOf = quotaOf
    this.fences = fences
    this.faults = faults
    this.demand = new Demand(fences)
    this.#clock = clock
    this.#poller = new Poller(clock, fences, faults)
  }

  get sensors(): readonly Sensor[] {
    return this.#sensors
  }

  add(sensor: Sensor): void {
    this.#sensors.push(sensor)
    this.fences.added(sensor)
  }

  /** Discards the values of a sensor from now on. Each subscription to one of its series gets one VOID. */
  fence(sensor: Sensor): void {
    if (this.fences.has(sensor)) return
    this.fences.fence(sensor)
    this.demand.fenced(sensor)
    const time = this.#clock.microseconds()
    // Only series with subscriptions: asking the sensor for all series could create them.
    const series = new Set<Series>()
    for (const binding of this.#bound) {
      for (const [one, active] of binding.series) if (active.sensor === sensor) series.add(one)
    }
    for (const one of series) {
      if (!one.isEvent) this.emit(one, VOID, time)
      one.subscriptions.length = 0
    }
    for (const binding of this.#bound) {
      for (const one of [...binding.series.keys()]) if (series.has(one)) binding.forget(one)
      if (sensor.polled !== true) continue
      for (const target of binding.instance.selection.polled()) {
        if (target.sensor !== sensor) continue
        binding.sink.append(binding.instance.framePrefix(target.labels, target.open), this.#encode(VOID), time)
      }
    }
  }

  /** Accepts the values of a sensor again, from its next value on. */
  resume(sensor: Sensor): void {
    if (!this.fences.has(sensor)) return
    this.fences.resume(sensor)
    if (sensor.polled !== false) return
    this.demand.matchAll(() => true)
    for (const binding of this.#bound) {
      for (const series of sensor.series(binding.instance.selection.exactName)) this.#match(binding, sensor, series)
    }
  }

  /** Throws StatusError QUOTA_EXCEEDED if its tenant may not bind all that an instance matches now. */
  needsRoom({ owner, selection }: MetricInstance): void {
    const count = this.#quotaOf(owner.tenant)
    if (!Number.isFinite(count.limit)) return
    let matches = selection.polled().length + selection.events().length
    for (const sensor of selection.listening()) {
      for (const series of sensor.series(selection.exactName)) {
        if (selection.openFor(sensor, series) !== undefined) matches++
      }
    }
    count.needsRoom(Math.max(1, matches))
  }

  /**
   * Sends every value that an instance selects to a sink from now on; polled metrics are measured at once. The returned
   * function ends the binding.
   */
  bind(instance: MetricInstance, sink: Sink, resumePoint: ResumePoint = unkept): () => void {
    const binding = new BoundInstance(instance, sink, resumePoint, this.#quotaOf(instance.owner.tenant))
    this.#bound.add(binding)
    this.#named.add(instance.selection.exactName, binding)
    for (const sensor of instance.selection.listening()) {
      for (const series of sensor.series(instance.selection.exactName)) this.#match(binding, sensor, series)
    }
    this.#follow(binding)
    return () => this.#unbind(binding)
  }

  /**
   * Applies a change of rights: ends subscriptions that are no longer allowed and adds those that are allowed now. Returns
   * the instances that lost subscriptions, and whether they lost all of them.
   */
  rematch(concerns: (instance: MetricInstance) => boolean): Map<MetricInstance, 'some' | 'all'> {
    this.demand.matchAll(concerns)
    const lost = new Map<MetricInstance, 'some' | 'all'>()
    for (const binding of [...this.#bound]) {
      const { instance } = binding
      if (!concerns(instance)) continue
      const left = this.#rematch(binding)
      if (left) lost.set(instance, binding.size === 0 ? 'all' : 'some')
    }
    return lost
  }

  /** Returns true if a subscription ended. */
  #rematch(binding: BoundInstance): boolean {
    const had = new Set<Series | string>([...binding.series.keys(), ...binding.ending.keys()])
    for (const sensor of this.#sensors) {
      if (sensor.polled !== false) continue
      for (const series of sensor.series(binding.instance.selection.exactName)) this.#match(binding, sensor, series)
    }
    this.#follow(binding)
    for (const key of [...binding.series.keys(), ...binding.ending.keys()]) had.delete(key)
    return had.size > 0
  }

  /** Polls and subscribes exactly what the instance selects now. */
  #follow(binding: BoundInstance): void {
    const { instance, sink, ending, resumePoint } = binding
    const { selection } = instance
    const [polled, events] = [selection.polled(), selection.events()]
    const wanted = new Set([...polled, ...events].map((target) => this.#keyOf(target)))
    for (const [key, end] of ending) {
      if (wanted.has(key)) continue
      ending.delete(key)
      binding.count.leave()
      end()
    }
    for (const target of polled) {
      const key = this.#keyOf(target)
      if (ending.has(key) || !this.#enter(binding)) continue
      const prefix = instance.framePrefix(target.labels, target.open)
      const listener = this.#listener(target.sensor, prefix, sink)
      ending.set(key, this.#poller.poll(target, selection.identity, selection.intervalMs, listener))
    }
    for (const target of events) {
      const key = this.#keyOf(target)
      if (ending.has(key) || !this.#enter(binding)) continue
      const { sensor, metric, args, labels, open } = target
      const prefix = instance.framePrefix(labels, open)
      const append = this.#listener(sensor, prefix, sink)
      const listener = (event: Measurement): void => {
        if (this.fences.has(sensor)) this.fences.countDiscarded(sensor)
        else append(event)
      }
      ending.set(key, sensor.subscribe(metric, instance.owner, listener, args, resumePoint))
    }
  }

  /** Passes measurements on. It never throws: a value that cannot be encoded is a fault of its sensor. */
  #listener(sensor: Sensor, prefix: Uint8Array, sink: Sink): (measured: Measurement) => void {
    return ({ value, time }) => {
      try {
        sink.append(prefix, this.#encode(value), time)
      } catch (error) {
        this.faults.report(sensor, error)
      }
    }
  }

  /** A key of a target that two sensors with a metric of the same name do not share. */
  #keyOf({ sensor, metric }: PolledTarget | EventTarget): string {
    return `${this.#sensors.indexOf(sensor)} ${metric.name}`
  }

  #unbind(binding: BoundInstance): void {
    if (!this.#bound.delete(binding)) return
    this.#named.delete(binding.instance.selection.exactName, binding)
    this.#starved.delete(binding)
    binding.count.used -= binding.size
    for (const end of binding.ending.values()) end()
    for (const [series, { subscription }] of binding.series) unsubscribe(series, subscription)
  }

  /** Returns false, and counts the refusal, if the tenant has reached its quota; `sweep` tries again. */
  #enter(binding: BoundInstance): boolean {
    const { count } = binding
    if (count.hasRoom()) {
      count.used++
      return true
    }
    count.refused++
    this.#starved.add(binding)
    return false
  }

  /** To be called every second. Adds subscriptions that were refused before, as far as quotas allow. */
  sweep(): void {
    for (const binding of [...this.#starved]) {
      if (!binding.count.hasRoom()) continue
      this.#starved.delete(binding)
      const { refused } = binding.count
      this.#rematch(binding)
      // The refusals of this attempt were counted the first time.
      binding.count.refused = refused
    }
  }

  #match(binding: BoundInstance, sensor: ListeningSensor, series: Series): void {
    const { instance, sink } = binding
    const open = this.fences.has(sensor) ? undefined : instance.selection.openFor(sensor, series)
    if (open === undefined) {
      const ended = binding.forget(series)
      if (ended) unsubscribe(series, ended)
      return
    }
    if (binding.series.has(series) || !this.#enter(binding)) return
    const subscription = { framePrefix: instance.framePrefixOf(series, open), sink, at: series.subscriptions.length }
    binding.series.set(series, { sensor, subscription })
    series.subscriptions.push(subscription)
    const known = series.first?.()
    if (known !== undefined) sink.append(subscription.framePrefix, this.#encode(known.value), known.time)
  }

  #encode(value: Value): Uint8Array {
    writeTyped(this.#writer.clear(), value)
    return this.#writer.bytes()
  }

  /** Reports that a series is new, or that it answers to other names than before. */
  born(sensor: ListeningSensor, series: Series): void {
    this.demand.born(sensor, series)
    for (const binding of this.#named.of(series.name)) this.#match(binding, sensor, series)
  }

  /** Passes on a value of a series; `time` is in microseconds since 1970. */
  emit(series: Series, value: Value, time: number): void {
    if (series.subscriptions.length > 0) this.emitEncoded(series, this.#encode(value), time)
  }

  /** Passes on a value that is already encoded: `tail` holds its basic type and the value. */
  emitEncoded({ subscriptions }: Series, tail: Uint8Array, time: number): void {
    for (let index = 0; index < subscriptions.length; index++) {
      const { framePrefix, sink } = subscriptions[index] as Subscription
      sink.append(framePrefix, tail, time)
    }
  }

  /** Reports that the source of a series is gone. Each subscription gets one VOID, except those to events [MON 9 Kinds]. */
  died(series: Series): void {
    this.demand.died(series)
    // Most series have no subscription.
    if (series.subscriptions.length === 0) return
    if (!series.isEvent) this.emit(series, VOID, this.#clock.microseconds())
    series.subscriptions.length = 0
    for (const binding of this.#named.of(series.name)) binding.forget(series)
  }

  close(): void {
    for (const binding of [...this.#bound]) this.#unbind(binding)
  }
}

/** The quota where nothing is limited. */
function unlimited(): (tenant: string) => Count {
  const count = new Count('bound metrics', () => Number.POSITIVE_INFINITY)
  return () => count
}

/** Removes a subscription by moving the last one into its place: thousands may end at once. */
function unsubscribe(series: Series, subscription: Subscription): void {
  const { subscriptions } = series
  const last = subscriptions.pop()
  if (last !== undefined && last !== subscription) {
    subscriptions[subscription.at] = last
    last.at = subscription.at
  }
}
