/** SET_CHANNEL: another channel of this identity becomes the current one, in its place in the stream [MON 6.9, 7]. */
import type { Handler } from '../sessions/handler.ts'
import { channelOf } from './lookup.ts'

export const setChannel: Handler<'SET_CHANNEL'> = (session, args) => {
  const channel = channelOf(session, args.channel, 'SET_CHANNEL')
  if (channel === session.channel) return 0
  return { result: 0, stored: true, after: session.moveTo(channel) }
}
