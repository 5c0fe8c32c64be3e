/** COLLECT, SUBSCRIBE, BUFFER and STOP: metric instances and the channels that their values go to. */

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

/**
 * SUBSCRIBE sends values to a channel as they arrive [MON 6.7]. Values of the id that the current channel holds are copied
 * to another one, before any new value and in one transaction with the binding [MON 8 Binding].
 */
export function subscribe(
  { bindings, instances, registry }: Pick<CommandServices, 'bindings' | 'instances' | 'registry'>,
  lookup: Lookup,
): CommandHandler<'SUBSCRIBE'> {
  const copied = async (session: CommandSession, instance: MetricInstance, to: Channel): Promise<Outcome> => {
    const frames = await session.channel.queue.framesOf(instance.id, (block) => registry.read(block))
    requireBoth(instances, session, instance, to)
    lookup.requireRoom(session, to)
    return bound(bindings.subscribe(instance, to, frames), to)
  }
  return function* (session, args): Steps<Outcome | Promise<Outcome>> {
    const instance = lookup.instance(session, args.metric, 'SUBSCRIBE')
    const channel = lookup.channel(session, args.channel, 'SUBSCRIBE')
    if (channel.bindings.get(instance.id)?.mode === 'subscribe') return { result: 0, stored: true }
    yield* bindings.requireRoom(instance, channel)
    requireBoth(instances, session, instance, channel)
    lookup.requireRoom(session, channel)
    const current = session.channel
    const copies = channel !== current && !channel.bindings.has(instance.id) && current.queue.mayHold(instance.id)
    return copies ? copied(session, instance, channel) : bound(bindings.subscribe(instance, channel, []), channel)
  }
}

/** BUFFER lets values wait on a channel until GET releases them [MON 6.7, 8 Binding]. */
export function buffer(
  { bindings, instances }: Pick<CommandServices, 'bindings' | 'instances'>,
  lookup: Lookup,
): CommandHandler<'BUFFER'> {
  return function* (session, args): Steps<Outcome | Promise<Outcome>> {
    const instance = lookup.instance(session, args.metric, 'BUFFER')
    const channel = lookup.channel(session, args.channel, 'BUFFER')
    if (channel.bindings.get(instance.id)?.mode === 'buffer') return { result: 0, stored: true }
    yield* bindings.requireRoom(instance, channel)
    requireBoth(instances, session, instance, channel)
    lookup.requireRoom(session, channel)
    return bound({ matched: bindings.buffer(instance, channel) }, channel)
  }
}

/** Throws if another connection of the identity has stopped the id or deleted the channel while a command was worked out. */
function requireBoth(
  instances: CommandServices['instances'],
  session: CommandSession,
  instance: MetricInstance,
  channel: Channel,
): void {
  if (instances.find(session.identity, instance.id) !== instance) throw noSuchId()
  if (channel.deleted) throw noSuchChannel()
}

/** The reply to a command that has bound an instance: it comes when everything that matches is subscribed. */
function bound({ matched, barrier }: Partial<NewBinding>, channel: Channel): Outcome | Promise<Outcome> {
  endNarrower(channel)
  const reply: Reply = { result: 0, stored: true, ...(barrier && { onSent: () => barrier.release() }) }
  const failed = (error: unknown): never => {
    barrier?.release()
    throw error
  }
  return matched === undefined ? reply : matched.then(() => reply, failed)
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
