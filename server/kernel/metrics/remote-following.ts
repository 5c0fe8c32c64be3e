/** What a binding gets of another producer under one request: the series that it may read, each with the prefix of its frames. */
import type { Steps } from '../core/fair-work.ts'
import type { BoundInstance } from './bound-instance.ts'
import type { HeldQueue, RemoteFollower, RemoteLoss, RemoteSeries, RemoteTap, Subscription } from './metric.ts'
import type { RemoteTarget } from './remote-selection.ts'
import { unsubscribe } from './subscriptions.ts'

export class RemoteFollowing implements RemoteFollower {
  readonly #binding: BoundInstance
  readonly #target: RemoteTarget
  /** All series that have come; undefined for those that may not be read. */
  readonly #series = new Map<RemoteSeries, Subscription | undefined>()
  #tap: RemoteTap
  #isOver = false

  constructor(binding: BoundInstance, target: RemoteTarget) {
    this.#binding = binding
    this.#target = target
    this.#tap = target.sensor.follow(target.request, this)
  }

  /** The prefix of a VOID for all of it. */
  get framePrefix(): Uint8Array {
    const { labels, open } = this.#target
    return this.#binding.instance.framePrefix(labels, open)
  }

  get isDurable(): boolean {
    return this.#binding.sink.isDurable === true
  }

  get queue(): HeldQueue | undefined {
    return this.#binding.sink.queue
  }

  /** Follows the same in the other way, durable or not. */
  again(): void {
    this.#leave()
    this.#tap = this.#target.sensor.follow(this.#target.request, this)
    for (const series of this.#tap.series) this.born(series)
  }

  /** Takes what was there before. */
  *begin(): Steps<void> {
    for (const series of this.#tap.series) {
      if (this.#isOver) return
      this.born(series)
      yield
    }
  }

  born(series: RemoteSeries): void {
    if (this.#series.get(series) !== undefined) return
    const subscription = this.#subscribe(series)
    this.#series.set(series, subscription)
    const { known } = series
    if (subscription !== undefined && known !== undefined) {
      subscription.sink.append(subscription.framePrefix, known.tail, known.time)
    }
  }

  forget(series: RemoteSeries): void {
    const subscription = this.#series.get(series)
    this.#series.delete(series)
    if (subscription !== undefined) unsubscribe(series, subscription)
  }

  lost(loss: RemoteLoss): void {
    this.#binding.sink.lost?.(loss)
  }

  /** Applies a change of rights. Returns whether it lost a series. */
  *judge(): Steps<boolean> {
    let hasLost = false
    for (const [series, subscription] of this.#series) {
      if (subscription === undefined) this.born(series)
      else if (this.#openFor(series) === undefined) {
        unsubscribe(series, subscription)
        this.#series.set(series, undefined)
        hasLost = true
      }
      yield
      if (this.#isOver) break
    }
    return hasLost
  }

  end(): void {
    this.#isOver = true
    this.#leave()
  }

  #leave(): void {
    this.#tap.end()
    for (const series of [...this.#series.keys()]) this.forget(series)
  }

  #openFor(series: RemoteSeries) {
    return this.#binding.instance.selection.remote.openFor(this.#target.sensor, series)
  }

  #subscribe(series: RemoteSeries): Subscription | undefined {
    const open = this.#openFor(series)
    if (open === undefined) return undefined
    const { instance, sink } = this.#binding
    const framePrefix = instance.framePrefixOf(series, open)
    const subscription: Subscription = { framePrefix, sink, at: series.subscriptions.length }
    series.subscriptions.push(subscription)
    return subscription
  }
}
