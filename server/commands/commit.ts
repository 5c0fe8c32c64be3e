/** COMMIT: the value is processed and will not be sent again [MON 6.10]. Plain ones are read in place by the session. */
import { noSuchTransaction } from '../core/errors.ts'
import type { CommandHandler } from '../sessions/handler.ts'

export const commit: CommandHandler<'COMMIT'> = (session, { transaction, through }) => {
  if (session.channel.queue.commit(transaction, through)) return { result: 0, stored: true }
  throw noSuchTransaction()
}
