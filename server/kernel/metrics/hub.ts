/**
 * The hub connects sensors with consumers. Sensors report births, values and deaths of series; binding an instance to a sink
 * (a lane of a channel) subscribes it to every series that it selects. A value is encoded once, however many subscriptions
 * its series has.
 */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, writeTyped } from '../../../protocol/monitor/value.ts'
import { type Count, unlimited } from '../accounts/quotas.ts'
import type { Clock } from '../core/clock.ts'
import { FairWork, SERVER_TENANT, type Steps } from '../core/fair-work.ts'
import { Births } from './births.ts'
import { BoundInstance, type HubSubscription, matchesOf } from './bound-instance.ts'
import { Demand } from './demand.ts'
import { Fences } from './fences.ts'
import { FollowedSeries } from './followed-series.ts'
import type { MetricInstance } from './instance.ts'
import { isListening } from './kinds.ts'
import type {
  ListeningSensor,
  Measurement,
  RemoteSensor,
  ResumePoint,
  Sensor,
  Series,
  Sink,
  Subscription,
  TenantFamily,
} from './metric.ts'
import { NameIndex } from './name-index.ts'
import { mayBegin } from './pattern.ts'
import { Poller } from './poller.ts'
import { isDue, RecentValues } from './recent.ts'
import { SensorFaults } from './sensor-faults.ts'
import { passOn, passOnRun } from './subscriptions.ts'
import { ENCODED_VOID, type Target, type TargetHub } from './target.ts'

/** The resume point of bindings that are not kept. */
const unkept: ResumePoint = { reached: undefined, reach() {} }

/** Disks and interfaces that come or go are noticed within ten seconds. */
const SWEEPS_PER_SEARCH = 10

/** What is ended of what a binding does not select any more. */
type Ends = 'denied' | 'gone' | 'none'

/** A binding, for those who made it. */
export interface HubBinding {
  /** Settled when everything is subscribed that was there when it was made; undefined if it was so at once. */
  readonly matched: Promise<void> | undefined
  /** Has its polled metrics not read, or read again from now on. What is pushed goes on. */
  pause(isPaused: boolean): Steps<void>
  /** The sink is durable, or not any more: other producers send to it in another way. */
  followAgain(): void
  /** The sink wants another resolution. */
  thin(): Steps<void>
  end(): void
}

/** What a hub is given; without it, it has its own, which limit nothing and keep nothing. */
export interface HubParts {
  readonly fences?: Fences
  /** Counts the metrics that a tenant has bound; each match of a pattern counts separately. */
  readonly quotaOf?: ((tenant: string) => Count) | undefined
  readonly faults?: SensorFaults
  readonly work?: FairWork
  readonly recent?: RecentValues
}

export class Hub {
  readonly fences: Fences
  readonly faults: SensorFaults
  readonly demand: Demand
  readonly recent: RecentValues
  /** How often the producers have changed that other servers are. */
  producersChanges = 0
  readonly #sensors: Sensor[] = []
  readonly #families: TenantFamily[] = []
  readonly #bound = new Set<BoundInstance>()
  readonly #byInstance = new Map<MetricInstance, Set<BoundInstance>>()
  readonly #named = new NameIndex<BoundInstance>()
  readonly #births: Births
  #lastNumber = 0
  /** Bindings that lack a subscription because their tenant had reached its quota. */
  readonly #starved = new Set<BoundInstance>()
  /** Bindings to parts of sources, which come and go. */
  readonly #withParts = new Set<BoundInstance>()
  #sweeps = 0
  readonly #quotaOf: (tenant: string) => Count
  readonly #forTargets: TargetHub
  readonly #work: FairWork
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #writer = new XdrWriter()
  /** A DOUBLE as it stands in a frame; like the bytes of the writer, it serves for one value after the other. */
  readonly #double = new DataView(new XdrWriter(12).uint32(BasicType.DOUBLE).double(0).copy().buffer)
  readonly #doubleTail = new Uint8Array(this.#double.buffer)

