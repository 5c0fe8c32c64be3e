/** An instance tapped into a sink, with the taps it has now. */
import type { Count } from '../quotas.ts'
import type { Instance } from './instance.ts'
import type { ListeningSensor, Place, Series, Sink, Tap } from './metric.ts'

interface Tapped {
  readonly sensor: ListeningSensor
  readonly tap: Tap
}

export class Tapping {
  readonly instance: Instance
  readonly sink: Sink
  readonly place: Place
  /** What its tenant has bound. */
  readonly count: Count
  /** What ends them, by sensor and name: metrics that are polled, and events. */
  readonly ends = new Map<string, () => void>()
  readonly series = new Map<Series, Tapped>()

  constructor(instance: Instance, sink: Sink, place: Place, count: Count) {
    this.instance = instance
    this.sink = sink
    this.place = place
    this.count = count
  }

  /** Undefined if the series was not tapped. */
  forget(series: Series): Tap | undefined {
    const tapped = this.series.get(series)
    if (tapped === undefined) return undefined
    this.series.delete(series)
    this.count.leave()
    return tapped.tap
  }

  get size(): number {
    return this.ends.size + this.series.size
  }
}
