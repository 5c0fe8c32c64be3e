/**
 * Series that somebody wants: those that an instance selects, bound or not, since GET asks for what COLLECT chose. Kept only
 * of series that their sensor has to ask for; the values of all others come anyway.
 */
import { NameIndex } from './by-name.ts'
import type { Fences } from './fences.ts'
import type { MetricInstance } from './instance.ts'
import type { ListeningSensor, Sensor, Series } from './metric.ts'

interface Want {
  readonly sensor: ListeningSensor
  readonly by: Set<MetricInstance>
}

export class Demand {
  readonly #fences: Fences
  readonly #instances = new Map<MetricInstance, Set<Series>>()
  readonly #named = new NameIndex<MetricInstance>()
  readonly #wants = new Map<Series, Want>()

  constructor(fences: Fences) {
    this.#fences = fences
  }

  /** An instance was made, or may select other series than before. */
  match(instance: MetricInstance): void {
    const before = this.#instances.get(instance)
    this.#instances.set(instance, new Set())
    const { exactName } = instance.selection
    this.#named.add(exactName, instance)
    for (const sensor of instance.selection.listening()) {
      for (const series of sensor.series(exactName)) this.#enter(instance, sensor, series)
      for (const series of sensor.expected?.(exactName) ?? []) this.#enter(instance, sensor, series)
    }
    for (const series of before ?? []) if (!this.#instances.get(instance)?.has(series)) this.#leave(instance, series)
  }

  matchAll(concerns: (instance: MetricInstance) => boolean): void {
    for (const instance of [...this.#instances.keys()]) if (concerns(instance)) this.match(instance)
  }

  remove(instance: MetricInstance): void {
    for (const series of this.#instances.get(instance) ?? []) this.#leave(instance, series)
    this.#instances.delete(instance)
    this.#named.delete(instance.selection.exactName, instance)
  }

  /** A series is born, or is found by other names than before. */
  born(sensor: ListeningSensor, series: Series): void {
    if (series.wanted === undefined) return
    for (const instance of this.#named.of(series.name)) {
      if (this.#enter(instance, sensor, series) || !this.#instances.get(instance)?.delete(series)) continue
      this.#leave(instance, series)
    }
  }

  /** It is not told that nobody wants it any more. */
  died(series: Series): void {
    for (const instance of this.#wants.get(series)?.by ?? []) this.#instances.get(instance)?.delete(series)
    this.#wants.delete(series)
  }

  /** The values of a sensor are kept out from now on: nobody wants them. */
  fenced(sensor: Sensor): void {
    for (const [series, want] of [...this.#wants]) {
      if (want.sensor !== sensor) continue
      this.died(series)
      series.wanted?.(false)
    }
  }

  #enter(instance: MetricInstance, sensor: ListeningSensor, series: Series): boolean {
    if (series.wanted === undefined || this.#fences.has(sensor)) return false
    if (instance.selection.openFor(sensor, series) === undefined) return false
    this.#instances.get(instance)?.add(series)
    const want = this.#wants.get(series)
    if (want !== undefined) want.by.add(instance)
    else {
      this.#wants.set(series, { sensor, by: new Set([instance]) })
      series.wanted(true)
    }
    return true
  }

  #leave(instance: MetricInstance, series: Series): void {
    const by = this.#wants.get(series)?.by
    if (!by?.delete(instance) || by.size > 0) return
    this.#wants.delete(series)
    series.wanted?.(false)
  }
}
