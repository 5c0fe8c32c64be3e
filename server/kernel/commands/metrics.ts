/** COLLECT, SUBSCRIBE, BUFFER and STOP: metric instances and the channels that their values go to. */
import type { CommandArguments } from '../../../protocol/monitor/commands.ts'
import { ALL_CHANNELS } from '../../../protocol/monitor/constants.ts'
import { readerOf } from '../accounts/rights.ts'
import type { NewBinding } from '../channels/bindings.ts'
import type { Channel } from '../channels/channel.ts'
import { noSuchChannel } from '../channels/registry.ts'
import type { Steps } from '../core/fair-work.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { CommandHandler, CommandSession, Outcome, Reply } from '../sessions/handler.ts'
import { endNarrower, type Lookup, noSuchId, withCurrentChannel } from './lookup.ts'
import type { CommandServices } from './services.ts'

/** COLLECT makes a metric instance; nothing is measured until it is bound or asked for [MON 6.5]. */
export function collect({ instances }: Pick<CommandServices, 'instances'>, lookup: Lookup): CommandHandler<'COLLECT'> {
  return function* (session, { metric, args }): Steps<Outcome> {
    if (!lookup.covers(session, metric)) yield* lookup.refuseUncovered(session, metric, args)
    const instance = yield* instances.collect(readerOf(session), metric, withCurrentChannel(session, metric, args))
    session.unboundInstances.add(instance)
    instance.unbound = session.unboundInstances
    return instance.id
  }
}

/** Binds a channel; undefined if something has to be read first. */
type Bind = (channel: Channel) => NewBinding | undefined
type BindingServices = Pick<CommandServices, 'bindings' | 'instances' | 'registry' | 'work'>

/**
 * SUBSCRIBE sends values to a channel as they arrive [MON 6.7]. Values of the id that the current channel accepted before
 * another one was bound to it are copied there, before any new value and in one transaction with the binding [MON 8 Binding].
 */
export function subscribe(services: BindingServices, lookup: Lookup): CommandHandler<'SUBSCRIBE'> {
  const { bindings, registry } = services
  return function* (session, args): Steps<Outcome | Promise<Outcome>> {
    const making = new NewBindings(services, lookup, session, args, 'subscribe')
    yield* making.requireRoom()
    const { channel: current } = session
    const { instance } = making
    const copies = current.queue.copiesOf(instance.id, (block) => registry.read(block))
    const bind = (channel: Channel): NewBinding | undefined => {
      const frames = channel === current ? [] : copies.now()
      return frames && bindings.subscribe(instance, channel, frames)
    }
    return making.bind(bind, () => copies.load())
  }
}

/** BUFFER lets values wait on a channel until GET releases them [MON 6.7, 8 Binding]. */
export function buffer(services: BindingServices, lookup: Lookup): CommandHandler<'BUFFER'> {
  return function* (session, args): Steps<Outcome | Promise<Outcome>> {
    const making = new NewBindings(services, lookup, session, args, 'buffer')
    yield* making.requireRoom()
    return making.bind((channel) => ({ matched: services.bindings.buffer(making.instance, channel) }))
  }
}

/** What a SUBSCRIBE or BUFFER binds: an id on one channel or, all or none, on every channel of the identity [MON 5]. */
class NewBindings {
  readonly instance: MetricInstance
  readonly #services: BindingServices
  readonly #lookup: Lookup
  readonly #session: CommandSession
  readonly #isAll: boolean
  /** The channels that are still to be bound. */
  #rest: Channel[]
  readonly #made: NewBinding[] = []

  constructor(
    services: BindingServices,
    lookup: Lookup,
    session: CommandSession,
    { metric, channel }: CommandArguments<'SUBSCRIBE'>,
    mode: 'subscribe' | 'buffer',
  ) {
    const command = mode.toUpperCase()
    this.#services = services
    this.#lookup = lookup
    this.#session = session
    this.#isAll = channel === ALL_CHANNELS
    this.instance = lookup.instance(session, metric, command)
    const channels = lookup.destinations(session, channel, command)
    this.#rest = channels.filter(({ bindings }) => bindings.get(metric)?.mode !== mode)
  }

