/**
 * Who wants which value. Sensors hand in births, values and deaths; taps bind an instance to a sink (a lane of a channel).
 * One decode, one encode: a value is encoded once, however many taps it has.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Clock } from '../clock.ts'
import { Count } from '../quotas.ts'
import { ByName } from './by-name.ts'
import { Fences } from './fences.ts'
import type { Instance } from './instance.ts'
import type { ListeningSensor, Measured, Place, Sensor, Series, Sink, Tap } from './metric.ts'
import { Poller } from './poller.ts'
import type { EventTarget, PolledTarget } from './selection.ts'
import { Tapping } from './tapping.ts'
import { Wanted } from './wanted.ts'

/** Of what is bound nowhere. */
const nowhere: Place = { reached: undefined, reach() {} }

export class Hub {
  readonly fences: Fences
  readonly wanted: Wanted
  readonly #sensors: Sensor[] = []
  readonly #tappings = new Set<Tapping>()
  readonly #named = new ByName<Tapping>()
  /** Those that did without something because their tenant had no room. */
  readonly #starved = new Set<Tapping>()
  readonly #boundOf: (tenant: string) => Count
  readonly #poller: Poller
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #writer = new XdrWriter()

  /** `boundOf`: what a tenant has bound; each match of a pattern counts by itself. */
  constructor(clock: Clock, fences = new Fences(), boundOf = unlimited()) {
    this.#boundOf = boundOf
    this.fences = fences
    this.wanted = new Wanted(fences)
    this.#clock = clock
    this.#poller = new Poller(clock, fences)
  }

  get sensors(): readonly Sensor[] {
    return this.#sensors
  }

  add(sensor: Sensor): void {
    this.#sensors.push(sensor)
    this.fences.added(sensor)
  }

