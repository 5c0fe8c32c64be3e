/**
 * Bindings: which metric id goes to which channel, and how [MON 6.6, 6.7, 8 Binding]. An id has one binding per channel,
 * SUBSCRIBE or BUFFER; the later command replaces the earlier.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { writeArguments } from '../../protocol/monitor/arguments.ts'
import type { BindingRow, InstanceRow } from '../../storage/store.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Instance } from '../metrics/instance.ts'
import type { Instances } from '../metrics/instances.ts'
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
  }

  /**
   * SUBSCRIBE. `frames` are copied from the current channel, in the same batch as the binding. The hold keeps what comes of
   * it back until the response is out.
   */
  subscribe(instance: Instance, channel: Channel, frames: readonly Uint8Array[]): Hold | undefined {
    const bound = channel.bindings.get(instance.id)
    if (bound?.mode === 'subscribe') return undefined
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

  /** BUFFER. */
  buffer(instance: Instance, channel: Channel): void {
    const bound = channel.bindings.get(instance.id)
    if (bound?.mode === 'buffer') return
    if (bound === undefined) {
      this.#bind(instance, channel, 'buffer')
    } else {
      bound.mode = 'buffer'
      this.#store(instance, channel, 'buffer')
    }
  }

  /** A binding as it was stored: nothing is written. */
  restore(instance: Instance, channel: Channel, mode: BindingRow['mode']): void {
    this.#tap(instance, channel, mode)
  }

  #bind(instance: Instance, channel: Channel, mode: BindingRow['mode']): void {
    this.#store(instance, channel, mode)
    this.#tap(instance, channel, mode)
  }

  #tap(instance: Instance, channel: Channel, mode: BindingRow['mode']): void {
    const binding: Binding = { instance, mode, untap: () => {} }
    channel.bindings.set(instance.id, binding)
    instance.boundOn.add(channel.id)
    binding.untap = this.#hub.tap(instance, {
      append: (head, tail, time) => channel.queue.append(binding.mode === 'buffer' ? instance.id : 0, head, tail, time),
    })
  }

  #store(instance: Instance, channel: Channel, mode: BindingRow['mode']): void {
    if (!channel.survives) return
    this.#registry.store(channel)
    if (!instance.stored) {
      instance.stored = true
      this.#journal.change({ put: 'instance', row: instanceRow(instance) })
    }
    this.#journal.change({ put: 'binding', row: { channel: channel.id, metric: instance.id, mode } })
  }

  /** STOP on one channel. A promise while values in flight have to be read back to be told apart. */
  stop(instance: Instance, channel: Channel): Promise<void> | undefined {
    channel.gets.delete(instance.id)
    channel.bindings.get(instance.id)?.untap()
    const wasBound = channel.bindings.delete(instance.id)
    instance.boundOn.delete(channel.id)
    const done = channel.queue.stop(instance.id, (block) => this.#registry.read(block))
    if (!channel.stored) return done
    const through = channel.queue.stops.get(instance.id)
    if (wasBound) this.#journal.change({ remove: 'binding', channel: channel.id, metric: instance.id })
    if (through !== undefined) {
      this.#journal.change({ put: 'stop', row: { channel: channel.id, metric: instance.id, through } })
    }
    return done
  }

  /** Destroys an instance that is bound nowhere. */
  endUnbound(instance: Instance): void {
    if (instance.boundOn.size > 0) return
    if (instance.stored) this.#journal.change({ remove: 'instance', id: instance.id })
    this.#instances.remove(instance)
  }

  /** DEL_CHANNEL and expiry: the channel, and the instances bound to nothing else. */
  deleteChannel(channel: Channel): void {
    const instances = [...channel.bindings.values()].map(({ instance }) => instance)
    this.#registry.delete(channel)
    for (const instance of instances) {
      instance.boundOn.delete(channel.id)
      this.endUnbound(instance)
    }
  }
}

function instanceRow(instance: Instance): InstanceRow {
  const writer = new XdrWriter()
  writeArguments(writer, instance.selection.args)
  return { id: instance.id, user: instance.owner.userId, metric: instance.selection.name, args: writer.copy() }
}
