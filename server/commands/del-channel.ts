/**
 * DEL_CHANNEL: the channel, its queue and the instances bound to nothing else are gone; its connection is told and closed,
 * this one's own behind the response [MON 6.9].
 */
import { ALL_CHANNELS, NoticeCode } from '../../protocol/monitor/constants.ts'
import type { Channel } from '../channels/channel.ts'
import type { Connection } from '../channels/outbox.ts'
import type { CommandHandler } from '../sessions/handler.ts'
import { channelOf } from './lookup.ts'

export const delChannel: CommandHandler<'DEL_CHANNEL'> = (session, args) => {
  const { registry } = session.producer
  const all = args.channel === ALL_CHANNELS
  const doomed = all ? registry.for(session) : [channelOf(session, args.channel, 'DEL_CHANNEL')]
  // The current one last.
  doomed.sort((a, b) => Number(a === session.channel) - Number(b === session.channel))
  for (const channel of doomed) {
    const { connection } = channel
    registry.delete(channel)
    if (connection !== undefined && connection !== session) end(connection, channel)
  }
  if (!session.channel.deleted) return { result: 0, stored: true }
  session.endAfterResponse()
  return {
    result: 0,
    stored: true,
    onSent: () => session.dismiss(NoticeCode.CHANNEL_DELETED, 'the channel was deleted'),
  }
}

function end(connection: Connection, channel: Channel): void {
  connection.notice(NoticeCode.CHANNEL_DELETED, channel.id, 'the channel was deleted')
  connection.end()
}
