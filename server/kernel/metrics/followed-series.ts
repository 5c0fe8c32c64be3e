/**
 * A series that a binding has: its subscription. Bindings have a hundred thousand of them, and each value of a series goes
 * through all of its own, so it is one small object.
 */
import type { Steps } from '../core/fair-work.ts'
import type { BoundInstance, HubSubscription } from './bound-instance.ts'
import type { ListeningSensor, OpenLabels, Series, Sink } from './metric.ts'
import { unsubscribe } from './subscriptions.ts'
import { ENCODED_VOID, type Followed } from './target.ts'

export class FollowedSeries implements Followed, HubSubscription {
  readonly framePrefix: Uint8Array
  readonly sink: Sink
  at: number
  readonly binding: BoundInstance
  readonly sensor: ListeningSensor
  readonly #series: Series

  /** Subscribes to a series; `open`: the labels that are sent with its values. */
  constructor(binding: BoundInstance, sensor: ListeningSensor, series: Series, open: OpenLabels) {
    this.framePrefix = binding.instance.framePrefixOf(series, open)
    this.sink = binding.sink
    this.at = series.subscriptions.length
    this.binding = binding
    this.sensor = sensor
    this.#series = series
    series.subscriptions.push(this)
  }

  fenced(time: number): boolean {
    if (!this.#series.isEvent) this.sink.append(this.framePrefix, ENCODED_VOID, time)
    return true
  }

  /** There is nothing to lose but all of it. */
  *judge(): Steps<boolean> {
    const { selection } = this.binding.instance
    if (selection.openFor(this.sensor, this.#series) === undefined) this.binding.drop(this.#series)
    yield
    return false
  }

  end(): void {
    unsubscribe(this.#series, this)
  }
}
