/** A series that a binding has, with its subscription. */
import type { Steps } from '../core/fair-work.ts'
import type { BoundInstance, HubSubscription } from './bound-instance.ts'
import type { ListeningSensor, OpenLabels, Series } from './metric.ts'
import { unsubscribe } from './subscriptions.ts'
import { ENCODED_VOID, type FollowedItem } from './target.ts'

export class FollowedSeries implements FollowedItem {
  readonly sensor: ListeningSensor
  readonly series: Series
  /** An object of its own, which has only what a value needs: each goes through all subscriptions of its series. */
  readonly subscription: Required<HubSubscription>

  /** Subscribes to a series; `open`: the labels that are sent with its values. */
  constructor(binding: BoundInstance, sensor: ListeningSensor, series: Series, open: OpenLabels) {
    const { instance, sink } = binding
    const framePrefix = instance.framePrefixOf(series, open)
    this.sensor = sensor
    this.series = series
    this.subscription = { framePrefix, sink, at: series.subscriptions.length, binding }
    series.subscriptions.push(this.subscription)
  }

  get framePrefix(): Uint8Array {
    return this.subscription.framePrefix
  }

  fenced(time: number): boolean {
    const { framePrefix, sink } = this.subscription
    if (!this.series.isEvent) sink.append(framePrefix, ENCODED_VOID, time)
    return true
  }

  /** There is nothing to lose but all of it. */
  *judge(): Steps<boolean> {
    const { binding } = this.subscription
    if (binding.instance.selection.openFor(this.sensor, this.series) === undefined) binding.drop(this.series)
    yield
    return false
  }

  end(): void {
    unsubscribe(this.series, this.subscription)
  }
}
