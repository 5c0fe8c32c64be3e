/**
 * SUBSCRIBE: values go to a channel by themselves [MON 6.7]. What the current channel holds of the id is copied to another
 * one, before any new value and in one transaction with the binding [MON 8 Binding].
 */
import type { Channel } from '../channels/channel.ts'
import { noSuchChannel } from '../channels/registry.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { CommandHandler, CommandSession, Reply } from '../sessions/handler.ts'
import { channelOf, endNarrower, instanceOf, needsRoom, noSuchId } from './lookup.ts'

export const subscribe: CommandHandler<'SUBSCRIBE'> = (session, args) => {
  const instance = instanceOf(session, args.metric, 'SUBSCRIBE')
  const channel = channelOf(session, args.channel, 'SUBSCRIBE')
  if (channel.bindings.get(instance.id)?.mode === 'subscribe') return { result: 0, stored: true }
  needsRoom(session, channel)
  const current = session.channel
  const copies = channel !== current && !channel.bindings.has(instance.id) && current.queue.mayHold(instance.id)
  return copies ? copyAndBind(session, instance, current, channel) : bind(session, instance, channel, [])
}

async function copyAndBind(
  session: CommandSession,
  instance: MetricInstance,
  from: Channel,
  to: Channel,
): Promise<Reply> {
  const { registry, instances } = session.producer
  const frames = await from.queue.framesOf(instance.id, (block) => registry.read(block))
  // While frames were read back, another connection of this identity may have stopped the one or deleted the other.
  if (instances.find(session.identity, instance.id) !== instance) throw noSuchId()
  if (to.deleted) throw noSuchChannel()
  needsRoom(session, to)
  return bind(session, instance, to, frames)
}

function bind(
  session: CommandSession,
  instance: MetricInstance,
  channel: Channel,
  frames: readonly Uint8Array[],
): Reply {
  const hold = session.producer.bindings.subscribe(instance, channel, frames)
  endNarrower(channel)
  return { result: 0, stored: true, onSent: () => hold && channel.queue.letGo(hold) }
}
