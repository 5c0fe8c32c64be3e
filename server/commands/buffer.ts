/** BUFFER: values wait on a channel until GET releases them [MON 6.7, 8 Binding]. */
import type { CommandHandler } from '../sessions/handler.ts'
import { channelOf, endNarrower, instanceOf, needsRoom } from './lookup.ts'

export const buffer: CommandHandler<'BUFFER'> = (session, args) => {
  const instance = instanceOf(session, args.metric, 'BUFFER')
  const channel = channelOf(session, args.channel, 'BUFFER')
  if (channel.bindings.get(instance.id)?.mode !== 'buffer') {
    needsRoom(session, channel)
    session.producer.bindings.buffer(instance, channel)
    endNarrower(channel)
  }
  return { result: 0, stored: true }
}