  /** Keeps the values of a sensor out from now on; whoever has one of its series gets one VOID. */
  fence(sensor: Sensor): void {
    if (this.fences.has(sensor)) return
    this.fences.fence(sensor)
    this.wanted.fenced(sensor)
    const time = this.#clock.microseconds()
    // Those that somebody has: to ask for all would make all.
    const series = new Set<Series>()
    for (const tapping of this.#tappings) {
      for (const [one, tapped] of tapping.series) if (tapped.sensor === sensor) series.add(one)
    }
    for (const one of series) {
      if (!one.isEvent) this.emit(one, VOID, time)
      one.taps.length = 0
    }
    for (const tapping of this.#tappings) {
      for (const tapped of [...tapping.series.keys()]) if (series.has(tapped)) tapping.forget(tapped)
      if (sensor.polled !== true) continue
      for (const target of tapping.instance.selection.polled()) {
        if (target.sensor !== sensor) continue
        tapping.sink.append(tapping.instance.head(target.labels, target.open), this.#encode(VOID), time)
      }
    }
  }

  /** Lets them in again: from the next value on. */
  resume(sensor: Sensor): void {
    if (!this.fences.has(sensor)) return
    this.fences.resume(sensor)
    if (sensor.polled !== false) return
    this.wanted.matchAll(() => true)
    for (const tapping of this.#tappings) {
      for (const series of sensor.series(tapping.instance.selection.exactName)) this.#match(tapping, sensor, series)
    }
  }

  /** Throws StatusError QUOTA_EXCEEDED if its tenant may not bind all that an instance matches now. */
  needsRoom({ owner, selection }: Instance): void {
    const count = this.#boundOf(owner.tenant)
    if (!Number.isFinite(count.limit)) return
    let matches = selection.polled().length + selection.events().length
    for (const sensor of selection.listening()) {
      for (const series of sensor.series(selection.exactName)) {
        if (selection.openFor(sensor, series) !== undefined) matches++
      }
    }
    count.needsRoom(Math.max(1, matches))
  }

  /** Sends every value of an instance to a sink from now on; a polled one is measured at once. The returned function ends it. */
  tap(instance: Instance, sink: Sink, place: Place = nowhere): () => void {
    const tapping = new Tapping(instance, sink, place, this.#boundOf(instance.owner.tenant))
    this.#tappings.add(tapping)
    this.#named.add(instance.selection.exactName, tapping)
    for (const sensor of instance.selection.listening()) {
      for (const series of sensor.series(instance.selection.exactName)) this.#match(tapping, sensor, series)
    }
    this.#follow(tapping)
    return () => this.#untap(tapping)
  }

  /**
   * Rights have changed: what may not be read any more is untapped, what may be read now is tapped. Gives the instances
   * that lost something, and whether that was all they had.
   */
  rematch(concerns: (instance: Instance) => boolean): Map<Instance, 'some' | 'all'> {
    this.wanted.matchAll(concerns)
    const lost = new Map<Instance, 'some' | 'all'>()
    for (const tapping of [...this.#tappings]) {
      const { instance } = tapping
      if (!concerns(instance)) continue
      const left = this.#rematch(tapping)
      if (left) lost.set(instance, tapping.size === 0 ? 'all' : 'some')
    }
    return lost
  }

  /** True if anything was untapped. */
  #rematch(tapping: Tapping): boolean {
    const had = new Set<Series | string>([...tapping.series.keys(), ...tapping.ends.keys()])
    for (const sensor of this.#sensors) {
      if (sensor.polled !== false) continue
      for (const series of sensor.series(tapping.instance.selection.exactName)) this.#match(tapping, sensor, series)
    }
    this.#follow(tapping)
    for (const key of [...tapping.series.keys(), ...tapping.ends.keys()]) had.delete(key)
    return had.size > 0
  }

  /** Polls and subscribes what the instance selects now, and nothing else. */
  #follow(tapping: Tapping): void {
    const { instance, sink, ends, place } = tapping
    const { selection } = instance
    const [polled, events] = [selection.polled(), selection.events()]
    const wanted = new Set([...polled, ...events].map((target) => this.#keyOf(target)))
    for (const [key, end] of ends) {
      if (wanted.has(key)) continue
      ends.delete(key)
      tapping.count.leave()
      end()
    }
    for (const target of polled) {
      const key = this.#keyOf(target)
      if (ends.has(key) || !this.#enter(tapping)) continue
      const head = instance.head(target.labels, target.open)
      const listener = ({ value, time }: Measured): void => sink.append(head, this.#encode(value), time)
      ends.set(key, this.#poller.poll(target, selection.identity, selection.intervalMs, listener))
    }
    for (const target of events) {
      const key = this.#keyOf(target)
      if (ends.has(key) || !this.#enter(tapping)) continue
      const { sensor, metric, args, labels, open } = target
      const head = instance.head(labels, open)
      const listener = ({ value, time }: Measured): void => {
        if (this.fences.has(sensor)) this.fences.keep(sensor)
        else sink.append(head, this.#encode(value), time)
      }
      ends.set(key, sensor.subscribe(metric, instance.owner, listener, args, place))
    }
  }

  /** Two sensors may have a metric of the same name. */
  #keyOf({ sensor, metric }: PolledTarget | EventTarget): string {
    return `${this.#sensors.indexOf(sensor)} ${metric.name}`
  }

  #untap(tapping: Tapping): void {
    if (!this.#tappings.delete(tapping)) return
    this.#named.delete(tapping.instance.selection.exactName, tapping)
    this.#starved.delete(tapping)
    tapping.count.used -= tapping.size
    for (const end of tapping.ends.values()) end()
    for (const [series, { tap }] of tapping.series) drop(series, tap)
  }

  /** False, and counted, if the tenant has all it may: it is tried again when there is room. */
  #enter(tapping: Tapping): boolean {
    const { count } = tapping
    if (count.hasRoom()) {
      count.used++
      return true
    }
    count.refused++
    this.#starved.add(tapping)
    return false
  }

  /** To be called every second: who did without gets what there is room for now. */
  sweep(): void {
    for (const tapping of [...this.#starved]) {
      if (!tapping.count.hasRoom()) continue
      this.#starved.delete(tapping)
      const { refused } = tapping.count
      this.#rematch(tapping)
      // Those that still find no room were counted before.
      tapping.count.refused = refused
    }
  }

  #match(tapping: Tapping, sensor: ListeningSensor, series: Series): void {
    const { instance, sink } = tapping
    const open = this.fences.has(sensor) ? undefined : instance.selection.openFor(sensor, series)
    if (open === undefined) {
      const tapped = tapping.forget(series)
      if (tapped) drop(series, tapped)
      return
    }
    if (tapping.series.has(series) || !this.#enter(tapping)) return
    const tap = { head: instance.headOf(series, open), sink, at: series.taps.length }
    tapping.series.set(series, { sensor, tap })
    series.taps.push(tap)
    const known = series.first?.()
    if (known !== undefined) sink.append(tap.head, this.#encode(known.value), known.time)
  }

  #encode(value: Value): Uint8Array {
    writeTyped(this.#writer.clear(), value)
    return this.#writer.bytes()
  }

  /** A series is born, or is found by other names than before. */
  born(sensor: ListeningSensor, series: Series): void {
    this.wanted.born(sensor, series)
    for (const tapping of this.#named.of(series.name)) this.#match(tapping, sensor, series)
  }

  /** A value of a series; `time` in microseconds since 1970. */
  emit(series: Series, value: Value, time: number): void {
    if (series.taps.length > 0) this.emitEncoded(series, this.#encode(value), time)
  }

  /** The same of a value that is encoded: `tail` is its basic type and itself. */
  emitEncoded({ taps }: Series, tail: Uint8Array, time: number): void {
    for (let index = 0; index < taps.length; index++) {
      const { head, sink } = taps[index] as Tap
      sink.append(head, tail, time)
    }
  }

  /** Its source is gone: whoever subscribed gets one VOID, but of events [MON 9 Kinds]. */
  died(series: Series): void {
    this.wanted.died(series)
    // Most have none.
    if (series.taps.length === 0) return
    if (!series.isEvent) this.emit(series, VOID, this.#clock.microseconds())
    series.taps.length = 0
    for (const tapping of this.#named.of(series.name)) tapping.forget(series)
  }

  close(): void {
    for (const tapping of [...this.#tappings]) this.#untap(tapping)
  }
}

/** Where nobody counts. */
function unlimited(): (tenant: string) => Count {
  const count = new Count('bound metrics', () => Number.POSITIVE_INFINITY)
  return () => count
}

/** The last tap takes its place: thousands may end at once. */
function drop(series: Series, tap: Tap): void {
  const { taps } = series
  const last = taps.pop()
  if (last !== undefined && last !== tap) {
    taps[tap.at] = last
    last.at = tap.at
  }
}
