/** SET_CHANNEL: another channel of this identity becomes the current one, in its place in the stream [MON 6.9, 7]. */
import { StatusError } from '../core/errors.ts'
import type { Handler } from '../sessions/handler.ts'
import { channelOf } from './lookup.ts'

export const setChannel: Handler<'SET_CHANNEL'> = (session, args) => {
  if (session.isDialled) throw new StatusError('PERMISSION_DENIED', 'the producer called for this channel and no other')
  const channel = channelOf(session, args.channel, 'SET_CHANNEL')
  if (channel === session.channel) return 0
  if (channel.isPush) throw new StatusError('UNSUPPORTED', 'the values of this channel go to its URL and nowhere else')
  return { result: 0, stored: true, after: session.moveTo(channel) }
}
