/** What is asked of another producer, and what a binding gets of it: the series that it may read, each with a prefix of its own. */
import type { Steps } from '../core/fair-work.ts'
import type {
  HeldQueue,
  Metric,
  OpenLabels,
  RemoteFollower,
  RemoteLoss,
  RemoteRequest,
  RemoteSensor,
  RemoteSeries,
  RemoteShape,
  RemoteTap,
  Subscription,
} from './metric.ts'
import { isOfRemembered } from './remembered-below.ts'
import { unsubscribe } from './subscriptions.ts'
import type { FollowedItem, Follower, Target } from './target.ts'

const NO_ARGUMENTS: ReadonlyMap<string, never> = new Map<string, never>()
const NO_LABELS: OpenLabels = new Set()

/** Says which series its identity may read. */
interface Judging {
  openFor(sensor: RemoteSensor, shape: RemoteShape): OpenLabels | undefined
}

/** A request of a selection. */
export class RemoteTarget implements Target {
  readonly sensor: RemoteSensor
  /** A stand-in for all metrics where the name is a pattern. */
  readonly metric: Metric
  readonly request: RemoteRequest
  readonly args = NO_ARGUMENTS
  readonly labels: { readonly name: string; readonly producer: string }
  readonly open = NO_LABELS
  readonly #judging: Judging

  constructor(sensor: RemoteSensor, metric: Metric, request: RemoteRequest, judging: Judging) {
    this.sensor = sensor
    this.metric = metric
    this.request = request
    this.labels = { name: request.name, producer: request.producer }
    this.#judging = judging
  }

  get part(): string {
    return this.request.producer
  }

  openFor(series: RemoteSeries): OpenLabels | undefined {
    // Its values are of many series: each answer is judged, and nothing is bound.
    if (isOfRemembered(series.name)) return undefined
    return this.#judging.openFor(this.sensor, series)
  }

  follow(follower: Follower): FollowedItem {
    return new FollowedRequest(this, follower)
  }
}

class FollowedRequest implements FollowedItem, RemoteFollower {
  readonly target: RemoteTarget
  readonly #follower: Follower
  /** All series that have come; undefined for those that may not be read. */
  readonly #series = new Map<RemoteSeries, Subscription | undefined>()
  #tap: RemoteTap
  #isOver = false

  constructor(target: RemoteTarget, follower: Follower) {
    this.target = target
    this.#follower = follower
    this.#tap = target.sensor.follow(target.request, this)
  }

  get sensor(): RemoteSensor {
    return this.target.sensor
  }

  get framePrefix(): Uint8Array {
    const { labels, open } = this.target
    return this.#follower.instance.framePrefix(labels, open)
  }

  get isDurable(): boolean {
    return this.#follower.sink.isDurable === true
  }

  get queue(): HeldQueue | undefined {
    return this.#follower.sink.queue
  }

  /** Follows the same in the other way, durable or not. */
  again(): void {
    this.#leave()
    this.#tap = this.target.sensor.follow(this.target.request, this)
    for (const series of this.#tap.series) this.born(series)
  }

  *catchUp(): Steps<void> {
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
    this.#follower.sink.lost?.(loss)
  }

  *judge(): Steps<boolean> {
    let hasLost = false
    for (const [series, subscription] of this.#series) {
      if (subscription === undefined) this.born(series)
      else if (this.target.openFor(series) === undefined) {
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

  #subscribe(series: RemoteSeries): Subscription | undefined {
    const open = this.target.openFor(series)
    if (open === undefined) return undefined
    const { instance, sink } = this.#follower
    const framePrefix = instance.framePrefixOf(series, open)
    const subscription: Subscription = { framePrefix, sink, at: series.subscriptions.length }
    series.subscriptions.push(subscription)
    return subscription
  }
}
