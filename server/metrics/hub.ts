/**
 * Who wants which value. Sensors hand in births, values and deaths; taps bind an instance to a sink (a lane of a channel).
 * One decode, one encode: a value is encoded once, however many taps it has.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Clock } from '../clock.ts'
import type { Instance } from './instance.ts'
import type { ListeningSensor, Sensor, Series, Sink, Tap } from './metric.ts'
import { Poller } from './poller.ts'

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
    for (const [series, tap] of tapping.series) drop(series, tap)
  }

  #match(tapping: Tapping, sensor: ListeningSensor, series: Series): void {
    const { instance, sink } = tapping
    const open = instance.selection.openFor(sensor, series)
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
