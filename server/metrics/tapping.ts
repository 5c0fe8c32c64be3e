/** An instance tapped into a sink, with the taps it has now. */
import type { Count } from '../accounts/quotas.ts'
import type { MetricInstance } from './instance.ts'
import type { ListeningSensor, ResumePoint, Series, Sink, Subscription } from './metric.ts'

interface Tapped {
  readonly sensor: ListeningSensor
  readonly tap: Subscription
}

export class BoundInstance {
  readonly instance: MetricInstance
  readonly sink: Sink
  readonly resumePoint: ResumePoint
  /** What its tenant has bound. */
  readonly count: Count
  /** What ends them, by name: metrics that are polled, and events. */
  readonly ending = new Map<string, () => void>()
  readonly series = new Map<Series, Tapped>()

  constructor(instance: MetricInstance, sink: Sink, place: ResumePoint, count: Count) {
    this.instance = instance
    this.sink = sink
    this.resumePoint = place
    this.count = count
  }

  /** Undefined if the series was not tapped. */
  forget(series: Series): Subscription | undefined {
    const tapped = this.series.get(series)
    if (tapped === undefined) return undefined
    this.series.delete(series)
    this.count.leave()
    return tapped.tap
  }

  get size(): number {
    return this.ending.size + this.series.size
  }
}
