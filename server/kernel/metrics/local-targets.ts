/** The targets of this producer: what is measured on request, and what happens. */
import type {
  Arguments,
  EventSensor,
  Labels,
  LocalSensor,
  Measurement,
  Metric,
  OpenLabels,
  PolledMetric,
  PolledSensor,
} from './metric.ts'
import { ENCODED_VOID, type FollowedItem, type Follower, type Target, type TargetHub } from './target.ts'

abstract class LocalTarget<S extends LocalSensor> implements Target {
  readonly sensor: S
  readonly metric: Metric
  readonly args: Arguments
  readonly labels: Labels
  readonly open: OpenLabels

  constructor(sensor: S, metric: Metric, args: Arguments, labels: Labels, open: OpenLabels) {
    this.sensor = sensor
    this.metric = metric
    this.args = args
    this.labels = labels
    this.open = open
  }

  abstract follow(follower: Follower, hub: TargetHub): FollowedItem
}

export class PolledTarget extends LocalTarget<PolledSensor> implements PolledMetric {
  /** The part that it measures, if a pattern has selected it. */
  readonly part: string | undefined

  constructor(sensor: PolledSensor, metric: Metric, args: Arguments, labels: Labels, open: OpenLabels, part?: string) {
    super(sensor, metric, args, labels, open)
    this.part = part
  }

  follow(follower: Follower, hub: TargetHub): FollowedItem {
    return new FollowedMetric(this, follower, hub)
  }
}

/** A metric that is polled whenever its binding does not pause. */
class FollowedMetric implements FollowedItem {
  readonly target: PolledTarget
  readonly framePrefix: Uint8Array
  readonly #follower: Follower
  readonly #hub: TargetHub
  readonly #append: (measured: Measurement) => void
  /** Undefined while it is not polled. */
  #end: (() => void) | undefined

  constructor(target: PolledTarget, follower: Follower, hub: TargetHub) {
    this.target = target
    this.framePrefix = follower.instance.framePrefix(target.labels, target.open)
    this.#follower = follower
    this.#hub = hub
    this.#append = hub.appending(target.sensor, this.framePrefix, follower.sink)
    this.pause()
  }

  get sensor(): PolledSensor {
    return this.target.sensor
  }

  pause(): void {
    const { instance, sink, isPaused } = this.#follower
    if (!isPaused) {
      const { owner, selection } = instance
      this.#end ??= this.#hub.poller.poll(this.target, owner, selection.intervalMs, this.#append)
      return
    }
    this.end()
    sink.paused?.()
  }

  fenced(time: number): boolean {
    const { sink, isPaused } = this.#follower
    if (!isPaused) sink.append(this.framePrefix, ENCODED_VOID, time)
    return false
  }

  end(): void {
    this.#end?.()
    this.#end = undefined
  }
}

export class EventTarget extends LocalTarget<EventSensor> {
  follow({ instance, sink, resumePoint }: Follower, { fences, appending }: TargetHub): FollowedItem {
    const { sensor, metric, args, labels, open } = this
    const framePrefix = instance.framePrefix(labels, open)
    const append = appending(sensor, framePrefix, sink)
    const listener = (event: Measurement): void => {
      if (fences.has(sensor)) fences.countDiscarded(sensor)
      else append(event)
    }
    const queue = sink.isDurable ? sink.queue : undefined
    return {
      sensor,
      target: this,
      framePrefix,
      end: sensor.subscribe(metric, instance.owner, listener, args, resumePoint, queue),
    }
  }
}
