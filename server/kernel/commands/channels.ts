/** DEF_CHANNEL, SET_CHANNEL, DEL_CHANNEL and COMMIT: channels and what they have delivered. */
import { isLoopback } from '../../../auth/network.ts'
import { onlyWatches } from '../../../auth/permissions.ts'
import { ALL_CHANNELS, BasicType, NoticeCode } from '../../../protocol/monitor/constants.ts'
import type { Channel } from '../channels/channel.ts'
import { channelNameProblem } from '../channels/names.ts'
import type { ChannelSettings } from '../channels/queue-host.ts'
import type { Registry } from '../channels/registry.ts'
import { changedSettings, channelParameters, settingsOf } from '../controls/channels.ts'
import type { ControlArguments } from '../controls/control.ts'
import { noSuchTransaction, StatusError } from '../core/errors.ts'
import { convertArguments } from '../metrics/arguments.ts'
import type { CommandHandler, CommandSession, Outcome, Reply } from '../sessions/handler.ts'
import type { Lookup } from './lookup.ts'
import type { CommandServices, OutboundDestination } from './services.ts'

type DefChannelServices = Pick<
  CommandServices,
  'registry' | 'dialler' | 'rights' | 'limitedRecords' | 'accounts' | 'journal'
>

const MIN_SECRET_BYTES = 16
const MAX_SECRET_BYTES = 1024
const MAX_BEARER_BYTES = 4096

const parameters = [
  ...channelParameters,
  { name: 'name', type: BasicType.STRING },
  { name: 'secret', type: BasicType.OPAQUE },
  { name: 'bearer', type: BasicType.OPAQUE },
]

/**
 * DEF_CHANNEL makes a channel that outlives every connection [MON 14], or finds that of a name. With an empty URL, SET_CHANNEL
 * connects to it; with another one, the producer connects.
 */
export function defChannel(services: DefChannelServices, lookup: Lookup): CommandHandler<'DEF_CHANNEL'> {
  return (session, { url, args }) => {
    if (session.destination !== undefined) {
      throw new StatusError('PERMISSION_DENIED', 'no channels are defined on a connection that the producer made')
    }
    if (onlyWatches(session.credential.scope)) {
      throw new StatusError(
        'PERMISSION_DENIED',
        'the credential of this connection only watches: it defines no channels',
      )
    }
    const given = convertArguments(args, parameters, 'DEF_CHANNEL')
    const [secret, bearer] = [given.get('secret'), given.get('bearer')] as (Uint8Array | undefined)[]
    const definition = { url, name: nameOf(given), given, secret, bearer }
    if (url !== '') return defOutbound(services, lookup, session, definition)
    if (secret !== undefined) throw new StatusError('INVALID_ARGUMENT', '`secret` goes with a URL')
    if (bearer !== undefined) throw new StatusError('INVALID_ARGUMENT', '`bearer` goes with a URL')
    return { result: define(services, lookup, session, definition).id, stored: true }
  }
}

interface ChannelDefinition {
  readonly url: string
  /** Empty if it has none. */
  readonly name: string
  /** The arguments of the command. */
  readonly given: ControlArguments
  readonly secret: Uint8Array | undefined
  readonly bearer: Uint8Array | undefined
}

/** Checks the URL, the right and the operator's list. The name of the host is not resolved here. */
async function defOutbound(
  services: DefChannelServices,
  lookup: Lookup,
  session: CommandSession,
  definition: ChannelDefinition,
): Promise<Reply> {
  const { dialler, rights, limitedRecords, accounts, journal, registry } = services
  const { identity, address } = session
  const { secret, bearer } = definition
  const destination = dialler.destination(definition.url)
  const { url, isPush } = destination
  checkBearer(bearer, destination)
  const resolved = { ...definition, url }
  const known = findNamed(registry, session, resolved)
  const keepsProof = known !== undefined && secret === undefined && bearer === undefined
  if (!keepsProof) checkSecret(secret, isPush, secret === undefined && dialler.provesItself(url))
  const isAllowed = rights.may(session, { command: 'DEF_CHANNEL', object: url, argument: () => undefined })
  // All refusals have the same text: which rule, list or address it was is for the operator only.
  if (!isAllowed || !dialler.permits(url)) {
    const refused = { action: 'refused', outcome: 'PERMISSION_DENIED', detail: 'not dialled' } as const
    limitedRecords.record({ ...refused, identity, address, object: url })
    throw new StatusError('PERMISSION_DENIED', 'this destination may not be dialled')
  }
  checkDefinition(services, lookup, session, resolved)
  const scram = secret && (await dialler.verifierOf(secret))
  // In the meantime the last room or the name may have been taken, or the user removed.
  if (accounts.byId(identity.userId) === undefined) throw new StatusError('PERMISSION_DENIED', 'the user was removed')
  const channel = define(services, lookup, session, resolved)
  if (keepsProof && channel === known) return { result: channel.id, stored: true }
  const shown = bearer && Uint8Array.from(bearer)
  if (!isPush || shown !== undefined)
    journal.change({ put: 'dial', row: { channel: channel.id, scram, bearer: shown } })
  // At once: of two such commands for one name the later is in force, as in the store.
  dialler.watch(channel, shown === undefined ? (scram ?? 'certificate') : { bearer: shown })
  return { result: channel.id, stored: true, onSent: () => dialler.dial(channel) }
}