  constructor(clock: Clock, parts: HubParts = {}) {
    const {
      fences = new Fences(),
      quotaOf = unlimited('bound metrics'),
      faults = new SensorFaults(clock),
      work = new FairWork(clock),
      recent = new RecentValues(clock, { maxBytes: 0, maxAgeMs: 0 }),
    } = parts
    this.recent = recent
    this.#quotaOf = quotaOf
    this.fences = fences
    this.faults = faults
    this.demand = new Demand(fences)
    this.#clock = clock
    this.#work = work
    const poller = new Poller(clock, fences, faults, work)
    this.#forTargets = { fences, poller, appending: (...what) => this.#appending(...what) }
    this.#births = new Births(work, (binding, sensor, series) => {
      return this.#bound.has(binding) ? this.#subscribe(binding, sensor, series) : undefined
    })
  }

  get sensors(): readonly Sensor[] {
    return this.#sensors
  }

  /** A sensor, or what makes one for each tenant. */
  add(added: Sensor | TenantFamily): void {
    if ('endSeries' in added) {
      this.#families.push(added)
      return
    }
    this.#sensors.push(added)
    this.fences.added(added)
  }

  /** Makes the sensors of a tenant that a name or pattern may select and that are not there yet. */
  open(tenant: string, name: string): void {
    for (const family of this.#families) if (mayBegin(name, family.family)) family.open(tenant)
  }

  /** Ends the series of a tenant that was removed. */
  async endSeries(tenant: string): Promise<void> {
    for (const family of this.#families) await this.#work.run({ tenant: SERVER_TENANT }, family.endSeries(tenant))
  }

  /**
   * Discards the values of a sensor: nothing is subscribed or answered any more, and each subscription to one of its series
   * ends with one VOID. The promise settles when all have ended; undefined if they have already.
   */
  fence(sensor: Sensor): void | Promise<void> {
    if (this.fences.has(sensor)) return
    this.fences.fence(sensor)
    this.demand.fenced(sensor)
    return this.#work.run(this.#births.partyOf(sensor), this.#fenced(sensor))
  }

  *#fenced(sensor: Sensor): Steps<void> {
    const time = this.#clock.microseconds()
    // Only what is followed: asking the sensor for all series could create them.
    for (const binding of this.#bound) {
      yield
      for (const [key, followed] of binding.following) {
        // It is resumed: what is followed goes on.
        if (!this.fences.has(sensor)) return
        if (followed.sensor === sensor && followed.fenced?.(time)) binding.drop(key)
        yield
      }
    }
  }

  /**
   * Accepts the values of a sensor again, from its next value on; series that keep a first value for new subscriptions give it
   * again, since VOID was the last that was sent. The promise settles when all subscriptions are back.
   */
  resume(sensor: Sensor): void | Promise<void> {
    if (!this.fences.has(sensor)) return
    this.fences.resume(sensor)
    if (isListening(sensor)) return this.#work.run(this.#births.partyOf(sensor), this.#resumed(sensor))
  }

  /** Does work of a sensor in steps, as work of its tenant. What a step throws is a fault of the sensor, and ends the work. */
  run(sensor: Sensor, steps: Steps<void>): void {
    this.#work.add(this.#births.partyOf(sensor), {
      step: () => steps.next().done === true,
      failed: (error) => this.faults.report(sensor, error),
    })
  }

  /** The producers of a sensor have changed. Settles when bindings that reach some of them follow those that there are now. */
  async producersChanged(sensor: RemoteSensor): Promise<void> {
    this.producersChanges++
    const reaching = [...this.#bound].filter(({ instance }) => instance.selection.remote.isReached)
    for (const one of reaching) await this.#work.run(this.#births.partyOf(sensor), this.#follow(one, 'denied'))
  }

  *#resumed(sensor: ListeningSensor): Steps<void> {
    yield* this.demand.matchAll()
    for (const binding of this.#bound) yield* this.#matchSeries(binding, sensor)
  }

  /** Throws StatusError QUOTA_EXCEEDED if its tenant may not bind all that an instance matches now, `times` over. */
  *needsRoom({ owner, selection }: MetricInstance, times: number): Steps<void> {
    const count = this.#quotaOf(owner.tenant)
    if (Number.isFinite(count.limit)) count.needsRoom(times * Math.max(1, yield* matchesOf(selection)))
  }

  /**
   * Sends every value that an instance selects to a sink from now on; polled metrics are measured at once, unless the binding
   * begins paused.
   */
  bind(instance: MetricInstance, sink: Sink, resumePoint: ResumePoint = unkept, isPaused = false): HubBinding {
    const count = this.#quotaOf(instance.owner.tenant)
    const binding = new BoundInstance(instance, sink, resumePoint, ++this.#lastNumber, count)
    binding.isPaused = isPaused
    this.#bound.add(binding)
    const bindings = this.#byInstance.get(instance)
    if (bindings === undefined) this.#byInstance.set(instance, new Set([binding]))
    else bindings.add(binding)
    this.#index(binding)
    if (instance.selection.selectsParts) this.#withParts.add(binding)
    const matched = this.#work.run(instance.owner, this.#matchAll(binding))
    return {
      matched: matched instanceof Promise ? matched : undefined,
      pause: (paused) => binding.pause(paused),
      followAgain: () => binding.followAgain(),
      thin: () => binding.thin(),
      end: () => this.#unbind(binding),
    }
  }

  #index(binding: BoundInstance): void {
    const { selection, owner } = binding.instance
    this.#named.add(selection.name, owner, binding)
  }

  /**
   * Applies a change of rights to an instance: ends subscriptions that are no longer allowed and adds those that are allowed
   * now. Returns whether it lost some or all of them; undefined if it lost none.
   */
  *rematch(instance: MetricInstance): Steps<'some' | 'all' | undefined> {
    yield* this.demand.match(instance)
    let lost: 'some' | 'all' | undefined
    for (const binding of this.#byInstance.get(instance) ?? []) {
      this.#index(binding)
      if (yield* this.#rematch(binding)) lost = binding.size === 0 ? 'all' : 'some'
    }
    return lost
  }

  /** Returns true if a subscription ended that is no longer allowed. */
  *#rematch(binding: BoundInstance): Steps<boolean> {
    const had = new Map(binding.following)
    let hasLost = false
    for (const followed of binding.following.values()) {
      if (!this.#bound.has(binding)) return false
      if (followed.judge !== undefined && (yield* followed.judge())) hasLost = true
    }
    yield* this.#matchAll(binding)
    if (!this.#bound.has(binding)) return false
    for (const [key, { sensor, target, series }] of had) {
      if (binding.following.has(key)) continue
      // What has gone of its own accord, or whose sensor is fenced, is no loss of a right.
      const selected = target ?? (series && { sensor, metric: series, labels: series.labels })
      if (selected !== undefined && !binding.instance.selection.mayStillRead(selected)) return true
      yield
    }
    return hasLost
  }

  *#matchAll(binding: BoundInstance, ends: Ends = 'denied'): Steps<void> {
    for (const sensor of binding.instance.selection.listening()) yield* this.#matchSeries(binding, sensor)
    yield* this.#follow(binding, ends)
  }

  /** Subscribes what is not subscribed. */
  *#matchSeries(binding: BoundInstance, sensor: ListeningSensor): Steps<void> {
    for (const series of binding.instance.selection.series(sensor)) {
      if (!this.#bound.has(binding)) return
      if (series !== undefined && !binding.following.has(series)) this.#match(binding, sensor, series)
      yield
    }
  }

  /** Follows the targets that the instance selects now, and ends the others if it may. */
  *#follow(binding: BoundInstance, ends: Ends): Steps<void> {
    const { instance, following } = binding
    const round = ends === 'denied' ? ++binding.rounds : binding.rounds
    // A later round that ends something knows the rights of now.
    const isOver = (): boolean => !this.#bound.has(binding) || binding.rounds !== round
    const found = new Map<Series | string, Target>()
    for (const target of yield* instance.selection.targets()) {
      found.set(this.#keyOf(target), target)
      yield
    }
    if (ends !== 'none') yield* this.#endOthers(binding, found, ends, isOver)
    for (const [key, target] of found) {
      if (isOver()) return
      if (following.has(key) || !this.#enter(binding)) continue
      const followed = target.follow(binding, this.#forTargets)
      following.set(key, followed)
      if (followed.catchUp !== undefined) yield* followed.catchUp()
      yield
    }
  }

  /** Ends what was found before and is not found any more. */
  *#endOthers(
    binding: BoundInstance,
    found: ReadonlyMap<Series | string, Target>,
    ends: Ends,
    isOver: () => boolean,
  ): Steps<void> {
    const { sink, following } = binding
    for (const [key, followed] of following) {
      if (isOver()) return
      const { target } = followed
      if (target !== undefined && !found.has(key) && this.#mayEnd(binding, target, ends)) {
        binding.drop(key)
        if (ends === 'gone') sink.append(followed.framePrefix, ENCODED_VOID, this.#clock.microseconds())
      }
      yield
    }
  }

  /** Parts that are gone end by a search, with VOID; what a change of rights ends has to be noticed by `rematch`. */
  #mayEnd(binding: BoundInstance, target: Target, ends: Ends): boolean {
    if (!this.#withParts.has(binding)) return true
    return binding.instance.selection.mayStillRead(target) === (ends === 'gone')
  }

  /** Passes measurements on. It never throws: a value that cannot be encoded is a fault of its sensor. */
  #appending(sensor: Sensor, prefix: Uint8Array, sink: Sink): (measured: Measurement) => void {
    return ({ value, time }) => {
      try {
        sink.append(prefix, this.#encode(value), time)
      } catch (error) {
        this.faults.report(sensor, error)
      }
    }
  }

  /** A key of a target that two sensors with a metric of the same name, or two parts of a source, do not share. */
  #keyOf({ sensor, metric, part }: Target): string {
    const key = `${this.#sensors.indexOf(sensor)} ${metric.name}`
    return part === undefined ? key : `${key} ${part}`
  }

  #unbind(binding: BoundInstance): void {
    if (!this.#bound.delete(binding)) return
    this.#named.delete(binding.instance.selection.name, binding)
    const bindings = this.#byInstance.get(binding.instance)
    bindings?.delete(binding)
    if (bindings?.size === 0) this.#byInstance.delete(binding.instance)
    this.#starved.delete(binding)
    this.#withParts.delete(binding)
    binding.count.used -= Math.max(1, binding.size)
    for (const followed of binding.following.values()) followed.end()
    binding.following.clear()
  }

  /** Returns false, and counts the refusal once, if the tenant has reached its quota; `sweep` tries again. */
  #enter(binding: BoundInstance): boolean {
    const { count } = binding
    if (binding.size === 0) return true
    if (count.hasRoom()) {
      count.used++
      return true
    }
    if (!binding.isRetried) count.refused++
    this.#starved.add(binding)
    return false
  }

  /** To be called every second. Adds subscriptions that were refused before, as far as quotas allow, and parts that are new. */
  sweep(): void {
    if (++this.#sweeps % SWEEPS_PER_SEARCH === 0) this.#searchParts()
    for (const binding of [...this.#starved]) {
      if (binding.isSearching || !binding.count.hasRoom()) continue
      this.#starved.delete(binding)
      // The refusals of this attempt were counted the first time. It ends nothing: what a change of rights ends has to be noticed
      // by `rematch`, which may not have begun.
      binding.isRetried = true
      void this.#work.run(binding.instance.owner, this.#again(binding, this.#matchAll(binding, 'none')))
    }
  }

  #searchParts(): void {
    for (const binding of this.#withParts) {
      // What has gone while it was paused gets its VOID afterwards.
      if (binding.isSearching || binding.isPaused || binding.isRetried) continue
      binding.isSearching = true
      // What had no room was counted the first time.
      binding.isRetried = this.#starved.has(binding)
      // Each part that is gone gets one VOID, as a series that ends.
      void this.#work.run(binding.instance.owner, this.#again(binding, this.#follow(binding, 'gone')))
    }
  }

  /** Does the work of a sweep for a binding, which alone pays for a selection that throws: the next sweep tries again. */
  *#again(binding: BoundInstance, steps: Steps<void>): Steps<void> {
    try {
      yield* steps
    } catch (error) {
      this.faults.reportBinding(binding.instance, error)
    } finally {
      binding.isSearching = false
      binding.isRetried = false
    }
  }

  #match(binding: BoundInstance, sensor: ListeningSensor, series: Series): void {
    const subscribed = this.#subscribe(binding, sensor, series)
    if (subscribed === undefined) return
    const known = series.first?.()
    if (known !== undefined) binding.sink.append(subscribed.framePrefix, this.#encode(known.value), known.time)
  }

  /** Ends a subscription that is no longer allowed. Returns the subscription if it is a new one. */
  #subscribe(binding: BoundInstance, sensor: ListeningSensor, series: Series): Subscription | undefined {
    const open = this.fences.has(sensor) ? undefined : binding.instance.selection.openFor(sensor, series)
    if (open === undefined) {
      binding.drop(series)
      return undefined
    }
    if (binding.following.has(series) || !this.#enter(binding)) return undefined
    const followed = new FollowedSeries(binding, sensor, series, open)
    binding.following.set(series, followed)
    return followed.subscription
  }

  #encode(value: Value): Uint8Array {
    writeTyped(this.#writer.clear(), value)
    return this.#writer.bytes()
  }

  /**
   * Reports that a series is new, or that it answers to other names than before. Returns what says when all bindings have been asked
   * about the series of the sensor, as `whenAsked`; undefined if they have been already.
   */
  born(sensor: ListeningSensor, series: Series): (() => Promise<void> | undefined) | undefined {
    this.recent.born(sensor, series)
    this.demand.born(sensor, series)
    const bindings = this.#named.of(series.name, sensor.owner)
    for (let asked = 0; asked < this.#births.mostAtOnce(series); asked++) {
      const { done, value } = bindings.next()
      if (done === true) return undefined
      this.#match(value, sensor, series)
    }
    const known = series.first?.()
    const first = known && { tail: this.#encode(known.value).slice(), time: known.time }
    this.#births.askLater(sensor, series, bindings, this.#lastNumber, first)
    return () => this.whenAsked(sensor)
  }

  /** When all values that a sensor has emitted are with everybody who wants them; undefined if they are now. */
  whenAsked(sensor: Sensor): Promise<void> | undefined {
    return this.#births.whenAsked(sensor)
  }

  /** Passes on a value of a series; `time` is in microseconds since 1970. */
  emit(series: Series, value: Value, time: number): void {
    const { recent } = series
    if (recent !== undefined && isDue(recent, time)) this.recent.take(recent, value, time)
    if (series.subscriptions.length > 0) passOn(series.subscriptions, this.#encode(value), time)
  }

  /** The same for a DOUBLE, which needs no object. */
  emitNumber(series: Series, number: number, time: number): void {
    const { recent, subscriptions } = series
    if (recent !== undefined && isDue(recent, time)) this.recent.takeNumber(recent, number, time)
    if (subscriptions.length === 0) return
    this.#double.setFloat64(4, number)
    passOn(subscriptions, this.#doubleTail, time)
  }

  /** Passes on a value that is already encoded: `tail` holds its basic type and the value. */
  emitEncoded(series: Series, tail: Uint8Array, time: number): void {
    const { recent } = series
    if (recent !== undefined && isDue(recent, time)) this.recent.takeEncoded(recent, tail, time)
    passOn(series.subscriptions, tail, time)
  }

  /** The same for several values, in their order: each subscription gets all of them before the next does. */
  emitRun({ recent, subscriptions }: Series, tails: readonly Uint8Array[], time: number): void {
    for (const tail of tails) if (recent && isDue(recent, time)) this.recent.takeEncoded(recent, tail, time)
    passOnRun(subscriptions, tails, time)
  }

  /** Reports that the source of a series is gone. Each subscription gets one VOID, except those to events [MON 9 Kinds]. */
  died(series: Series): void {
    this.demand.died(series)
    // Most series have no subscription.
    if (series.subscriptions.length === 0) return
    if (!series.isEvent) passOn(series.subscriptions, ENCODED_VOID, this.#clock.microseconds())
    const ended = series.subscriptions.splice(0) as HubSubscription[]
    for (const { binding } of ended) binding?.forget(series)
  }

  close(): void {
    for (const binding of [...this.#bound]) this.#unbind(binding)
  }
}
