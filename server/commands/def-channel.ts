/** DEF_CHANNEL: a channel that outlives every connection [MON 14]. Nothing may be dialled yet: only the empty URL. */

import { channelParameters, settingsOf } from '../controls/channel-settings.ts'
import { StatusError } from '../errors.ts'
import { convertArguments } from '../metrics/arguments.ts'
import type { Handler } from '../sessions/handler.ts'
import { needsRoom } from './lookup.ts'

export const defChannel: Handler<'DEF_CHANNEL'> = (session, { url, args }) => {
  const { registry } = session.producer
  const settings = settingsOf(
    convertArguments(args, channelParameters, 'DEF_CHANNEL'),
    registry.defaults,
    registry.defaults,
  )
  if (url !== '')
    throw new StatusError('PERMISSION_DENIED', 'no destination may be dialled; an empty URL defines a channel')
  needsRoom(session)
  return { result: registry.create(session.identity, true, settings).id, stored: true }
}
