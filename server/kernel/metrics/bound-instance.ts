/** An instance that is bound to a sink, and the subscriptions that it has at the moment. The hub makes and ends them. */
import type { Count } from '../accounts/quotas.ts'
import type { Steps } from '../core/fair-work.ts'
import type { MetricInstance } from './instance.ts'
import type { ResumePoint, Series, Sink, Subscription } from './metric.ts'
import type { Selection } from './selection.ts'
import type { FollowedItem, Follower } from './target.ts'

/** Subscriptions know their binding: when a series ends, nobody else has to be asked. */
export interface HubSubscription extends Subscription {
  readonly binding?: BoundInstance
}

export class BoundInstance implements Follower {
  readonly instance: MetricInstance
  readonly sink: Sink
  readonly resumePoint: ResumePoint
  /** Counts the bindings of the hub: a binding asks itself for series that are older. */
  readonly number: number
  /** The number of metrics that its tenant has bound. A binding counts even where nothing matches. */
  readonly count: Count
  /** Subscriptions that were refused are tried again: their refusals were counted the first time. */
  isRetried = false
  /** How often its targets were searched for, to end those that it must not have. */
  rounds = 0
  /** What it has: each series, and by a key whatever else a search has found. */
  readonly following = new Map<Series | string, FollowedItem>()
  /** True while parts of sources that have come or gone are looked for. */
  isSearching = false
  /** Its polled metrics are not read. What is pushed goes on. */
  isPaused = false

  constructor(instance: MetricInstance, sink: Sink, resumePoint: ResumePoint, number: number, count: Count) {
    this.instance = instance
    this.sink = sink
    this.resumePoint = resumePoint
    this.number = number
    this.count = count
    count.used++
  }

  /** Pauses, or goes on: then each polled metric is measured at once. */
  *pause(isPaused: boolean): Steps<void> {
    this.isPaused = isPaused
    for (const followed of this.following.values()) {
      followed.pause?.()
      yield
    }
  }

  /** The sink wants another resolution. */
  *thin(): Steps<void> {
    for (const followed of this.following.values()) {
      followed.thin?.()
      yield
    }
  }

  followAgain(): void {
    for (const followed of this.following.values()) followed.again?.()
  }

  /** Ends something that it has. */
  drop(key: Series | string): void {
    this.forget(key)?.end()
  }

  /** Removes and returns something that it has, and that has ended or is to end; undefined if it does not have it. */
  forget(key: Series | string): FollowedItem | undefined {
    const followed = this.following.get(key)
    if (followed === undefined) return undefined
    this.following.delete(key)
    if (this.size > 0) this.count.leave()
    return followed
  }

  get size(): number {
    return this.following.size
  }
}

/** How many metrics a binding of a selection would have now. */
export function* matchesOf(selection: Selection): Steps<number> {
  let matches = (yield* selection.targets()).length
  for (const sensor of selection.listening()) {
    for (const series of selection.series(sensor)) {
      if (series !== undefined && selection.openFor(sensor, series) !== undefined) matches++
      yield
    }
  }
  return matches
}
