/**
 * DEF_CHANNEL: a channel that outlives every connection [MON 14]. With an empty URL it is taken up by SET_CHANNEL; with
 * another one the producer connects. The URL, the right and the operator's list are judged here, a name is not asked for.
 */
import { BasicType } from '../../protocol/monitor/constants.ts'
import { channelParameters, settingsOf } from '../controls/channels.ts'
import { StatusError } from '../core/errors.ts'
import { convertArguments } from '../metrics/arguments.ts'
import type { Caller, Handler, Reply } from '../sessions/handler.ts'
import { needsRoom } from './lookup.ts'

const MIN_SECRET_BYTES = 16
const MAX_SECRET_BYTES = 1024

const parameters = [...channelParameters, { name: 'secret', type: BasicType.OPAQUE }]

export const defChannel: Handler<'DEF_CHANNEL'> = (session, { url, args }) => {
  if (session.isDialled) throw new StatusError('PERMISSION_DENIED', 'no channels are defined where the producer called')
  const { registry } = session.producer
  const given = convertArguments(args, parameters, 'DEF_CHANNEL')
  const settings = settingsOf(given, registry.defaults, registry.defaults)
  const secret = given.get('secret') as Uint8Array | undefined
  if (url !== '') return dialled(session, url, settings, secret)
  if (secret !== undefined) throw new StatusError('INVALID_ARGUMENT', '`secret` goes with a URL that is dialled')
  needsRoom(session)
  return { result: registry.create(session.identity, true, settings).id, stored: true }
}

async function dialled(
  session: Caller,
  text: string,
  settings: ReturnType<typeof settingsOf>,
  secret: Uint8Array | undefined,
): Promise<Reply> {
  const { identity, address } = session
  const { registry, dials, rights, refusals, accounts, journal } = session.producer
  const destination = dials.destination(text)
  const { url } = destination
  checkSecret(secret, destination.isPush)
  const isAllowed = rights.may(session, { command: 'DEF_CHANNEL', object: url, argument: () => undefined })
  // One sentence for all of them: which rule, list or address it was concerns the operator.
  if (!isAllowed || !dials.permits(url)) {
    refusals.record({ identity, address, object: url, outcome: 'PERMISSION_DENIED', detail: 'not dialled' })
    throw new StatusError('PERMISSION_DENIED', 'this destination may not be dialled')
  }
  needsRoom(session)
  const scram = secret && (await dials.verifierOf(secret))
  // Meanwhile somebody else may have taken the last room, or removed the user.
  needsRoom(session)
  if (accounts.byId(identity.userId) === undefined) throw new StatusError('PERMISSION_DENIED', 'the user was removed')
  const channel = registry.create(identity, true, { ...settings, url })
  if (scram) journal.change({ put: 'dial', row: { channel: channel.id, scram } })
  return { result: channel.id, stored: true, after: () => dials.watch(channel, scram) }
}

function checkSecret(secret: Uint8Array | undefined, isOneWay: boolean): void {
  if (isOneWay && secret !== undefined) {
    throw new StatusError('INVALID_ARGUMENT', 'nobody answers on gmetric: there is no `secret` to ask for')
  }
  if (isOneWay || (secret && secret.length >= MIN_SECRET_BYTES && secret.length <= MAX_SECRET_BYTES)) return
  throw new StatusError(
    'INVALID_ARGUMENT',
    `\`secret\` is needed, an opaque of ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes: the consumer proves itself by it`,
  )
}
