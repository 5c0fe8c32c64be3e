/** DEF_CHANNEL, SET_CHANNEL, DEL_CHANNEL and COMMIT: channels and what they have delivered. */
import { ALL_CHANNELS, BasicType, NoticeCode } from '../../protocol/monitor/constants.ts'
import { channelParameters, settingsOf } from '../controls/channels.ts'
import { noSuchTransaction, StatusError } from '../core/errors.ts'
import { convertArguments } from '../metrics/arguments.ts'
import type { CommandHandler, CommandSession, Outcome, Reply } from '../sessions/handler.ts'
import type { Lookup } from './lookup.ts'
import type { CommandServices } from './services.ts'

type DefChannelServices = Pick<
  CommandServices,
  'registry' | 'dialler' | 'rights' | 'limitedRecords' | 'accounts' | 'journal'
>

const MIN_SECRET_BYTES = 16
const MAX_SECRET_BYTES = 1024

const parameters = [...channelParameters, { name: 'secret', type: BasicType.OPAQUE }]

/**
 * DEF_CHANNEL makes a channel that outlives every connection [MON 14]. With an empty URL, SET_CHANNEL connects to it; with
 * another one, the producer connects.
 */
export function defChannel(services: DefChannelServices, lookup: Lookup): CommandHandler<'DEF_CHANNEL'> {
  const { registry } = services
  return (session, { url, args }) => {
    if (session.destination !== undefined) {
      throw new StatusError('PERMISSION_DENIED', 'no channels are defined on a connection that the producer made')
    }
    const given = convertArguments(args, parameters, 'DEF_CHANNEL')
    const settings = settingsOf(given, registry.defaults, registry.defaults)
    const secret = given.get('secret') as Uint8Array | undefined
    if (url !== '') return defOutbound(services, lookup, session, { url, settings, secret })
    if (secret !== undefined) throw new StatusError('INVALID_ARGUMENT', '`secret` goes with a URL')
    lookup.requireRoom(session)
    return { result: registry.create(session.identity, true, settings).id, stored: true }
  }
}

interface OutboundDefinition {
  readonly url: string
  readonly settings: ReturnType<typeof settingsOf>
  readonly secret: Uint8Array | undefined
}

/** Checks the URL, the right and the operator's list. The name of the host is not resolved here. */
async function defOutbound(
  { registry, dialler, rights, limitedRecords, accounts, journal }: DefChannelServices,
  lookup: Lookup,
  session: CommandSession,
  { url: text, settings, secret }: OutboundDefinition,
): Promise<Reply> {
  const { identity, address } = session
  const { url, isPush } = dialler.destination(text)
  checkSecret(secret, isPush, secret === undefined && dialler.provesItself(url))
  const isAllowed = rights.may(session, { command: 'DEF_CHANNEL', object: url, argument: () => undefined })
  // All refusals have the same text: which rule, list or address it was is for the operator only.
  if (!isAllowed || !dialler.permits(url)) {
    const refused = { action: 'refused', outcome: 'PERMISSION_DENIED', detail: 'not dialled' } as const
    limitedRecords.record({ ...refused, identity, address, object: url })
    throw new StatusError('PERMISSION_DENIED', 'this destination may not be dialled')
  }
  lookup.requireRoom(session)
  const scram = secret && (await dialler.verifierOf(secret))
  // In the meantime the last room may have been taken, or the user removed.
  lookup.requireRoom(session)
  if (accounts.byId(identity.userId) === undefined) throw new StatusError('PERMISSION_DENIED', 'the user was removed')
  const channel = registry.create(identity, true, { ...settings, url })
  if (!isPush) journal.change({ put: 'dial', row: { channel: channel.id, scram } })
  return { result: channel.id, stored: true, onSent: () => dialler.watch(channel, scram ?? 'certificate') }
}

/** `isProven`: there is none, and the certificate of the consumer is enough of a proof. */
function checkSecret(secret: Uint8Array | undefined, isPush: boolean, isProven: boolean): void {
  if (isPush && secret !== undefined) {
    throw new StatusError('INVALID_ARGUMENT', 'nobody logs in on gmetric: leave `secret` out')
  }
  if (isPush || isProven) return
  if (secret && secret.length >= MIN_SECRET_BYTES && secret.length <= MAX_SECRET_BYTES) return
  throw new StatusError(
    'INVALID_ARGUMENT',
    `\`secret\` is needed, an opaque of ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes: the consumer proves itself by it. ` +
      'Only with tls:// and wss://, and if the server has its own authorities (`dial.ca`), a certificate is enough',
  )
}

/** SET_CHANNEL makes another channel of this identity the current one, at this point of the stream [MON 6.9, 7]. */
export function setChannel(lookup: Lookup): CommandHandler<'SET_CHANNEL'> {
  return (session, args) => {
    if (session.destination !== undefined) {
      throw new StatusError('PERMISSION_DENIED', 'the producer made this connection for its channel and no other')
    }
    const channel = lookup.channel(session, args.channel, 'SET_CHANNEL')
    if (channel === session.channel) return 0
    if (channel.isPush) {
      throw new StatusError('UNSUPPORTED', 'the values of this channel go to its URL and nowhere else')
    }
    return { result: 0, stored: true, onSent: session.moveTo(channel) }
  }
}

/**
 * DEL_CHANNEL deletes a channel, its queue and the instances that are bound to nothing else [MON 6.9]. The connection of
 * the channel gets a notice and is closed; if it is this one, after the response.
 */
export function delChannel(
  { registry }: Pick<CommandServices, 'registry'>,
  lookup: Lookup,
): CommandHandler<'DEL_CHANNEL'> {
  return (session, args) => {
    const isAll = args.channel === ALL_CHANNELS
    const doomed = isAll ? registry.visibleTo(session) : [lookup.channel(session, args.channel, 'DEL_CHANNEL')]
    // The current one comes last.
    doomed.sort((a, b) => Number(a === session.channel) - Number(b === session.channel))
    const ending = doomed.map((channel) => registry.deleteAndEnd(channel, session))
    const isOwn = session.channel.deleted
    if (isOwn) session.stopReading()
    const onSent = (): void => session.dismiss(NoticeCode.CHANNEL_DELETED, 'the channel was deleted')
    const reply: Outcome = { result: 0, stored: true, ...(isOwn && { onSent }) }
    const pending = ending.filter((each) => each !== undefined)
    return pending.length === 0 ? reply : Promise.all(pending).then(() => reply)
  }
}

/** COMMIT acknowledges a value: it will not be sent again [MON 6.10]. The command reader handles plain ones in place. */
export const commit: CommandHandler<'COMMIT'> = (session, { transaction, through }) => {
  if (session.channel.queue.commit(transaction, through)) return { result: 0, stored: true }
  throw noSuchTransaction()
}
