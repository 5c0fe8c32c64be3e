/** An instance that is bound to a sink, and the subscriptions that it has at the moment. The hub makes and ends them. */
import type { Count } from '../accounts/quotas.ts'
import type { Steps } from '../core/fair-work.ts'
import type { MetricInstance } from './instance.ts'
import type { EventTarget, ListeningSensor, PolledTarget, ResumePoint, Series, Sink, Subscription } from './metric.ts'
import type { RemoteTarget } from './remote-selection.ts'
import type { Selection } from './selection.ts'

interface ActiveSubscription {
  readonly sensor: ListeningSensor
  readonly subscription: Subscription
}

/** What is requested of another producer. */
interface Following {
  judge(): Steps<boolean>
  again(): void
}

interface ActiveTarget {
  readonly target: PolledTarget | EventTarget | RemoteTarget
  /** Set if it is requested of another producer. */
  readonly following?: Following
  /** The prefix of the VOID that reports that a part of a source is gone. */
  readonly framePrefix: Uint8Array
  end(): void
}

/** Subscriptions know their binding: when a series ends, nobody else has to be asked. */
export interface HubSubscription extends Subscription {
  readonly binding?: BoundInstance
}

/** Begins to poll a metric; what it returns ends that. */
type Poll = () => () => void

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
  /** What begins to poll each of its polled metrics, with what ends that; undefined while it is not polled. */
  readonly #polled = new Map<Poll, (() => void) | undefined>()
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

  /** Polls a metric whenever it is not paused. The returned function ends that. */
  poll(begin: Poll): () => void {
    this.#polled.set(begin, undefined)
    this.#follow(begin)
    return () => {
      this.#polled.get(begin)?.()
      this.#polled.delete(begin)
    }
  }

  /** Pauses, or goes on: then each polled metric is measured at once. */
  *pause(isPaused: boolean): Steps<void> {
    this.isPaused = isPaused
    for (const begin of this.#polled.keys()) {
      this.#follow(begin)
      yield
    }
  }

  #follow(begin: Poll): void {
    const end = this.#polled.get(begin)
    if (!this.isPaused) {
      this.#polled.set(begin, end ?? begin())
      return
    }
    end?.()
    this.#polled.set(begin, undefined)
    this.sink.paused?.()
  }

  /** Applies a change of rights to what comes from other producers. Returns whether it lost a series. */
  *judge(): Steps<boolean> {
    let hasLost = false
    for (const { following } of [...this.ending.values()]) {
      if (following !== undefined && (yield* following.judge())) hasLost = true
    }
    return hasLost
  }

  followAgain(): void {
    for (const { following } of this.ending.values()) following?.again()
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

/** How many metrics a binding of a selection would have now. */
export function* matchesOf(selection: Selection): Steps<number> {
  let matches = (yield* selection.polled()).length + (yield* selection.events()).length
  matches += selection.remote.targets().length
  for (const sensor of selection.listening()) {
    for (const series of selection.series(sensor)) {
      if (series !== undefined && selection.openFor(sensor, series) !== undefined) matches++
      yield
    }
  }
  return matches
}
