/** EXECUTE: runs a control; its result is a value of the channel that is current now [MON 10]. */
import type { Handler } from '../sessions/handler.ts'
import { needsStorage } from './lookup.ts'

export const execute: Handler<'EXECUTE'> = async (session, { control, args }) => {
  const { identity, channel } = session
  needsStorage(session, channel)
  const { id, run } = await session.producer.executor.execute(control, args, { identity, channel })
  return { result: id, stored: true, after: run }
}
