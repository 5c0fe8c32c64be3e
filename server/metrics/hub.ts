/**
 * Who wants which value. Sensors hand in births, values and deaths; taps bind an instance to a sink (a lane of a channel).
 * One decode, one encode: a value is encoded once, however many taps it has.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Clock } from '../clock.ts'
import type { Instance } from './instance.ts'
import type { ListeningSensor, Sensor, Series } from './metric.ts'
import { Poller } from './poller.ts'

/** Takes frames of values: `head` and `tail` are valid only during the call. `time`: microseconds since 1970. */
export interface Sink {
  append(head: Uint8Array, tail: Uint8Array, time: number): void
}

interface Tap {
  readonly head: Uint8Array
  readonly sink: Sink
}

/** An instance tapped into a sink, with the taps it has now. */
class Tapping {
  readonly instance: Instance
  readonly sink: Sink
  readonly ends: (() => void)[] = []
  readonly series = new Map<Series, Tap>()

  constructor(instance: Instance, sink: Sink) {
    this.instance = instance
    this.sink = sink
  }
}

export class Hub {
  readonly #sensors: Sensor[] = []
  readonly #taps = new Map<Series, Set<Tap>>()
  readonly #tappings = new Set<Tapping>()
  readonly #poller: Poller
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #writer = new XdrWriter()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#poller = new Poller(clock)
  }

  get sensors(): readonly Sensor[] {
    return this.#sensors
  }

  add(sensor: Sensor): void {
    this.#sensors.push(sensor)
  }

  /** Sends every value of an instance to a sink from now on; a polled one is measured at once. The returned function ends it. */
  tap(instance: Instance, sink: Sink): () => void {
    const tapping = new Tapping(instance, sink)
    this.#tappings.add(tapping)
    for (const sensor of instance.selection.listening()) {
      for (const series of sensor.series(instance.selection.exactName)) this.#match(tapping, sensor, series)
    }
    for (const target of instance.selection.polled()) {
      const head = instance.head(target.labels, target.open)
      const { identity, intervalMs } = instance.selection
      tapping.ends.push(
        this.#poller.poll(target, identity, intervalMs, ({ value, time }) =>
          sink.append(head, this.#encode(value), time),
        ),
      )
    }
    for (const { sensor, metric, labels, open } of instance.selection.events()) {
      const head = instance.head(labels, open)
      tapping.ends.push(
        sensor.subscribe(metric, instance.owner, ({ value, time }) => sink.append(head, this.#encode(value), time)),
      )
    }
    return () => this.#untap(tapping)
  }

  #untap(tapping: Tapping): void {
    if (!this.#tappings.delete(tapping)) return
    for (const end of tapping.ends) end()
    for (const [series, tap] of tapping.series) this.#drop(series, tap)
  }

  #match(tapping: Tapping, sensor: ListeningSensor, series: Series): void {
    const { instance, sink } = tapping
    const open = instance.selection.openFor(sensor, series)
    const tapped = tapping.series.get(series)
    if (open === undefined) {
      if (tapped) this.#drop(series, tapped)
      tapping.series.delete(series)
      return
    }
    if (tapped) return
    const tap = { head: instance.headOf(series, open), sink }
    tapping.series.set(series, tap)
    const taps = this.#taps.get(series)
    if (taps) taps.add(tap)
    else this.#taps.set(series, new Set([tap]))
  }

  #drop(series: Series, tap: Tap): void {
    const taps = this.#taps.get(series)
    taps?.delete(tap)
    if (taps?.size === 0) this.#taps.delete(series)
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
    const taps = this.#taps.get(series)
    if (taps === undefined) return
    const tail = this.#encode(value)
    for (const { head, sink } of taps) sink.append(head, tail, time)
  }

  /** Its source is gone: whoever subscribed gets one VOID [MON 9 Kinds]. */
  died(series: Series): void {
    this.emit(series, VOID, this.#clock.microseconds())
    this.#taps.delete(series)
    for (const tapping of this.#tappings) tapping.series.delete(series)
  }

  close(): void {
    for (const tapping of [...this.#tappings]) this.#untap(tapping)
  }
}
