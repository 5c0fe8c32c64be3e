/**
 * Bindings: which metric id goes to which channel, and how [MON 6.6, 6.7, 8 Binding]. An id has one binding per channel,
 * by SUBSCRIBE or BUFFER; the later command replaces the earlier.
 */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { writeArguments } from '../../../protocol/monitor/arguments.ts'
import { NoticeCode } from '../../../protocol/monitor/constants.ts'
import type { BindingRow, InstanceRow } from '../../../storage/store.ts'
import type { Steps } from '../core/fair-work.ts'
import type { Hub } from '../metrics/hub.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Instances } from '../metrics/instances.ts'
import type { Sink } from '../metrics/metric.ts'
import type { Channel, ChannelBinding } from './channel.ts'
import type { Journal } from './journal.ts'
import type { FrameCopy } from './metric-values.ts'
import type { QueueHost } from './queue-host.ts'
import type { Registry } from './registry.ts'
import type { SendBarrier } from './window.ts'

/** A binding that SUBSCRIBE has made. */
export interface NewBinding {
  /** Keeps back what comes of it until the response is out; undefined if nothing changed. */
  readonly barrier?: SendBarrier | undefined
  /** Settled when everything that matches is subscribed; undefined if it is so already. */
  readonly matched?: Promise<void> | undefined
}

export class Bindings {
  readonly #hub: Hub
  readonly #instances: Instances
  readonly #registry: Registry
  readonly #journal: Journal
  readonly #host: Pick<QueueHost, 'nextId'>

  constructor(parts: {
    hub: Hub
    instances: Instances
    registry: Registry
    journal: Journal
    host: Pick<QueueHost, 'nextId'>
  }) {
    this.#hub = parts.hub
    this.#instances = parts.instances
    this.#registry = parts.registry
    this.#journal = parts.journal
    this.#host = parts.host
    this.#registry.join(this)
  }

  /** To be called before `subscribe` and `buffer`. Throws StatusError QUOTA_EXCEEDED. */
  *requireRoom(instance: MetricInstance, channels: readonly Channel[]): Steps<void> {
    const unbound = channels.filter(({ bindings }) => !bindings.has(instance.id))
    if (unbound.length > 0) yield* this.#hub.needsRoom(instance, unbound.length)
  }

  /**
   * SUBSCRIBE. Of `copies`, the values of the current channel, it takes those that were accepted there before the binding was
   * made, in the same batch as the binding.
   */
  subscribe(instance: MetricInstance, channel: Channel, copies: readonly FrameCopy[] = []): NewBinding {
    const bound = channel.bindings.get(instance.id)
    if (bound?.mode === 'subscribe') return {}
    const barrier = channel.queue.holdBack()
    try {
      const since = bound?.since ?? this.#begin(instance, channel)
      for (const { block, frame } of copies) {
        if (block < since) channel.queue.appendFrames(frame, instance.selection.carriesLabels())
      }
      if (bound === undefined) return { barrier, matched: this.#bind(instance, channel, 'subscribe', since) }
      channel.queue.release(instance.id)
      bound.mode = 'subscribe'
      this.#store(bound, channel)
      return { barrier }
    } catch (error) {
      barrier.release()
      throw error
    }
  }

  /** BUFFER. The promise settles when everything that matches is subscribed; undefined if it is so already. */
  buffer(instance: MetricInstance, channel: Channel): Promise<void> | undefined {
    const bound = channel.bindings.get(instance.id)
    if (bound?.mode === 'buffer') return undefined
    if (bound === undefined) return this.#bind(instance, channel, 'buffer', this.#begin(instance, channel))
    bound.mode = 'buffer'
    this.#store(bound, channel)
    return undefined
  }

  /**
   * Returns the id that blocks of values from now on are above, on every channel where the metric is bound: those that are open
   * are closed. For a metric that is bound nowhere else there is nothing to compare.
   */
  #begin(instance: MetricInstance, channel: Channel): number {
    if (instance.boundOn.size > 0) {
      channel.queue.seal(instance.id)
      for (const id of instance.boundOn) this.#registry.byId(id)?.queue.seal(instance.id)
    }
    return this.#host.nextId()
  }

