/**
 * Ways out: values of channels that are delivered without a session. A consumer names a URL when it defines its channel, or a wing
 * has a channel of its own and connects it itself.
 */
import type { Users } from '../kernel/accounts/users.ts'
import type { Bindings } from '../kernel/channels/bindings.ts'
import type { Channel } from '../kernel/channels/channel.ts'
import type { ChannelConnection } from '../kernel/channels/outbox.ts'
import type { Registry } from '../kernel/channels/registry.ts'
import { StatusError } from '../kernel/core/errors.ts'
import type { FairWork } from '../kernel/core/fair-work.ts'
import type { Instances } from '../kernel/metrics/instances.ts'
import type { PushDestination } from './push.ts'

/** The user that a channel of a wing belongs to. Nobody can log in as that user, because it has neither password nor token. */
export interface ChannelUser {
  readonly tenant: string
  readonly name: string
  /** Says what may be read. */
  readonly role: string
}

export interface ChannelDelivery {
  /** Offers a destination: channels with a URL of its schemes are delivered there. */
  offer(destination: PushDestination): void
  /** The durable channel of a user, both of which are made if they are missing. Throws StatusError. */
  channelOf(user: ChannelUser): Channel
  /** Binds these metrics and nothing else, also on a channel that was halted. Settles when all that is there is bound; `refused` takes what cannot be. */
  bind(channel: Channel, metrics: readonly string[], refused: (metric: string, detail: string) => void): Promise<void>
  /** Gives a channel the connection that takes its values. */
  attach(channel: Channel, connection: ChannelConnection): void
  detach(channel: Channel, connection: ChannelConnection): void
  /**
   * Channels of users whose names begin with this, but for those that are wanted, collect nothing more; what waits in them stays.
   * Gives these users.
   */
  haltOthers(
    prefix: string,
    isWanted: (user: Pick<ChannelUser, 'tenant' | 'name'>) => boolean,
  ): readonly Pick<ChannelUser, 'tenant' | 'name'>[]
}

export interface DeliveryServices {
  readonly accounts: Users
  readonly registry: Registry
  readonly instances: Instances
  readonly bindings: Bindings
  readonly work: FairWork
  readonly dialler: { offer(destination: PushDestination): void }
}

export class RegistryDelivery implements ChannelDelivery {
  readonly #services: DeliveryServices

  constructor(services: DeliveryServices) {
    this.#services = services
  }

  offer(destination: PushDestination): void {
    this.#services.dialler.offer(destination)
  }

  channelOf({ tenant, name, role }: ChannelUser): Channel {
    const { accounts, registry } = this.#services
    const account =
      accounts.find(tenant, name) ??
      accounts.add({ tenant, name, role, bcrypt: undefined, scram: undefined, loopbackOnly: false })
    if (account.role !== role) accounts.setRole(account, role)
    const identity = accounts.identity(account)
    return registry.named(identity.userId, name) ?? registry.create(identity, true, { name })
  }

  async bind(
    channel: Channel,
    metrics: readonly string[],
    refused: (metric: string, detail: string) => void,
  ): Promise<void> {
    const { bindings } = this.#services
    const wanted = new Set(metrics)
    for (const { instance } of [...channel.bindings.values()]) {
      if (wanted.delete(instance.selection.name)) continue
      await bindings.stop(instance, channel)
      bindings.endUnbound(instance)
    }
    await bindings.resume(channel)
    for (const metric of wanted) {
      try {
        await this.#bind(channel, metric)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        refused(metric, error.message)
      }
    }
  }

  async #bind(channel: Channel, metric: string): Promise<void> {
    const { instances, bindings, work } = this.#services
    const instance = await work.run(channel.owner, instances.collect(channel.owner, metric, []))
    await work.run(channel.owner, bindings.requireRoom(instance, [channel]))
    const { barrier, matched } = bindings.subscribe(instance, channel)
    barrier?.release()
    await matched
  }

  attach(channel: Channel, connection: ChannelConnection): void {
    this.#services.registry.attach(channel, connection)
  }

  detach(channel: Channel, connection: ChannelConnection): void {
    this.#services.registry.detach(channel, connection)
  }

  haltOthers(
    prefix: string,
    isWanted: (user: Pick<ChannelUser, 'tenant' | 'name'>) => boolean,
  ): readonly Pick<ChannelUser, 'tenant' | 'name'>[] {
    const { accounts, registry, bindings } = this.#services
    return [...accounts.list()].flatMap(({ id, tenant, name }) => {
      const channels = registry.of(id)
      if (!name.startsWith(prefix) || channels.size === 0 || isWanted({ tenant, name })) return []
      for (const channel of channels) bindings.halt(channel)
      return [{ tenant, name }]
    })
  }
}
