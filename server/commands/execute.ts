/** EXECUTE: runs a control; its result is a value of the channel that is current now [MON 10]. */
import { StatusError } from '../core/errors.ts'
import type { CommandHandler } from '../sessions/handler.ts'
import { needsRoom } from './lookup.ts'

export const execute: CommandHandler<'EXECUTE'> = async (session, { control, args }) => {
  const { identity, credential, address, channel } = session
  if (session.isOutbound) throw new StatusError('PERMISSION_DENIED', 'nothing is executed where the producer called')
  needsRoom(session, channel)
  // What `channel.purge` takes away is told by a GAP: behind the response, as everything that a command causes.
  const hold = channel.queue.hold()
  try {
    const { id, run } = await session.producer.executor.execute(control, args, {
      identity,
      credential,
      address,
      channel,
    })
    const onSent = (): void => {
      channel.queue.letGo(hold)
      run()
    }
    return { result: id, stored: true, onSent }
  } catch (error) {
    channel.queue.letGo(hold)
    throw error
  }
}
