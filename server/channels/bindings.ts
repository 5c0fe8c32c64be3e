/**
 * Bindings: which metric id goes to which channel, and how [MON 6.6, 6.7, 8 Binding]. An id has one binding per channel,
 * SUBSCRIBE or BUFFER; the later command replaces the earlier.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { writeArguments } from '../../protocol/monitor/arguments.ts'
import { NoticeCode } from '../../protocol/monitor/constants.ts'
import type { BindingRow, InstanceRow } from '../../storage/store.ts'
import type { Hub } from '../metrics/hub.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Instances } from '../metrics/instances.ts'
import type { Sink } from '../metrics/metric.ts'
import type { Binding, Channel } from './channel.ts'
import type { Journal } from './journal.ts'
import type { Hold } from './queue-state.ts'
import type { Registry } from './registry.ts'

export class Bindings {
  readonly #hub: Hub
  readonly #instances: Instances
  readonly #registry: Registry
  readonly #journal: Journal

  constructor(parts: { hub: Hub; instances: Instances; registry: Registry; journal: Journal }) {
    this.#hub = parts.hub
    this.#instances = parts.instances
    this.#registry = parts.registry
    this.#journal = parts.journal
    this.#registry.join(this)
  }

  /**
   * SUBSCRIBE. Throws StatusError QUOTA_EXCEEDED. `frames` are copied from the current channel, in the same batch as the binding. The hold keeps what comes of
   * it back until the response is out.
   */
  subscribe(instance: MetricInstance, channel: Channel, frames: readonly Uint8Array[]): Hold | undefined {
    const bound = channel.bindings.get(instance.id)
    if (bound?.mode === 'subscribe') return undefined
    if (bound === undefined) this.#hub.needsRoom(instance)
    const hold = channel.queue.hold()
    if (bound !== undefined) {
      channel.queue.release(instance.id)
      bound.mode = 'subscribe'
      this.#store(instance, channel, 'subscribe')
      return hold
    }
    for (const frame of frames) channel.queue.appendFrames(frame, instance.selection.isPattern)
    this.#bind(instance, channel, 'subscribe')
    return hold
  }

  /** BUFFER. Throws StatusError QUOTA_EXCEEDED. */
  buffer(instance: MetricInstance, channel: Channel): void {
    const bound = channel.bindings.get(instance.id)
    if (bound?.mode === 'buffer') return
    if (bound === undefined) {
      this.#hub.needsRoom(instance)
      this.#bind(instance, channel, 'buffer')
    } else {
      bound.mode = 'buffer'
      this.#store(instance, channel, 'buffer')
    }
  }

  /** A binding as it was stored: nothing is written. */
  restore(instance: MetricInstance, channel: Channel, mode: BindingRow['mode'], reached: number | undefined): void {
    this.#tap(instance, channel, mode, reached)
  }

  #bind(instance: MetricInstance, channel: Channel, mode: BindingRow['mode']): void {
    this.#store(instance, channel, mode)
    this.#tap(instance, channel, mode)
  }

  #tap(instance: MetricInstance, channel: Channel, mode: BindingRow['mode'], reached?: number): void {
    const binding: Binding = { instance, mode, reached, untap: () => {} }
    channel.bindings.set(instance.id, binding)
    instance.boundOn.add(channel.id)
    instance.unbound?.delete(instance)
    const sink: Sink = {
      append: (head, tail, time) => channel.queue.append(binding.mode === 'buffer' ? instance.id : 0, head, tail, time),
    }
    const reach = (number: number): void => {
      binding.reached = number
      if (channel.stored) this.#storePlace(binding, channel)
    }
    binding.untap = this.#hub.tap(instance, sink, { reached, reach })
  }

  /** In the batch of what was appended before: after a restart it goes on behind that. */
  #storePlace({ instance, reached }: Binding, channel: Channel): void {
    if (reached === undefined) return
    this.#journal.change({ put: 'place', row: { channel: channel.id, metric: instance.id, reached } })
  }

  #store(instance: MetricInstance, channel: Channel, mode: BindingRow['mode']): void {
    if (!channel.survives) return
    this.#registry.store(channel)
    if (!instance.stored) {
      instance.stored = true
      this.#journal.change({ put: 'instance', row: instanceRow(instance) })
    }
    this.#journal.change({ put: 'binding', row: { channel: channel.id, metric: instance.id, mode } })
  }

  /** A channel that was not worth it has come into the store: what is bound on it follows. */
  storeAll(channel: Channel): void {
    for (const binding of channel.bindings.values()) {
      this.#store(binding.instance, channel, binding.mode)
      this.#storePlace(binding, channel)
    }
  }

  /** STOP on one channel. A promise while values in flight have to be read back to be told apart. */
  stop(instance: MetricInstance, channel: Channel): Promise<void> | undefined {
    this.#unbind(instance, channel)
    return this.#passOver(instance.id, channel)
  }

  #unbind(instance: MetricInstance, channel: Channel): void {
    channel.gets.delete(instance.id)
    channel.outbox.dropAnswers(instance.id)
    channel.bindings.get(instance.id)?.untap()
    const wasBound = channel.bindings.delete(instance.id)
    instance.boundOn.delete(channel.id)
    if (wasBound && channel.stored) {
      this.#journal.change({ remove: 'binding', channel: channel.id, metric: instance.id })
    }
  }

  /** The identity may not read it any more [MON 15]: the binding ends, and what is lost with it is told in the sending order. */
  async withdraw(instance: MetricInstance, channel: Channel): Promise<void> {
    const { queue } = channel
    const hold = queue.hold()
    // What waits has no place in the sending order yet, and nobody could ask for its GAP any more.
    if (channel.bindings.get(instance.id)?.mode === 'buffer') queue.release(instance.id)
    this.#unbind(instance, channel)
    const detail = `${instance.selection.name} may not be read any more: metric id ${instance.id} is not bound here`
    channel.connection?.notice(NoticeCode.WITHDRAWN, channel.id, detail)
    try {
      await this.purge(instance, channel)
    } finally {
      queue.letGo(hold)
    }
  }

  /** Drops what a channel holds of an instance; a GAP tells it. */
  async purge({ id: metric }: MetricInstance, { queue }: Channel): Promise<void> {
    await queue.purge({ metric }, (block) => this.#registry.read(block))
  }

  /** STOP of a result: its value is dropped, or never comes; the control goes on [MON 10]. */
  stopResult(id: number, channel: Channel): Promise<void> | undefined {
    const done = this.#passOver(id, channel)
    this.#registry.endResult(channel, id)
    return done
  }

  /** What the channel holds of an id is not sent any more, nor after a restart. */
  #passOver(metric: number, channel: Channel): Promise<void> | undefined {
    const done = channel.queue.stop(metric, (block) => this.#registry.read(block))
    const through = channel.queue.stops.get(metric)
    // What is not durable begins anew with its ids: after a restart the stop would take new values.
    if (through !== undefined && channel.stored && channel.row.durable) {
      this.#journal.change({ put: 'stop', row: { channel: channel.id, metric, through } })
    }
    return done
  }

  /** Destroys an instance that is bound nowhere. */
  endUnbound(instance: MetricInstance): void {
    if (instance.boundOn.size > 0 || !this.#instances.remove(instance)) return
    if (instance.stored) this.#journal.change({ remove: 'instance', id: instance.id })
  }
}

function instanceRow(instance: MetricInstance): InstanceRow {
  const writer = new XdrWriter()
  writeArguments(writer, instance.selection.args)
  return { id: instance.id, user: instance.owner.userId, metric: instance.selection.name, args: writer.copy() }
}
