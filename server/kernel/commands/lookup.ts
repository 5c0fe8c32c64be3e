/**
 * Finds what the ids of a command name. Ids are checked in argument order: the metric id, then the channel [MON 7]. An id
 * that belongs to somebody else, or that the credential does not cover, is answered like one that does not exist.
 */
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { ALL_CHANNELS, BasicType, CURRENT_CHANNEL, NoticeCode } from '../../../protocol/monitor/constants.ts'
import { readerOf } from '../accounts/rights.ts'
import type { Channel } from '../channels/channel.ts'
import { StatusError } from '../core/errors.ts'
import type { Steps } from '../core/fair-work.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { CommandSession } from '../sessions/handler.ts'
import type { CommandServices } from './services.ts'

export class Lookup {
  readonly #services: Pick<CommandServices, 'instances' | 'answers' | 'registry' | 'rights' | 'host'>

  constructor(services: Pick<CommandServices, 'instances' | 'answers' | 'registry' | 'rights' | 'host'>) {
    this.#services = services
  }

  /** The instance of an id. Throws NO_SUCH_ID, or UNSUPPORTED for a result or an answer that `command` cannot take. */
  instance(session: CommandSession, id: number, command: string): MetricInstance {
    const instance = this.ownInstance(session, id)
    if (instance !== undefined) return instance
    if (this.isResult(session, id) || this.#services.answers.has(session.identity, id)) {
      throw new StatusError('UNSUPPORTED', `${command} does not go with the id of a result or an answer`)
    }
    throw noSuchId()
  }

  /** The instance of an id if there is one. Throws PERMISSION_DENIED if the credential does not cover its metric. */
  ownInstance(session: CommandSession, id: number): MetricInstance | undefined {
    const instance = this.#services.instances.find(session.identity, id)
    if (instance !== undefined && !this.covers(session, instance.selection.name)) {
      throw notCovered(instance.selection.name)
    }
    return instance
  }

  /** Whether the credential covers reading a metric. */
  covers({ credential }: CommandSession, metric: string): boolean {
    return this.#services.rights.isCovered(credential, { command: 'COLLECT', object: metric })
  }

  /** COLLECT and QUERY of a metric that the credential does not cover: throws PERMISSION_DENIED if the metric exists. */
  *refuseUncovered(session: CommandSession, metric: string, args: ArgumentList): Steps<void> {
    yield* this.#services.instances.select(readerOf(session), metric, args)
    throw notCovered(metric)
  }

  /** True if an id is the result of an EXECUTE of this identity whose value is still to come or not committed. */
  isResult(session: CommandSession, id: number): boolean {
    return this.#services.registry.visibleTo(session).some((channel) => channel.results.has(id))
  }

  /** SUBSCRIBE and BUFFER: one channel, or every channel of the identity. Throws UNSUPPORTED if one of all is one-way. */
  destinations(session: CommandSession, id: number, command: string): Channel[] {
    if (id !== ALL_CHANNELS) return [this.channel(session, id, command)]
    const all = this.#services.registry.visibleTo(session)
    const oneWay = all.find(({ isPush }) => isPush)
    if (oneWay === undefined) return all
    throw new StatusError(
      'UNSUPPORTED',
      `channel ${oneWay.id} is one-way, to ${oneWay.row.url}: name each channel by its id instead`,
    )
  }

  /** One channel; 0 is the current one. `command` takes one channel, not all of them. */
  channel(session: CommandSession, id: number, command: string): Channel {
    if (id === ALL_CHANNELS) {
      throw new StatusError('INVALID_ARGUMENT', `${command} takes one channel, not all of them`)
    }
    return id === CURRENT_CHANNEL ? session.channel : this.#services.registry.find(session, id)
  }

  /** STOP and GET: one channel, or every channel of the identity on which the id is bound or has an answer to come. */
  channels(session: CommandSession, id: number, metric: number): Channel[] {
    const { registry } = this.#services
    if (id === CURRENT_CHANNEL) return [session.channel]
    if (id !== ALL_CHANNELS) return [registry.find(session, id)]
    return registry.visibleTo(session).filter((channel) => {
      return channel.bindings.has(metric) || channel.gets.has(metric) || channel.results.has(metric)
    })
  }

  /**
   * Required by a command that makes channels survive, `channels` or a new one. Throws STORAGE_FULL while the disk is full
   * [MON 8 Full disk], unless the command may use the reserve, or QUOTA_EXCEEDED.
   */
  requireRoom(session: CommandSession, channels?: readonly Channel[], usesReserve = false): void {
    const { host, registry } = this.#services
    const surviving = channels?.filter(({ survives }) => survives)
    if (surviving?.length === 0) return
    if (host.refusing === 'full' && !usesReserve)
      throw new StatusError('STORAGE_FULL', 'the disk is full: free some space and try again')
    const more = surviving?.filter(({ stored }) => !stored).length ?? 1
    if (more > 0) registry.needsRoom(session.identity, more)
  }
}

export function noSuchId(): StatusError {
  return new StatusError('NO_SUCH_ID', 'no such id')
}

function notCovered(metric: string): StatusError {
  return new StatusError('PERMISSION_DENIED', `the credential of this connection does not cover reading ${metric}`)
}

/** Ends the connection of a channel if its credential does not cover a binding that came from another connection. */
export function endNarrower(channel: Channel): void {
  const { connection } = channel
  if (connection === undefined || channel.isCoveredBy(connection.credential?.scope)) return
  connection.notice(NoticeCode.WITHDRAWN, channel.id, 'the channel holds more than this connection was admitted for')
  connection.end()
}

/**
 * `producer.channels` and `producer.bindings` take "0" for the current channel [MON 8 Ledger]; only the connection knows which
 * one that is. `producer.bindings` without a channel is about that one.
 */
export function withCurrentChannel(session: CommandSession, metric: string, args: ArgumentList): ArgumentList {
  if (metric !== 'producer.channels' && metric !== 'producer.bindings') return args
  const current = { name: 'channel', type: BasicType.STRING, value: String(session.channel.id) } as const
  if (metric === 'producer.bindings' && !args.some(({ name }) => name === 'channel')) return [...args, current]
  return args.map((argument) => (argument.name === 'channel' && argument.value === '0' ? current : argument))
}
