/** A series that a binding has, with its subscription. */
import type { Steps } from '../core/fair-work.ts'
import type { BoundInstance, HubSubscription } from './bound-instance.ts'
import type { HeldQueue, ListeningSensor, OpenLabels, Series, Sink, SubscribedSink } from './metric.ts'
import { unsubscribe } from './subscriptions.ts'
import { ENCODED_VOID, type FollowedItem } from './target.ts'

export class FollowedSeries implements FollowedItem {
  readonly sensor: ListeningSensor
  readonly series: Series
  /** An object of its own, which has only what a value needs: each goes through all subscriptions of its series. */
  readonly subscription: Required<HubSubscription> & { sink: SubscribedSink }

  /** Subscribes to a series; `open`: the labels that are sent with its values. */
  constructor(binding: BoundInstance, sensor: ListeningSensor, series: Series, open: OpenLabels) {
    const { instance, sink } = binding
    const framePrefix = instance.framePrefixOf(series, open)
    this.sensor = sensor
    this.series = series
    this.subscription = { framePrefix, sink: thinned(sink), at: series.subscriptions.length, binding }
    series.subscriptions.push(this.subscription)
  }

  get framePrefix(): Uint8Array {
    return this.subscription.framePrefix
  }

  thin(): void {
    this.subscription.sink = thinned(this.subscription.binding.sink)
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

function thinned(sink: Sink): SubscribedSink {
  return sink.resolutionUs ? new ThinnedSink(sink, sink.resolutionUs) : sink
}

/**
 * Passes on one value of a series in each span of time: the first one. What comes late, with a time before the last one passed on,
 * always goes on, and so does the end of the series, after which the next value is a first one again.
 */
class ThinnedSink implements SubscribedSink {
  readonly #sink: Sink
  readonly #resolutionUs: number
  /** The time of the last value that was passed on, and the end of its span, microseconds. */
  #last = Number.NEGATIVE_INFINITY
  #end = Number.NEGATIVE_INFINITY

  constructor(sink: Sink, resolutionUs: number) {
    this.#sink = sink
    this.#resolutionUs = resolutionUs
  }

  get isDurable(): boolean {
    return this.#sink.isDurable === true
  }

  get queue(): HeldQueue | undefined {
    return this.#sink.queue
  }

  append(framePrefix: Uint8Array, encodedValue: Uint8Array, time: number): void {
    if (encodedValue.length === ENCODED_VOID.length) this.#end = Number.NEGATIVE_INFINITY
    else if (time >= this.#end) {
      this.#last = time
      this.#end = (Math.floor(time / this.#resolutionUs) + 1) * this.#resolutionUs
    } else if (time >= this.#last) return
    this.#sink.append(framePrefix, encodedValue, time)
  }
}
