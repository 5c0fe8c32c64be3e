/** What a binding gets of another producer under one request: the series that it may read, each with the prefix of its frames. */
import type { BoundInstance } from './bound-instance.ts'
import { unsubscribe } from './bound-instance.ts'
import type { RemoteFollower, RemoteLoss, RemoteSeries, Subscription } from './metric.ts'
import type { RemoteTarget } from './remote-selection.ts'

export class RemoteFollowing implements RemoteFollower {
  readonly isDurable: boolean
  readonly #binding: BoundInstance
  readonly #target: RemoteTarget
  /** All series that have come; undefined for those that may not be read. */
  readonly #series = new Map<RemoteSeries, Subscription | undefined>()
  readonly #end: () => void

  constructor(binding: BoundInstance, target: RemoteTarget) {
    this.isDurable = binding.sink.isDurable === true
    this.#binding = binding
    this.#target = target
    this.#end = target.sensor.follow(target.request, this)
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
  judge(): boolean {
    let hasLost = false
    for (const [series, subscription] of [...this.#series]) {
      if (subscription === undefined) this.born(series)
      else if (this.#openFor(series) === undefined) {
        unsubscribe(series, subscription)
        this.#series.set(series, undefined)
        hasLost = true
      }
    }
    return hasLost
  }

  end(): void {
    this.#end()
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