  /** Throws StatusError if one of the channels refuses; then none is bound. */
  *requireRoom(): Steps<void> {
    yield* this.#services.bindings.requireRoom(this.instance, this.#rest)
    this.#requireThere()
    this.#lookup.requireRoom(this.#session, this.#rest)
  }

  /**
   * Binds the channels one by one, to the end even if the connection is gone meanwhile. Where `bind` gives undefined, it is
   * called again when `load` has settled. The reply comes when everything that matches is subscribed.
   */
  bind(bind: Bind, load?: () => Promise<void>): Outcome | Promise<Outcome> {
    const bound = this.#bindSome(bind)
    return bound === true ? this.#outcome() : this.#bindRest(bound, bind, load).catch((error) => this.#failed(error))
  }

  async #bindRest(bound: boolean | Promise<boolean>, bind: Bind, load?: () => Promise<void>): Promise<Outcome> {
    for (let isDone = await bound; !isDone; isDone = await this.#bindSome(bind)) await load?.()
    return this.#outcome()
  }

  #bindSome(bind: Bind): boolean | Promise<boolean> {
    return this.#services.work.run(this.#session.identity, this.#bindEach(bind))
  }

  /** Returns false as soon as `bind` gives undefined. */
  *#bindEach(bind: Bind): Steps<boolean> {
    for (let channel = this.#rest[0]; channel !== undefined; channel = this.#rest[0]) {
      if (this.#made.length > 0) yield
      try {
        this.#requireThere()
        const made = channel.deleted ? {} : bind(channel)
        if (made === undefined) return false
        this.#made.push(made)
        endNarrower(channel)
      } catch (error) {
        this.#failed(error)
      }
      this.#rest.shift()
    }
    return true
  }

  /** Throws if another connection of the identity has stopped the id or deleted the channel while the command was worked out. */
  #requireThere(): void {
    const { instance } = this
    if (this.#services.instances.find(this.#session.identity, instance.id) !== instance) throw noSuchId()
    if (!this.#isAll && this.#rest[0]?.deleted === true) throw noSuchChannel()
  }

  #outcome(): Outcome | Promise<Outcome> {
    const isHeld = this.#made.some(({ barrier }) => barrier !== undefined)
    const reply: Reply = { result: 0, stored: true, ...(isHeld && { onSent: () => this.#release() }) }
    const matching = this.#made.map(({ matched }) => matched).filter((matched) => matched !== undefined)
    if (matching.length === 0) return reply
    return Promise.all(matching).then(
      () => reply,
      (error) => this.#failed(error),
    )
  }

  /** Lets go of what waits for a response, and throws the error. */
  #failed(error: unknown): never {
    this.#release()
    throw error
  }

  #release(): void {
    for (const { barrier } of this.#made) barrier?.release()
  }
}

/**
 * STOP ends the values of an id on a channel [MON 6.6]. Values that wait there are lost, and an id that is bound nowhere
 * dies. STOP of a result drops its value, but does not stop the control [MON 10].
 */
export function stop(
  { bindings, answers }: Pick<CommandServices, 'bindings' | 'answers'>,
  lookup: Lookup,
): CommandHandler<'STOP'> {
  return (session, args) => {
    const id = args.metric
    const instance = lookup.ownInstance(session, id)
    const isResult = instance === undefined && lookup.isResult(session, id)
    if (instance === undefined && !isResult && !answers.has(session.identity, id)) throw noSuchId()
    const channels = lookup.channels(session, args.channel, id)
    if (instance !== undefined) {
      const stopped = channels.map((channel) => bindings.stop(instance, channel))
      return whenAll(stopped, () => bindings.endUnbound(instance))
    }
    if (isResult) {
      const holding = channels.filter(({ results }) => results.has(id))
      return whenAll(holding.map((channel) => bindings.stopResult(id, channel)))
    }
    answers.close(id)
    return 0
  }
}

/** Replies when all bindings are stopped. Those that need no reading back are stopped at once. */
function whenAll(stopped: readonly (Promise<void> | undefined)[], done = () => {}): Outcome | Promise<Outcome> {
  const pending = stopped.filter((each) => each !== undefined)
  const reply = (): Outcome => {
    done()
    return { result: 0, stored: true }
  }
  return pending.length === 0 ? reply() : Promise.all(pending).then(reply)
}
