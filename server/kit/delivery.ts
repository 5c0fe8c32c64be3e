/**
 * Ways out: values of channels that are delivered without a session. A consumer names a URL when it defines its channel, or a wing
 * has a channel of its own and connects it itself.
 */
import { unlessAborted } from '../../protocol/kept/pause.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import type { Users } from '../kernel/accounts/users.ts'
import type { Bindings } from '../kernel/channels/bindings.ts'
import type { Channel, ChannelBinding } from '../kernel/channels/channel.ts'
import type { ChannelConnection } from '../kernel/channels/outbox.ts'
import type { Registry } from '../kernel/channels/registry.ts'
import type { RightsRevocation } from '../kernel/channels/rights-revocation.ts'
import { StatusError } from '../kernel/core/errors.ts'
import type { FairWork } from '../kernel/core/fair-work.ts'
import type { Instances } from '../kernel/metrics/instances.ts'
import type { Selection } from '../kernel/metrics/selection.ts'
import type { DeliveredChannel, PushDestination } from './push.ts'

export { OWN_USER_PREFIXES } from '../kernel/accounts/users.ts'

/** The user that a channel of a wing belongs to. Nobody can log in as that user, because it has neither password nor token. */
export interface ChannelUser {
  readonly tenant: string
  readonly name: string
  /** Says what may be read. */
  readonly role: string
}

export interface WantedMetric {
  /** A name or pattern. */
  readonly name: string
  /** In the types that are declared. */
  readonly args: ArgumentList
}

/** What is to be bound on a channel. */
export interface WantedBindings {
  readonly metrics: readonly WantedMetric[]
  /** Of the values of a series in one such span of time only the first is wanted; 0, or nothing: all are. */
  readonly resolutionMs?: number
  /** Takes what cannot be bound, and why. */
  readonly refused: (metric: string, detail: string) => void
  readonly signal: AbortSignal
}

export interface ChannelDelivery {
  /** Offers a destination: channels with a URL of its schemes are delivered there. */
  offer(destination: PushDestination): void
  /**
   * The durable channel of a user, both of which are made if they are missing. If the user had another role, what the new one does
   * not allow has ended. Rejects with StatusError.
   */
  channelOf(user: ChannelUser): Promise<OwnChannel>
  /**
   * Channels of users whose names begin with this, but for those that are wanted, collect nothing more; what waits in them stays.
   * Gives these users.
   */
  haltOthers(
    prefix: string,
    isWanted: (user: Pick<ChannelUser, 'tenant' | 'name'>) => boolean,
  ): readonly Pick<ChannelUser, 'tenant' | 'name'>[]
  /** Removes a user with its channel, if there is one. */
  endOwn(user: Pick<ChannelUser, 'tenant' | 'name'>): Promise<void>
  /** Whether `dial.allow` permits connections to `scheme://host:port`; its name is not resolved. False if it is none, too. */
  permits(origin: string): boolean
  /** The address of `scheme://host:port` that may be connected to now. Rejects with an error for people. */
  addressFor(origin: string): Promise<string>
}

/** The channel of a wing's own user. */
export interface OwnChannel {
  readonly delivered: DeliveredChannel
  /** `taken` while it has a connection, whoever made that. */
  readonly state: 'free' | 'taken' | 'deleted'
  /** Has `changed` called, and no other, after a connection has taken or left it, and when it is deleted. */
  onChange(changed: () => void): void
  /**
   * Binds these metrics and nothing else, also on a channel that was halted. What was bound besides collects nothing more, and ends
   * when nothing waits in the channel any more and this is called again: its name may be missing by mistake. Settles when all that
   * is there is bound, or soon after `signal` is aborted: nothing more is bound then. It waits for an earlier one of the same
   * channel, which has to be aborted before.
   */
  bind(wanted: WantedBindings): Promise<void>
  /** Gives it the connection that takes its values. */
  attach(connection: ChannelConnection): void
  detach(connection: ChannelConnection): void
}

const MICROSECONDS = 1_000

export interface DeliveryServices {
  readonly accounts: Users
  readonly registry: Registry
  readonly instances: Instances
  readonly bindings: Bindings
  readonly rightsRevocation: Pick<RightsRevocation, 'changeRole'>
  readonly work: FairWork
  readonly dialler: Pick<ChannelDelivery, 'offer'> & {
    permitsOrigin(origin: string): boolean
    addressFor(origin: string): Promise<string>
  }
  /** Ends everything of a removed user. */
  readonly endUser: (user: { readonly id: number }) => Promise<unknown>
}

export class RegistryDelivery implements ChannelDelivery {
  readonly #services: DeliveryServices
  readonly #own = new WeakMap<Channel, RegisteredChannel>()

  constructor(services: DeliveryServices) {
    this.#services = services
  }

  offer(destination: PushDestination): void {
    this.#services.dialler.offer(destination)
  }