/** Makes the channel, or changes the settings of that with its name. Throws StatusError, and then nothing is changed. */
function define(
  services: Pick<DefChannelServices, 'registry' | 'rights'>,
  lookup: Lookup,
  session: CommandSession,
  definition: ChannelDefinition,
): Channel {
  const { registry } = services
  const { known, settings, isChanged } = checkDefinition(services, lookup, session, definition)
  if (known === undefined) {
    const { url, name, given } = definition
    const configured = channelParameters.some((parameter) => given.has(parameter.name))
    return registry.create(session.identity, true, { ...settings, url, name, configured })
  }
  if (isChanged) registry.configure(known, settings)
  return known
}

interface CheckedDefinition {
  /** The channel that has the name. */
  readonly known: Channel | undefined
  readonly settings: ChannelSettings
  /** Whether a known channel has other settings. */
  readonly isChanged: boolean
}

function checkDefinition(
  { registry, rights }: Pick<DefChannelServices, 'registry' | 'rights'>,
  lookup: Lookup,
  session: CommandSession,
  definition: ChannelDefinition,
): CheckedDefinition {
  const { given } = definition
  const { defaults } = registry
  const known = findNamed(registry, session, definition)
  const settings = known ? changedSettings(given, known, defaults) : settingsOf(given, defaults, defaults)
  const names = Object.keys(settings) as (keyof ChannelSettings)[]
  const isChanged = known !== undefined && names.some((name) => settings[name] !== known.row[name])
  if (known === undefined) lookup.requireRoom(session)
  else if (isChanged) {
    lookup.requireRoom(session, [known])
    // It is what the control does, so whoever may not run that may not do it by a name either.
    const configure = { command: 'EXECUTE', object: 'channel.configure', argument: () => undefined } as const
    if (!rights.may(session, configure)) {
      const { name } = definition
      throw new StatusError('PERMISSION_DENIED', `the channel ${name} has other settings, and you may not change them`)
    }
  }
  return { known, settings, isChanged }
}

/** The channel of a name. Throws StatusError if it has another URL, or binds what the credential may not read. */
function findNamed(
  registry: Pick<Registry, 'named'>,
  { identity, credential }: CommandSession,
  { name, url }: ChannelDefinition,
): Channel | undefined {
  const channel = registry.named(identity.userId, name)
  if (channel === undefined) return undefined
  if (!channel.isCoveredBy(credential.scope)) {
    throw new StatusError('PERMISSION_DENIED', `the channel ${name} binds what this credential may not read`)
  }
  if (channel.row.url === url) return channel
  const has = channel.row.url === '' ? 'no URL' : `the URL ${channel.row.url}`
  throw new StatusError('INVALID_ARGUMENT', `the channel ${name} has ${has}: delete it first, or choose another name`)
}

/** Throws StatusError INVALID_ARGUMENT. */
function nameOf(given: ControlArguments): string {
  const name = given.get('name') as string | undefined
  if (name === undefined) return ''
  const problem = channelNameProblem(name)
  if (problem !== undefined) throw new StatusError('INVALID_ARGUMENT', `\`name\` is ${problem}`)
  return name
}

/** `isProven`: there is none, and the certificate of the consumer is enough of a proof. */
function checkSecret(secret: Uint8Array | undefined, isPush: boolean, isProven: boolean): void {
  if (isPush && secret !== undefined) {
    throw new StatusError('INVALID_ARGUMENT', 'nobody logs in where values are only sent: leave `secret` out')
  }
  if (isPush || isProven) return
  if (secret && secret.length >= MIN_SECRET_BYTES && secret.length <= MAX_SECRET_BYTES) return
  throw new StatusError(
    'INVALID_ARGUMENT',
    `\`secret\` is needed, an opaque of ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes: the consumer proves itself by it. ` +
      'Only with tls:// and wss://, and if the server has its own authorities (`dial.ca`), a certificate is enough',
  )
}

/** Throws StatusError INVALID_ARGUMENT. A token must not leave this machine without TLS, and has no place in another header. */
function checkBearer(bearer: Uint8Array | undefined, { scheme, isHttp, host, isAddress }: OutboundDestination): void {
  if (bearer === undefined) return
  if (!isHttp) throw new StatusError('INVALID_ARGUMENT', '`bearer` goes with what is delivered by HTTP: leave it out')
  const isText =
    bearer.length > 0 && bearer.length <= MAX_BEARER_BYTES && bearer.every((byte) => byte > 0x20 && byte < 0x7f)
  if (!isText) {
    throw new StatusError(
      'INVALID_ARGUMENT',
      `\`bearer\` has 1 to ${MAX_BEARER_BYTES} bytes, none of them a space or a control character`,
    )
  }
  if (scheme.endsWith('+http') && !(isAddress && isLoopback(host))) {
    throw new StatusError('INVALID_ARGUMENT', '`bearer` would be sent in clear: use +https')
  }
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
