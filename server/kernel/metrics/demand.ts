/**
 * The demand for series that their sensor has to request, such as the counters of a Mono agent. A series is in demand while
 * an instance selects it, bound or not, because GET answers for unbound instances too. Other series need no demand: their
 * values arrive anyway.
 */

import type { Steps } from '../core/fair-work.ts'
import type { Fences } from './fences.ts'
import type { MetricInstance } from './instance.ts'
import type { ListeningSensor, Sensor, Series } from './metric.ts'
import { NameIndex } from './name-index.ts'

interface Demanded {
  readonly sensor: ListeningSensor
  readonly by: Set<MetricInstance>
}

export class Demand {
  readonly #fences: Fences
  readonly #instances = new Map<MetricInstance, Set<Series>>()
  readonly #named = new NameIndex<MetricInstance>()
  readonly #series = new Map<Series, Demanded>()

  constructor(fences: Fences) {
    this.#fences = fences
  }

  /** Brings the demand of an instance up to date: it is new, or may select other series than before. */
  *match(instance: MetricInstance): Steps<void> {
    const before = this.#instances.get(instance)
    this.#instances.set(instance, new Set())
    const { selection, owner } = instance
    this.#named.add(selection.name, owner, instance)
    try {
      yield* this.#enterAll(instance)
    } finally {
      // If the instance is gone meanwhile, nothing of before is in demand by it.
      for (const series of before ?? []) {
        if (!this.#instances.get(instance)?.has(series)) this.#leave(instance, series)
      }
    }
  }

  *#enterAll(instance: MetricInstance): Steps<void> {
    const { selection } = instance
    for (const sensor of selection.listening()) {
      for (const series of selection.series(sensor)) {
        if (!this.#instances.has(instance)) return
        if (series !== undefined) this.#enter(instance, sensor, series)
        yield
      }
      for (const series of sensor.expected?.(selection.exactName) ?? []) {
        if (!this.#instances.has(instance)) return
        this.#enter(instance, sensor, series)
        yield
      }
    }
  }

  *matchAll(): Steps<void> {
    for (const instance of this.#instances.keys()) {
      yield* this.match(instance)
      yield
    }
  }

  remove(instance: MetricInstance): void {
    for (const series of this.#instances.get(instance) ?? []) this.#leave(instance, series)
    this.#instances.delete(instance)
    this.#named.delete(instance.selection.name, instance)
  }

  /** Reports that a series is new, or that it answers to other names than before. */
  born(sensor: ListeningSensor, series: Series): void {
    if (series.wanted === undefined) return
    for (const instance of this.#named.of(series.name, sensor.owner)) {
      if (this.#enter(instance, sensor, series) || !this.#instances.get(instance)?.delete(series)) continue
      this.#leave(instance, series)
    }
  }

  /** Reports that a series has ended. Its `wanted` is not called any more. */
  died(series: Series): void {
    for (const instance of this.#series.get(series)?.by ?? []) this.#instances.get(instance)?.delete(series)
    this.#series.delete(series)
  }

  /** Withdraws all demand from a sensor that is fenced. */
  fenced(sensor: Sensor): void {
    for (const [series, demanded] of [...this.#series]) {
      if (demanded.sensor !== sensor) continue
      this.died(series)
      series.wanted?.(false)
    }
  }

  #enter(instance: MetricInstance, sensor: ListeningSensor, series: Series): boolean {
    if (series.wanted === undefined || this.#fences.has(sensor) || !instance.selection.isDemanding) return false
    if (instance.selection.openFor(sensor, series) === undefined) return false
    this.#instances.get(instance)?.add(series)
    const demanded = this.#series.get(series)
    if (demanded !== undefined) demanded.by.add(instance)
    else {
      this.#series.set(series, { sensor, by: new Set([instance]) })
      series.wanted(true)
    }
    return true
  }

  #leave(instance: MetricInstance, series: Series): void {
    const by = this.#series.get(series)?.by
    if (!by?.delete(instance) || by.size > 0) return
    this.#series.delete(series)
    series.wanted?.(false)
  }
}
