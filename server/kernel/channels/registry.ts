/**
 * All channels: they are made, found, taken by connections, deleted, expired, and restored from the store here. An identity
 * finds only its own; "not yours" and "not there" are the same answer [MON 4].
 */
import { randomInt } from 'node:crypto'
import { ADMIN_ROLE, type Identity, onlyWatches } from '../../../auth/permissions.ts'
import { NoticeCode } from '../../../protocol/monitor/constants.ts'
import { CHANNEL_WIDTH, type ChannelRow, type Store } from '../../../storage/store.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Asker } from '../accounts/rights.ts'
import type { Clock } from '../core/clock.ts'
import { PRODUCER_FAILED, StatusError } from '../core/errors.ts'
import type { FairWork, Steps } from '../core/fair-work.ts'
import type { Faults } from '../core/faults.ts'
import type { Logger } from '../core/log.ts'
import type { Ids } from '../metrics/ids.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Block } from './block.ts'
import { Channel } from './channel.ts'
import type { Journal } from './journal.ts'
import type { ChannelNames, LossOfChannel } from './names.ts'
import { type ChannelConnection, Outbox } from './outbox.ts'
import { Queue } from './queue.ts'
import type { ChannelSettings, QueueHost, QueueListener } from './queue-host.ts'
import type { TurnScheduler } from './turn-scheduler.ts'

export interface RegistryOptions {
  readonly host: QueueHost
  readonly journal: Journal
  readonly turn: TurnScheduler
  readonly store: Pick<Store, 'read'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly faults: Faults
  readonly work: FairWork
  readonly ids: Ids
  readonly names: ChannelNames
  readonly defaults: ChannelSettings
  readonly maxPerIdentity: number
  /** How long a channel that nobody could find again waits until it is an orphan, in ms; 0: it never is. */
  readonly orphanAfterMs: number
  /** The limits of a tenant, with what it uses of them. */
  readonly quotas: Pick<Quotas, 'of'>
}

/** The bindings of all channels, as the registry sees them. */
export interface ChannelBindings {
  /** A channel came into the store: its bindings have to follow. */
  storeAll(channel: Channel): void
  /** Has what is polled for a channel pause, or go on. */
  pauseAll(channel: Channel): Steps<void>
  /** Destroys an instance if it is bound on no other channel. */
  endUnbound(instance: MetricInstance): void
  durabilityChanged(channel: Channel): void
}

/** Why a channel is deleted although its owner has not done it. */
export type EndOfChannel = LossOfChannel | 'user removed'

/** Why values are dropped that wait, for the log. */
export type PurgeCause =
  | 'right withdrawn'
  | 'purged by its owner'
  | 'purged by an admin'
  | (typeof endCauses)[EndOfChannel]

const endCauses = {
  expired: 'channel expired',
  purged: 'channel deleted by an admin',
  'user removed': 'user removed',
} as const

/** `lastUsed` as it is stored while a connection has the channel: if the server is killed then, it was in use to the end. */
const IN_USE = Number.MAX_SAFE_INTEGER

const NO_CHANNELS: ReadonlySet<Channel> = new Set()

export class Registry {
  readonly #options: RegistryOptions
  readonly #channels = new Map<number, Channel>()
  readonly #byUser = new Map<number, Set<Channel>>()
  /** On the age clock, ms. */
  readonly #startedAge: number
  #bindings: ChannelBindings | undefined

  constructor(options: RegistryOptions) {
    this.#options = options
    this.#startedAge = options.host.age()
  }

  /** Called once, by the bindings when they are made. */
  join(bindings: ChannelBindings): void {
    this.#bindings = bindings
  }

  /** What a new channel has, and the most that one may ask for. */
  get defaults(): ChannelSettings {
    return this.#options.defaults
  }

  /** Changes the settings of a channel. If it is neither durable nor defined afterwards, it leaves the store. */
  configure(channel: Channel, settings: ChannelSettings): void {
    const wasStored = channel.stored
    const isOther = channel.row.durable !== settings.durable
    this.store(channel, { ...settings, configured: true })
    channel.queue.settings = settings
    if (isOther) this.#bindings?.durabilityChanged(channel)
    if (channel.survives || !wasStored) return
    this.#keep(channel, false)
    this.#options.journal.change({ remove: 'channel', id: channel.id })
    this.#options.journal.forget(channel.queue)
  }