  async channelOf({ tenant, name, role }: ChannelUser): Promise<OwnChannel> {
    const { accounts, registry, rightsRevocation } = this.#services
    const known = accounts.find(tenant, name)
    if (known !== undefined && known.role !== role) await rightsRevocation.changeRole(known, role)
    const account =
      accounts.find(tenant, name) ??
      accounts.add({ tenant, name, role, bcrypt: undefined, scram: undefined, loopbackOnly: false })
    const identity = accounts.identity(account)
    const channel = registry.named(identity.userId, name) ?? registry.create(identity, true, { name })
    const own = this.#own.get(channel) ?? new RegisteredChannel(channel, this.#services)
    this.#own.set(channel, own)
    return own
  }

  async endOwn({ tenant, name }: Pick<ChannelUser, 'tenant' | 'name'>): Promise<void> {
    const { accounts, endUser } = this.#services
    const account = accounts.find(tenant, name)
    if (account === undefined) return
    accounts.remove(account)
    await endUser(account)
  }

  permits(origin: string): boolean {
    return this.#services.dialler.permitsOrigin(origin)
  }

  addressFor(origin: string): Promise<string> {
    return this.#services.dialler.addressFor(origin)
  }

  haltOthers(
    prefix: string,
    isWanted: (user: Pick<ChannelUser, 'tenant' | 'name'>) => boolean,
  ): readonly Pick<ChannelUser, 'tenant' | 'name'>[] {
    const { accounts, registry, bindings } = this.#services
    return [...accounts.list()].flatMap(({ id, tenant, name }) => {
      const channels = registry.of(id)
      if (!name.startsWith(prefix) || channels.size === 0 || isWanted({ tenant, name })) return []
      for (const channel of channels) for (const binding of channel.bindings.values()) bindings.halt(binding)
      return [{ tenant, name }]
    })
  }
}

class RegisteredChannel implements OwnChannel {
  readonly delivered: Channel
  readonly #services: DeliveryServices
  /** Settled when nothing more is bound or stopped by the last call of `bind`. */
  #bound: Promise<void> = Promise.resolve()

  constructor(channel: Channel, services: DeliveryServices) {
    this.delivered = channel
    this.#services = services
  }

  get state(): OwnChannel['state'] {
    if (this.delivered.deleted) return 'deleted'
    return this.delivered.connection === undefined ? 'free' : 'taken'
  }

  onChange(changed: () => void): void {
    this.delivered.onConnectionChange = changed
  }

  bind(wanted: WantedBindings): Promise<void> {
    const bound = this.#bound.then(() => this.#bindAll(wanted))
    this.#bound = bound.catch(() => {})
    return bound
  }

  async #bindAll({ metrics, resolutionMs = 0, refused, signal }: WantedBindings): Promise<void> {
    const { bindings, work } = this.#services
    const channel = this.delivered
    await work.run(channel.owner, bindings.thin(channel, resolutionMs * MICROSECONDS))
    // Of one name with several arguments, a binding is for the one that says most of it.
    const wanted = metrics.toSorted((one, other) => other.args.length - one.args.length)
    const { queued, inFlight } = channel.queue.counts
    const kept: ChannelBinding[] = []
    for (const binding of [...channel.bindings.values()]) {
      if (signal.aborted) return
      const { instance } = binding
      const same = wanted.findIndex((metric) => isOf(instance.selection, metric))
      if (same >= 0) {
        wanted.splice(same, 1)
        kept.push(binding)
      } else if (queued + inFlight > 0) bindings.halt(binding)
      else {
        await bindings.stop(instance, channel)
        bindings.endUnbound(instance)
      }
    }
    if (signal.aborted) return
    await settledOrAborted(bindings.resume(channel, kept), signal)
    for (const metric of wanted) {
      if (signal.aborted) return
      try {
        await this.#bind(metric, signal)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        refused(metric.name, error.message)
      }
    }
  }

  async #bind({ name, args }: WantedMetric, signal: AbortSignal): Promise<void> {
    const channel = this.delivered
    const { instances, bindings, work } = this.#services
    const instance = await work.run(channel.owner, instances.collect(channel.owner, name, args))
    try {
      await work.run(channel.owner, bindings.requireRoom(instance, [channel]))
      if (signal.aborted) return
      const { barrier, matched } = bindings.subscribe(instance, channel)
      barrier?.release()
      if (matched !== undefined) await settledOrAborted(matched, signal)
    } finally {
      bindings.endUnbound(instance)
    }
  }

  attach(connection: ChannelConnection): void {
    this.#services.registry.attach(this.delivered, connection)
  }

  detach(connection: ChannelConnection): void {
    this.#services.registry.detach(this.delivered, connection)
  }
}

/** Whether a selection was made of it; it may have arguments besides, such as the node of a cluster. */
function isOf({ name, args }: Pick<Selection, 'name' | 'args'>, metric: WantedMetric): boolean {
  if (name !== metric.name) return false
  return metric.args.every((wanted) => args.some((one) => one.name === wanted.name && one.value === wanted.value))
}

/** Settles with what is waited for, or as soon as the signal is aborted. */
async function settledOrAborted(waiting: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await unlessAborted(signal, waiting)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
