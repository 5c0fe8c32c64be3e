/** COLLECT: makes a metric instance; nothing is measured until somebody wants it [MON 6.5]. */

import { readerOf } from '../accounts/rights.ts'
import type { CommandHandler } from '../sessions/handler.ts'
import { needsCover, withCurrentChannel } from './lookup.ts'

export const collect: CommandHandler<'COLLECT'> = (session, { metric, args }) => {
  needsCover(session, metric, args)
  const { instances } = session.producer
  const instance = instances.collect(readerOf(session), metric, withCurrentChannel(session, metric, args))
  session.unboundInstances.add(instance)
  instance.unbound = session.unboundInstances
  return instance.id
}