  /**
   * Throws StatusError QUOTA_EXCEEDED if there is no room for one more channel in the store. Channels that are not stored do
   * not count: an identity that has too many can still connect, and delete some.
   */
  needsRoom(owner: Identity, more = 1): void {
    const { maxPerIdentity, quotas } = this.#options
    quotas.of(owner.tenant).channels.needsRoom(more)
    const mine = this.of(owner.userId)
    const most = maxPerIdentity - more
    if (mine.size <= most) return
    const has = [...mine].filter(({ stored }) => stored).length
    if (has <= most) return
    throw new StatusError(
      'QUOTA_EXCEEDED',
      `this identity has ${has} channels, of at most ${maxPerIdentity}, and ${more} more are needed; delete ${has - most}`,
    )
  }

  /**
   * A new channel. With a `url` the producer makes its connections [MON 14]. With the `name` of a channel that the owner has lost, a
   * GAP reports that.
   */
  create(
    owner: Identity,
    defined: boolean,
    settings: Partial<ChannelSettings & Pick<ChannelRow, 'url' | 'name' | 'configured'>> = {},
  ): Channel {
    const { ids, host, defaults } = this.#options
    const row: ChannelRow = {
      url: '',
      name: '',
      configured: false,
      ...defaults,
      ...settings,
      id: ids.take(),
      user: owner.userId,
      defined,
      origin: randomInt(1, 2 ** 47) * 32 + randomInt(0, 32),
      lastUsed: host.age(),
      paused: false,
    }
    const channel = this.#make(row, owner)
    if (defined) this.store(channel)
    this.reportLoss(channel)
    return channel
  }

  /**
   * A GAP reports that the last channel of this name is gone, if its owner did not delete it. The GAP of a channel that is not
   * durable would not survive a restart: until a connection takes that channel, it is to be reported again then.
   */
  reportLoss({ queue, row: { user, name, durable } }: Channel): void {
    const { names } = this.#options
    const loss = names.lossOf(user, name)
    if (loss === undefined) return
    queue.addGap(loss)
    if (durable) names.forgetLoss(user, name)
  }

  /** Restores a channel from its row. The caller restores its numbers, blocks and GAPs. */
  restore(stored: ChannelRow, owner: Identity): Channel {
    const channel = this.#make(stored, owner)
    this.#keep(channel, true)
    return channel
  }

