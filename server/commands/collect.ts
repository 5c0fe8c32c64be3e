/** COLLECT: makes a metric instance; nothing is measured until somebody wants it [MON 6.5]. */
import type { Handler } from '../sessions/handler.ts'
import { withCurrentChannel } from './lookup.ts'

export const collect: Handler<'COLLECT'> = (session, { metric, args }) => {
  const instance = session.producer.instances.collect(
    session.identity,
    metric,
    withCurrentChannel(session, metric, args),
  )
  session.made.add(instance)
  instance.unbound = session.made
  return instance.id
}
