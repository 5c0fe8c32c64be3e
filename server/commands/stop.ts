/** STOP: no more values of an id to a channel; what waits there for it is lost, and an id bound nowhere dies [MON 6.6]. */
import type { Channel } from '../channels/channel.ts'
import type { CommandHandler, CommandSession, Outcome } from '../sessions/handler.ts'
import { channelsOf, isResult, noSuchId, ownInstance } from './lookup.ts'

export const stop: CommandHandler<'STOP'> = (session, args) => {
  const { bindings, answers } = session.producer
  const instance = ownInstance(session, args.metric)
  if (instance === undefined) {
    if (isResult(session, args.metric))
      return stopResult(session, args.metric, channelsOf(session, args.channel, args.metric))
    if (!answers.has(session.identity, args.metric)) throw noSuchId()
    channelsOf(session, args.channel, args.metric)
    answers.close(args.metric)
    return 0
  }
  const channels = channelsOf(session, args.channel, args.metric)
  const under = channels.map((channel) => bindings.stop(instance, channel)).filter((done) => done !== undefined)
  const done = (): Outcome => {
    bindings.endUnbound(instance)
    return { result: 0, stored: true }
  }
  return under.length === 0 ? done() : Promise.all(under).then(done)
}

/** STOP of a result drops its value, not the control [MON 10]. */
function stopResult(session: CommandSession, id: number, channels: readonly Channel[]): Outcome | Promise<Outcome> {
  const { bindings } = session.producer
  const under: Promise<void>[] = []
  for (const channel of channels) {
    if (!channel.results.has(id)) continue
    const done = bindings.stopResult(id, channel)
    if (done !== undefined) under.push(done)
  }
  const reply: Outcome = { result: 0, stored: true }
  return under.length === 0 ? reply : Promise.all(under).then(() => reply)
}
