/**
 * `producer.*`: each aspect of the producer is a metric of its own, and each metric is a view. The value of a view depends
 * on the identity that reads it.
 */
import type { Owner, Reader } from '../../../auth/permissions.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { isSteps, type Steps } from '../core/fair-work.ts'
import {
  type Arguments,
  byName,
  type Labels,
  type Measurement,
  type Metric,
  type PolledSensor,
} from '../metrics/metric.ts'

export interface ProducerView {
  readonly metric: Metric
  /** Throws StatusError INVALID_ARGUMENT for arguments that make no sense. */
  check?(args: Arguments): void
  /** Never throws for arguments that passed `check`. Lists are made in steps. */
  show(identity: Reader, args: Arguments): Value | Steps<Value>
}

export class ProducerSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #views: ReadonlyMap<string, ProducerView>
  readonly #metrics: readonly Metric[]
  readonly #clock: Pick<Clock, 'microseconds'>

  constructor(views: readonly ProducerView[], clock: Pick<Clock, 'microseconds'>) {
    this.#views = new Map(views.map((view) => [view.metric.name, view]))
    this.#metrics = views.map(({ metric }) => metric).sort(byName)
    this.#clock = clock
  }

  metrics(): Iterable<Metric> {
    return this.#metrics
  }

  metric(name: string): Metric | undefined {
    return this.#views.get(name)?.metric
  }

  labels(metric: Metric): Labels {
    return { name: metric.name }
  }

  check(metric: Metric, args: Arguments): void {
    this.#views.get(metric.name)?.check?.(args)
  }

  measure(metric: Metric, args: Arguments, identity: Reader): Measurement | Steps<Measurement> {
    const view = this.#views.get(metric.name) as ProducerView
    const value = view.show(identity, args)
    return isSteps<Value>(value) ? this.#listed(value) : this.#now(value)
  }

  *#listed(steps: Steps<Value>): Steps<Measurement> {
    return this.#now(yield* steps)
  }

  #now(value: Value): Measurement {
    return { value, time: this.#clock.microseconds() }
  }
}
