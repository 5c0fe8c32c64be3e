/** QUERY: COLLECT, GET and STOP in one, for continuous metrics; at most one value, and its id dies with it [MON 6.11]. */
import { writeValueMessage } from '../../protocol/monitor/message.ts'
import { readerOf } from '../accounts/rights.ts'
import { StatusError } from '../core/errors.ts'
import type { CommandHandler } from '../sessions/handler.ts'
import { needsCover, withCurrentChannel } from './lookup.ts'

export const query: CommandHandler<'QUERY'> = (session, { metric, args }) => {
  const { instances, measurements, answers } = session.producer
  needsCover(session, metric, args)
  const selection = instances.select(readerOf(session), metric, withCurrentChannel(session, metric, args))
  if (selection.kind === 'event') {
    throw new StatusError('UNSUPPORTED', `${metric} comes when something happens: COLLECT and SUBSCRIBE it`)
  }
  const reading = measurements.begin(selection)
  const { channel } = session
  const id = answers.open(session.identity)
  const onSent = (): void =>
    reading(({ value, time }) => {
      // Without a connection by then, or stopped, it is dropped.
      if (!answers.close(id)) return
      channel.outbox.answer((writer) => writeValueMessage(writer, { metric: id, transaction: 0, time, value }))
    })
  return { result: id, onSent, heavy: selection.isList }
}