  /** Notes whether a channel is in the store: those that are count for the tenant. */
  #keep(channel: Channel, stored: boolean): void {
    if (channel.stored === stored) return
    channel.stored = stored
    const { channels } = this.#options.quotas.of(channel.owner.tenant)
    if (stored) channels.used++
    else channels.leave()
  }

  #make(stored: ChannelRow, owner: Identity): Channel {
    const { host, journal, turn, clock, faults, ids, names, quotas } = this.#options
    const row = { ...stored, lastUsed: Math.min(stored.lastUsed, host.age()) }
    ids.claim(row.id)
    const listener: QueueListener = {
      changed: () => {
        if (channel.deleted) return
        this.store(channel)
        journal.touch(queue)
      },
      awaited: () => journal.hurry(),
      ready: () => channel.outbox.wake(),
      resultGone: (id) => this.endResult(channel, id),
    }
    const queue = new Queue(row.id, row.origin, row, host, listener, quotas.of(owner.tenant).queued)
    const outbox = new Outbox({
      tenant: owner.tenant,
      queue,
      turn,
      clock,
      read: (blocks) => this.#readAll(blocks),
      standstill: (connection) =>
        connection.notice(NoticeCode.WINDOW_FULL, row.id, 'the window is full: nothing more comes until COMMIT'),
      failed: (error, connection) => {
        faults.report('channel', error, { channel: row.id })
        connection?.notice(NoticeCode.INTERNAL, row.id, PRODUCER_FAILED)
        connection?.end()
      },
    })
    const channel = new Channel(row, owner, queue, outbox)
    this.#channels.set(row.id, channel)
    names.add(channel)
    const mine = this.#byUser.get(owner.userId)
    if (mine) mine.add(channel)
    else this.#byUser.set(owner.userId, new Set([channel]))
    return channel
  }

  async read(block: Block): Promise<Uint8Array | undefined> {
    const [bytes] = await this.#readAll([block])
    return bytes
  }

  async #readAll(blocks: readonly Block[]): Promise<(Uint8Array | undefined)[]> {
    const found = await this.#options.store.read(blocks.map(({ id }) => id))
    return found.map(({ bytes }) => bytes)
  }

  /** Drops values of a channel, of one metric or up to an id if these are given; returns how many. A GAP and the log report them. */
  async purge(
    channel: Channel,
    only: { readonly metric?: number; readonly through?: number },
    cause: PurgeCause,
    name?: string,
  ): Promise<number> {
    const count = await channel.queue.purge(only, (block) => this.read(block))
    this.#logDropped(channel, count, cause, name)
    return count
  }

  /** What a consumer drops of its own is no trouble. */
  #logDropped({ id, owner }: Channel, values: number, cause: PurgeCause, metric?: string): void {
    if (values === 0) return
    const { log } = this.#options
    const details = { tenant: owner.tenant, user: owner.name, channel: id, ...(metric && { metric }), values, cause }
    log[cause === 'purged by its owner' ? 'info' : 'warn'](details, 'values that waited in a channel were dropped')
  }

  /** The channels of a user. */
  of(userId: number): ReadonlySet<Channel> {
    return this.#byUser.get(userId) ?? NO_CHANNELS
  }

  get count(): number {
    return this.#channels.size
  }

  all(): IterableIterator<Channel> {
    return this.#channels.values()
  }

  /** The channel that a user has under a name. */
  named(userId: number, name: string): Channel | undefined {
    return this.#options.names.find(userId, name)
  }

  byId(id: number): Channel | undefined {
    return this.#channels.get(id)
  }

  /** Throws StatusError NO_SUCH_CHANNEL if it is not there, belongs to another user, or is beyond the credential's scope. */
  find({ identity, credential }: Asker, id: number): Channel {
    const channel = this.#channels.get(id)
    const isOwn = channel?.owner.userId === identity.userId && !onlyWatches(credential.scope)
    if (channel === undefined || !isOwn || !channel.isCoveredBy(credential.scope)) throw noSuchChannel()
    return channel
  }

  /**
   * One's own channel, or for an admin any one. A credential with a scope finds only its own: scopes need not name `channel.*`.
   * Throws StatusError as `find` does.
   */
  reach({ identity, credential }: Asker, id: number): Channel {
    const channel = this.#channels.get(id)
    if (channel === undefined || identity.role !== ADMIN_ROLE || credential.scope !== undefined) {
      return this.find({ identity, credential }, id)
    }
    return channel
  }

  /** The channels of an identity that the scope of its credential covers [MON 15]; none if that only watches. */
  visibleTo({ identity, credential }: Asker): Channel[] {
    if (onlyWatches(credential.scope)) return []
    return [...this.of(identity.userId)].filter((channel) => channel.isCoveredBy(credential.scope))
  }

  /** Stores the channel's row, for the first time or after a change, if the channel is to survive. */
  store(channel: Channel, changed?: Partial<ChannelRow>): void {
    if (changed !== undefined) channel.row = { ...channel.row, ...changed }
    if (!channel.survives || channel.deleted || (channel.stored && changed === undefined)) return
    const entered = !channel.stored
    this.#keep(channel, true)
    const lastUsed = channel.connection === undefined ? channel.row.lastUsed : IN_USE
    this.#options.journal.change({ put: 'channel', row: { ...channel.row, lastUsed } })
    if (entered) this.#bindings?.storeAll(channel)
  }

  /** The value of a result is committed or dropped: its id is free again. */
  endResult(channel: Channel, id: number): void {
    if (!channel.results.delete(id)) return
    if (channel.stored && !channel.deleted) this.#options.journal.change({ remove: 'result', id })
    this.#options.ids.free(id)
  }

  /**
   * A connection takes a channel; the one that had it gets a notice and is ended [MON 7]. `paused`: nothing is sent before
   * `outbox.resume()`.
   */
  attach(channel: Channel, connection: ChannelConnection, paused = false): void {
    const { connection: loser, row } = channel
    if (loser !== undefined) {
      channel.outbox.detach()
      loser.notice(NoticeCode.SUPERSEDED, channel.id, 'another connection took this channel')
      loser.end()
    }
    channel.outbox.attach(connection, paused)
    this.#options.names.forgetLoss(row.user, row.name)
    this.#setOrphan(channel, false)
    if (channel.stored) this.store(channel, {})
    channel.onConnectionChange?.()
  }

  /** A connection ended or leaves the channel by SET_CHANNEL. */
  detach(channel: Channel, connection: ChannelConnection): void {
    if (channel.connection !== connection) return
    channel.outbox.detach()
    if (channel.deleted) return
    if (channel.isDisposable) void this.delete(channel)
    else this.store(channel, { lastUsed: this.#options.host.age() })
    channel.onConnectionChange?.()
  }

  /**
   * Destroys a channel as `delete` does. Its connection gets a notice and is ended, unless it is `by`, which deletes it. `loss` is for
   * a channel that its owner did not delete.
   */
  deleteAndEnd(channel: Channel, by?: ChannelConnection, loss?: EndOfChannel): void | Promise<void> {
    const { connection } = channel
    const deleted = this.delete(channel, loss)
    if (connection !== undefined && connection !== by) {
      connection.notice(NoticeCode.CHANNEL_DELETED, channel.id, 'the channel was deleted')
      connection.end()
    }
    return deleted
  }

  /**
   * Destroys a channel, everything on it, and the instances bound to nothing else. It is gone from now on, also in the store;
   * what is in memory ends in steps, and the promise settles after the last. The caller ends its connection. `loss` is for a
   * channel that its owner did not delete: the next one of its name reports it.
   */
  delete(channel: Channel, loss?: EndOfChannel): void | Promise<void> {
    if (channel.deleted) return
    const { journal, work, faults, names } = this.#options
    const { queued, inFlight } = channel.queue.counts
    if (loss !== undefined) this.#logDropped(channel, queued + inFlight, endCauses[loss])
    channel.deleted = true
    channel.outbox.detach()
    journal.forget(channel.queue)
    if (channel.stored) journal.change({ remove: 'channel', id: channel.id })
    this.#keep(channel, false)
    this.#channels.delete(channel.id)
    // The names of a user who is gone are, too.
    names.remove(channel, loss === 'user removed' ? undefined : loss)
    const { userId } = channel.owner
    const mine = this.#byUser.get(userId)
    mine?.delete(channel)
    if (mine?.size === 0) this.#byUser.delete(userId)
    channel.onConnectionChange?.()
    const ended = work.run(channel.owner, this.#end(channel))
    if (ended instanceof Promise)
      return ended.catch((error) => faults.report('channel', error, { channel: channel.id }))
  }

  /** Its id is given to another channel only after everything that refers to it is gone. */
  *#end(channel: Channel): Steps<void> {
    const { ids } = this.#options
    for (const { instance, source } of channel.bindings.values()) {
      source?.end()
      instance.boundOn.delete(channel.id)
      this.#bindings?.endUnbound(instance)
      yield
    }
    yield* channel.queue.discard()
    for (const id of channel.results) ids.free(id)
    ids.free(channel.id)
  }

  /** A polled metric is not read for an orphan. The first one of a pause is reported, in one batch with the note that it was. */
  paused(channel: Channel): void {
    // A binding may not know yet that a connection has taken the channel: nothing is missing then.
    if (channel.deleted || channel.row.paused || !channel.isOrphan) return
    this.store(channel, { paused: true })
    channel.queue.addGap('paused')
  }

  #setOrphan(channel: Channel, isOrphan: boolean): void {
    if (channel.isOrphan === isOrphan) return
    const { work, faults } = this.#options
    channel.isOrphan = isOrphan
    if (channel.row.paused) this.store(channel, { paused: false })
    if (this.#bindings === undefined) return
    const pausing = work.run(channel.owner, this.#bindings.pauseAll(channel))
    if (pausing instanceof Promise) pausing.catch((error) => faults.report('channel', error, { channel: channel.id }))
  }

  /** Those that were found before a restart stay so; otherwise consumers have as much time after a start as at any other time. */
  #isOrphan({ row, connection, isAnonymous }: Channel, age: number): boolean {
    const { orphanAfterMs } = this.#options
    if (connection !== undefined || !isAnonymous || orphanAfterMs === 0) return false
    return age - (row.paused ? row.lastUsed : Math.max(row.lastUsed, this.#startedAge)) > orphanAfterMs
  }

  /**
   * Expires values, finds orphans, and returns the channels that were not used for too long. To be called every second.
   */
  sweep(): Channel[] {
    const age = this.#options.host.age()
    const expired: Channel[] = []
    for (const channel of this.#channels.values()) {
      channel.queue.expire()
      for (const metric of channel.queue.endPassedStops()) {
        this.#options.journal.change({ remove: 'stop', channel: channel.id, metric })
      }
      if (channel.connection === undefined && age - channel.row.lastUsed > channel.row.expireMs) expired.push(channel)
      else this.#setOrphan(channel, this.#isOrphan(channel, age))
    }
    return expired
  }
}

export function noSuchChannel(): StatusError {
  return new StatusError('NO_SUCH_CHANNEL', 'no such channel')
}

/** The index of each channel's row of numbers, by channel id. */
export function numberRows(numbers: Float64Array): Map<number, number> {
  const rows = new Map<number, number>()
  for (let row = 0; row * CHANNEL_WIDTH < numbers.length; row++) rows.set(numbers[row * CHANNEL_WIDTH] as number, row)
  return rows
}
