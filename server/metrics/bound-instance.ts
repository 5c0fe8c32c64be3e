/** An instance that is bound to a sink, and the subscriptions that it has at the moment. The hub makes and ends them. */
import type { Count } from '../accounts/quotas.ts'
import type { MetricInstance } from './instance.ts'
import type { ListeningSensor, ResumePoint, Series, Sink, Subscription } from './metric.ts'

interface ActiveSubscription {
  readonly sensor: ListeningSensor
  readonly subscription: Subscription
}

interface ActiveTarget {
  /** The prefix of the VOID that reports that a part of a source is gone. */
  readonly framePrefix: Uint8Array
  end(): void
}

/** Subscriptions know their binding: when a series ends, nobody else has to be asked. */
export interface HubSubscription extends Subscription {
  readonly binding?: BoundInstance
}

export class BoundInstance {
  readonly instance: MetricInstance
  readonly sink: Sink
  readonly resumePoint: ResumePoint
  /** Counts the bindings of the hub: a binding asks itself for series that are older. */
  readonly number: number
  /** The number of metrics that its tenant has bound. A binding counts even where nothing matches. */
  readonly count: Count
  /** Subscriptions that were refused are tried again: their refusals were counted the first time. */
  isRetried = false
  /** How often its polled metrics and events were looked for, to end those that it must not have. */
  rounds = 0
  /** Its polled metrics and events, by target. */
  readonly ending = new Map<string, ActiveTarget>()
  /** True while parts of sources that have come or gone are looked for. */
  isSearching = false
  readonly series = new Map<Series, ActiveSubscription>()

  constructor(instance: MetricInstance, sink: Sink, resumePoint: ResumePoint, number: number, count: Count) {
    this.instance = instance
    this.sink = sink
    this.resumePoint = resumePoint
    this.number = number
    this.count = count
    count.used++
  }

  /** Removes and returns the subscription to a series; undefined if there was none. */
  forget(series: Series): Subscription | undefined {
    const active = this.series.get(series)
    if (active === undefined) return undefined
    this.series.delete(series)
    this.left()
    return active.subscription
  }

  /** Something that counted has ended. */
  left(): void {
    if (this.size > 0) this.count.leave()
  }

  get size(): number {
    return this.ending.size + this.series.size
  }
}

/** Removes a subscription, if it is there, by moving the last one into its place: thousands may end at once. */
export function unsubscribe(series: Series, subscription: Subscription): void {
  const { subscriptions } = series
  if (subscriptions[subscription.at] !== subscription) return
  const last = subscriptions.pop()
  if (last !== undefined && last !== subscription) {
    subscriptions[subscription.at] = last
    last.at = subscription.at
  }
}
