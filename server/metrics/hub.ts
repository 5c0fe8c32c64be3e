/**
 * Who wants which value. Sensors hand in births, values and deaths; taps bind an instance to a sink (a lane of a channel).
 * One decode, one encode: a value is encoded once, however many taps it has.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Clock } from '../clock.ts'
import { Fences } from './fences.ts'
import type { Instance } from './instance.ts'
import type { ListeningSensor, Measured, Place, Sensor, Series, Sink, Tap } from './metric.ts'
import { Poller } from './poller.ts'

/** Of what is bound nowhere. */
const nowhere: Place = { reached: undefined, reach() {} }

/** An instance tapped into a sink, with the taps it has now. */
class Tapping {
  readonly instance: Instance
  readonly sink: Sink
  readonly place: Place
  /** What ends them, by name: metrics that are polled, and events. */
  readonly ends = new Map<string, () => void>()
  readonly series = new Map<Series, Tap>()

  constructor(instance: Instance, sink: Sink, place: Place) {
    this.instance = instance
    this.sink = sink
    this.place = place
  }

  get size(): number {
    return this.ends.size + this.series.size
  }
}

export class Hub {
  readonly fences: Fences
  readonly #sensors: Sensor[] = []
  readonly #tappings = new Set<Tapping>()
  readonly #poller: Poller
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #writer = new XdrWriter()

  constructor(clock: Clock, fences = new Fences()) {
    this.fences = fences
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
    const time = this.#clock.microseconds()
    const series = sensor.polled === false ? new Set(sensor.series()) : new Set<Series>()
    for (const one of series) {
      this.emit(one, VOID, time)
      one.taps.length = 0
    }
    for (const tapping of this.#tappings) {
      for (const tapped of tapping.series.keys()) if (series.has(tapped)) tapping.series.delete(tapped)
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
    for (const tapping of this.#tappings) {
      for (const series of sensor.series(tapping.instance.selection.exactName)) this.#match(tapping, sensor, series)
    }
  }

  /** Sends every value of an instance to a sink from now on; a polled one is measured at once. The returned function ends it. */
  tap(instance: Instance, sink: Sink, place: Place = nowhere): () => void {
    const tapping = new Tapping(instance, sink, place)
    this.#tappings.add(tapping)
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
    const wanted = new Set([...polled, ...events].map(({ metric }) => metric.name))
    for (const [name, end] of ends) {
      if (wanted.has(name)) continue
      ends.delete(name)
      end()
    }
    for (const target of polled) {
      if (ends.has(target.metric.name)) continue
      const head = instance.head(target.labels, target.open)
      const listener = ({ value, time }: Measured): void => sink.append(head, this.#encode(value), time)
      const end = this.#poller.poll(target, selection.identity, selection.intervalMs, listener)
      ends.set(target.metric.name, end)
    }
    for (const { sensor, metric, args, labels, open } of events) {
      if (ends.has(metric.name)) continue
      const head = instance.head(labels, open)
      const listener = ({ value, time }: Measured): void => {
        if (this.fences.has(sensor)) this.fences.keep(sensor)
        else sink.append(head, this.#encode(value), time)
      }
      ends.set(metric.name, sensor.subscribe(metric, instance.owner, listener, args, place))
    }
  }

  #untap(tapping: Tapping): void {
    if (!this.#tappings.delete(tapping)) return
    for (const end of tapping.ends.values()) end()
    for (const [series, tap] of tapping.series) drop(series, tap)
  }

  #match(tapping: Tapping, sensor: ListeningSensor, series: Series): void {
    const { instance, sink } = tapping
    const open = this.fences.has(sensor) ? undefined : instance.selection.openFor(sensor, series)
    const tapped = tapping.series.get(series)
    if (open === undefined) {
      if (tapped) drop(series, tapped)
      tapping.series.delete(series)
      return
    }
    if (tapped) return
    const tap = { head: instance.headOf(series, open), sink, at: series.taps.length }
    tapping.series.set(series, tap)
    series.taps.push(tap)
  }

  #encode(value: Value): Uint8Array {
    writeTyped(this.#writer.clear(), value)
    return this.#writer.bytes()
  }

  /** A series is born, or is found by other names than before. */
  born(sensor: ListeningSensor, series: Series): void {
    for (const tapping of this.#tappings) this.#match(tapping, sensor, series)
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

  /** Its source is gone: whoever subscribed gets one VOID [MON 9 Kinds]. */
  died(series: Series): void {
    this.emit(series, VOID, this.#clock.microseconds())
    series.taps.length = 0
    for (const tapping of this.#tappings) tapping.series.delete(series)
  }

  close(): void {
    for (const tapping of [...this.#tappings]) this.#untap(tapping)
  }
}

/** The last tap takes its place: thousands may end at once. */
function drop({ taps }: Series, tap: Tap): void {
  const last = taps.pop()
  if (last === undefined || last === tap) return
  taps[tap.at] = last
  last.at = tap.at
}
