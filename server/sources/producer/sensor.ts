/**
 * `producer.*`: each aspect of the producer is a metric of its own, and each metric is a view. The value of a view depends
 * on the identity that reads it.
 */
import type { Owner, Reader } from '../../../auth/permissions.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../../core/clock.ts'
import type { Arguments, Labels, Measurement, Metric, PolledSensor } from '../../metrics/metric.ts'

export interface ProducerView {
  readonly metric: Metric
  /** Throws StatusError INVALID_ARGUMENT for arguments that make no sense. */
  check?(args: Arguments): void
  /** Never throws for arguments that passed `check`. */
  show(identity: Reader, args: Arguments): Value
}

export class ProducerSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #views: ReadonlyMap<string, ProducerView>
  readonly #clock: Pick<Clock, 'microseconds'>

  constructor(views: readonly ProducerView[], clock: Pick<Clock, 'microseconds'>) {
    this.#views = new Map(views.map((view) => [view.metric.name, view]))
    this.#clock = clock
  }

  *metrics(): Iterable<Metric> {
    for (const { metric } of this.#views.values()) yield metric
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

  measure(metric: Metric, args: Arguments, identity: Reader): Measurement {
    const view = this.#views.get(metric.name) as ProducerView
    return { value: view.show(identity, args), time: this.#clock.microseconds() }
  }
}