  /** Restores a binding as it was stored: nothing is written. */
  restore(
    instance: MetricInstance,
    channel: Channel,
    { mode, since }: BindingRow,
    reached: number | undefined,
  ): Promise<void> | undefined {
    return this.#tap({ instance, mode, since, reached, source: undefined }, channel)
  }

  #bind(
    instance: MetricInstance,
    channel: Channel,
    mode: BindingRow['mode'],
    since: number,
  ): Promise<void> | undefined {
    const binding: ChannelBinding = { instance, mode, since, reached: undefined, source: undefined }
    this.#store(binding, channel)
    return this.#tap(binding, channel)
  }

  #tap(binding: ChannelBinding, channel: Channel): Promise<void> | undefined {
    const { instance, reached } = binding
    channel.bindings.set(instance.id, binding)
    instance.boundOn.add(channel.id)
    instance.unbound?.delete(instance)
    const sink: Sink = {
      queue: channel.queue,
      get isDurable() {
        return channel.row.durable
      },
      get resolutionUs() {
        return channel.resolutionUs
      },
      append(head, tail, time) {
        if (channel.deleted) return
        try {
          channel.queue.append(binding.mode === 'buffer' ? instance.id : 0, head, tail, time)
        } catch (error) {
          channel.outbox.failed(error)
        }
      },
      lost({ isOfSeveral = false, ...loss }) {
        const lane = binding.mode === 'buffer' && !isOfSeveral ? instance.id : 0
        channel.queue.lost(lane, { ...loss, metric: isOfSeveral ? 0 : instance.id })
      },
      paused: () => this.#registry.paused(channel),
    }
    const reach = (number: number): void => {
      binding.reached = number
      if (channel.stored) this.#storePlace(binding, channel)
    }
    binding.source = this.#hub.bind(instance, sink, { reached, reach }, channel.isOrphan)
    return binding.source.matched
  }

  /** In the batch with the values that were appended before: after a restart it continues after them. */
  #storePlace({ instance, reached }: ChannelBinding, channel: Channel): void {
    if (reached === undefined) return
    this.#journal.change({ put: 'place', row: { channel: channel.id, metric: instance.id, reached } })
  }

  #store({ instance, mode, since }: ChannelBinding, channel: Channel): void {
    if (!channel.survives) return
    this.#registry.store(channel)
    if (!instance.stored) {
      instance.stored = true
      this.#journal.change({ put: 'instance', row: instanceRow(instance) })
    }
    this.#journal.change({ put: 'binding', row: { channel: channel.id, metric: instance.id, mode, since } })
  }

  /** A channel was stored for the first time: its bindings follow. */
  storeAll(channel: Channel): void {
    for (const binding of channel.bindings.values()) {
      this.#store(binding, channel)
      this.#storePlace(binding, channel)
    }
  }

  /** A channel has become durable, or is so no more: what other producers send it comes another way. */
  durabilityChanged(channel: Channel): void {
    for (const { source } of channel.bindings.values()) source?.followAgain()
  }

  /** Has values of a series passed over that come within such a span of time after another one. */
  *thin(channel: Channel, resolutionUs: number): Steps<void> {
    if (channel.resolutionUs === resolutionUs) return
    channel.resolutionUs = resolutionUs
    for (const { source } of channel.bindings.values()) yield* source?.thin() ?? []
  }

  /** A channel has become an orphan, or is none any more: its polled metrics pause, or are read again. */
  *pauseAll(channel: Channel): Steps<void> {
    for (const { source } of channel.bindings.values()) {
      yield* source?.pause(channel.isOrphan) ?? []
      yield
    }
  }

  /** A binding collects nothing more; it stays, with what waits, until `resume`, or the next start. */
  halt(binding: ChannelBinding): void {
    binding.source?.end()
    binding.source = undefined
  }

  /** Goes on with bindings of a channel that may be halted. Settles when everything that they match is subscribed. */
  async resume(channel: Channel, halted: readonly ChannelBinding[]): Promise<void> {
    await Promise.all(halted.map((binding) => (binding.source ? binding.source.matched : this.#tap(binding, channel))))
  }

  /** STOP on one channel. A promise if values in flight have to be read back to find those of the metric. */
  stop(instance: MetricInstance, channel: Channel): Promise<void> | undefined {
    this.#unbind(instance, channel)
    return this.#skip(instance.id, channel)
  }

  #unbind(instance: MetricInstance, channel: Channel): void {
    channel.gets.delete(instance.id)
    channel.outbox.dropAnswers(instance.id)
    channel.bindings.get(instance.id)?.source?.end()
    const wasBound = channel.bindings.delete(instance.id)
    instance.boundOn.delete(channel.id)
    if (wasBound && channel.stored) {
      this.#journal.change({ remove: 'binding', channel: channel.id, metric: instance.id })
    }
  }

  /** The identity may not read it any more [MON 15]: the binding ends, and a GAP in the sending order reports the loss. */
  async revoke(instance: MetricInstance, channel: Channel): Promise<void> {
    const { queue } = channel
    const barrier = queue.holdBack()
    // What waits has no place in the sending order yet, and no GET could ask for its GAP any more.
    if (channel.bindings.get(instance.id)?.mode === 'buffer') queue.release(instance.id)
    this.#unbind(instance, channel)
    const detail = `${instance.selection.name} may not be read any more: metric id ${instance.id} is not bound here`
    channel.connection?.notice(NoticeCode.WITHDRAWN, channel.id, detail)
    try {
      await this.purge(instance, channel)
    } finally {
      barrier.release()
    }
  }

  /** Drops what a channel holds of an instance that may not be read any more; a GAP and the log report it. */
  async purge({ id: metric, selection }: MetricInstance, channel: Channel): Promise<void> {
    await this.#registry.purge(channel, { metric }, 'right withdrawn', selection.name)
  }

  /** STOP of a result: its value is dropped, or never comes; the control runs on [MON 10]. */
  stopResult(id: number, channel: Channel): Promise<void> | undefined {
    const done = this.#skip(id, channel)
    this.#registry.endResult(channel, id)
    return done
  }

  /** What the channel holds of an id is not sent any more, not even after a restart. */
  #skip(metric: number, channel: Channel): Promise<void> | undefined {
    const done = channel.queue.stop(metric, (block) => this.#registry.read(block))
    const through = channel.queue.stops.get(metric)
    // A channel that is not durable starts its ids again: after a restart the stop would skip new values.
    if (through !== undefined && channel.stored && channel.row.durable) {
      this.#journal.change({ put: 'stop', row: { channel: channel.id, metric, through } })
    }
    return done
  }

  /** Destroys those of some instances that are bound nowhere. */
  *endAllUnbound(instances: readonly MetricInstance[]): Steps<void> {
    for (const instance of instances) {
      this.endUnbound(instance)
      yield
    }
  }

  /** Destroys an instance that is bound nowhere. */
  endUnbound(instance: MetricInstance): void {
    if (instance.boundOn.size > 0 || !this.#instances.remove(instance)) return
    if (instance.stored) this.#journal.change({ remove: 'instance', id: instance.id })
  }
}

/** An instance as it is stored. */
export function instanceRow(instance: MetricInstance): InstanceRow {
  const writer = new XdrWriter()
  writeArguments(writer, instance.selection.args)
  return { id: instance.id, user: instance.owner.userId, metric: instance.selection.name, args: writer.copy() }
}
