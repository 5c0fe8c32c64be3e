/**
 * How commands find what their ids name. Ids are judged in argument order: the metric id, then the channel [MON 7]. What is
 * not theirs, or holds what their credential is not for, is answered as what is not there.
 */
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { ALL_CHANNELS, BasicType, CURRENT_CHANNEL, NoticeCode } from '../../protocol/monitor/constants.ts'
import { readerOf } from '../accounts/rights.ts'
import type { Channel } from '../channels/channel.ts'
import { StatusError } from '../core/errors.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { CommandSession } from '../sessions/handler.ts'

export function noSuchId(): StatusError {
  return new StatusError('NO_SUCH_ID', 'no such id')
}

/** The instance of an id. Throws NO_SUCH_ID; for a result or an answer still to come UNSUPPORTED, where `unsupported` names the command. */
export function instanceOf(session: CommandSession, id: number, unsupported: string): MetricInstance {
  const instance = ownInstance(session, id)
  if (instance !== undefined) return instance
  if (isResult(session, id) || session.producer.answers.has(session.identity, id)) {
    throw new StatusError('UNSUPPORTED', `${unsupported} does not go with the id of a result or an answer`)
  }
  throw noSuchId()
}

/** The instance of an id if there is one. Throws PERMISSION_DENIED if the credential is not for it. */
export function ownInstance(session: CommandSession, id: number): MetricInstance | undefined {
  const instance = session.producer.instances.find(session.identity, id)
  if (instance !== undefined && !isCovered(session, instance.selection.name)) throw notCovered(instance.selection.name)
  return instance
}

/** COLLECT and QUERY: throws PERMISSION_DENIED for a metric that the credential is not for, if there is such a metric. */
export function needsCover(session: CommandSession, metric: string, args: ArgumentList): void {
  if (isCovered(session, metric)) return
  session.producer.instances.select(readerOf(session), metric, args)
  throw notCovered(metric)
}

function isCovered({ producer, credential }: CommandSession, metric: string): boolean {
  return producer.rights.isCovered(credential, { command: 'COLLECT', object: metric })
}

function notCovered(metric: string): StatusError {
  return new StatusError('PERMISSION_DENIED', `what this connection was admitted with is not for reading ${metric}`)
}

/** A binding came to a channel whose connection may be there with a narrower credential: it would see more than that is for. */
export function endNarrower(channel: Channel): void {
  const { connection } = channel
  if (connection === undefined || channel.isFor(connection.credential?.scope)) return
  connection.notice(NoticeCode.WITHDRAWN, channel.id, 'the channel holds more than this connection was admitted for')
  connection.end()
}

/** True if an id is the result of an EXECUTE of this identity whose value is to come or not committed. */
export function isResult(session: CommandSession, id: number): boolean {
  return session.producer.registry.for(session).some((channel) => channel.results.has(id))
}

/** One channel: 0 is the current one. `all` is what 0xFFFFFFFF means to the command, or a refusal. */
export function channelOf(session: CommandSession, id: number, command: string): Channel {
  if (id === ALL_CHANNELS) {
    throw new StatusError('INVALID_ARGUMENT', `${command} takes one channel, not all of them`)
  }
  return id === CURRENT_CHANNEL ? session.channel : session.producer.registry.find(session, id)
}

/** STOP and GET: one channel, or every channel of the identity on which the id is bound, or has an answer to come. */
export function channelsOf(session: CommandSession, id: number, metric: number): Channel[] {
  if (id !== ALL_CHANNELS)
    return [id === CURRENT_CHANNEL ? session.channel : session.producer.registry.find(session, id)]
  return session.producer.registry.for(session).filter((channel) => {
    return channel.bindings.has(metric) || channel.gets.has(metric) || channel.results.has(metric)
  })
}

/** A command gives a channel something that makes it stay. While the disk is full nothing does [MON 8 Full disk]. */
export function needsRoom(session: CommandSession, channel?: Channel): void {
  const { host, registry } = session.producer
  if (channel !== undefined && !channel.survives) return
  if (host.refusing === 'full') throw new StatusError('STORAGE_FULL', 'the disk is full: free some space and try again')
  if (channel === undefined || !channel.stored) registry.needsRoom(session.identity)
}

/** `producer.channels` takes "0" for the current channel [MON 8 Ledger]; only the connection knows which that is. */
export function withCurrentChannel(session: CommandSession, metric: string, args: ArgumentList): ArgumentList {
  if (metric !== 'producer.channels') return args
  return args.map((argument) => {
    if (argument.name !== 'channel' || argument.value !== '0') return argument
    return { name: 'channel', type: BasicType.STRING, value: String(session.channel.id) }
  })
}
