/** Makes a new connection what the last one was: takes its channel up, and binds what that does not bind any more. */
import { BasicType, CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { Answers } from './answers.ts'
import { type Arguments, toArguments } from './arguments.ts'
import type { Request } from './commands.ts'
import type { Connection } from './connection.ts'
import { ConnectionError, StatusError } from './errors.ts'
import { bindingsOf, type Follow, type Follows } from './follows.ts'
import { plainOf } from './plain.ts'

export interface Attachment {
  readonly connection: Connection
  readonly answers: Answers
  /** The channel that the producer has made for this connection. */
  readonly birth: number
  /** The one to take up; 0 for none yet. */
  readonly channel: number
  readonly isDurable: boolean
  /** The birth channel is the one: the producer has called for it [MON 14]. */
  readonly isCurrent: boolean
  /** Whether this consumer had a connection before. */
  readonly isAgain: boolean
  readonly follows: Follows
  /** Called when the channel is current: `channel`, or one that begins empty. What comes next on the connection is its own. */
  readonly became: (channel: number) => void
}

const NOTHING: ReadonlyMap<number, string> = new Map()

type Query = (metric: string, args: Arguments) => Promise<ValueMessage>

/** Rejects with StatusError or ConnectionError. */
export async function attach(attachment: Attachment): Promise<void> {
  const { connection, answers, birth, channel, isDurable, isCurrent, follows, became } = attachment
  const request: Request = (name, values, onOk) => connection.request(name, values, onOk)
  let missing: readonly Follow[] = []
  // At once: values may stand right behind the response that made the channel current.
  const turnTo = (id: number, bound?: ReadonlyMap<number, string>) => {
    became(id)
    missing = follows.reconcile(bound)
  }
  const query: Query = (metric, args) =>
    answers.ask(request, 'QUERY', { metric, args: toArguments(args) }, { isKept: false })
  if (isCurrent) {
    turnTo(birth, await boundOn(birth, query))
  } else if (!isDurable) {
    const args = toArguments({ channel: birth, durable: false })
    checkDone(await answers.ask(request, 'EXECUTE', { control: 'channel.configure', args }, { isKept: false }))
    turnTo(birth, NOTHING)
  } else if (channel === CURRENT_CHANNEL) {
    turnTo(birth, NOTHING)
  } else {
    const bound = await boundOn(channel, query)
    const isThere = await takeUp(request, attachment, () => turnTo(channel, bound))
    // It had nothing to keep, so that the producer has not kept it.
    if (!isThere) turnTo(birth, NOTHING)
  }
  for (const follow of missing) await bind(request, follows, follow)
}

/** COLLECT and SUBSCRIBE. */
export async function bind(request: Request, follows: Follows, follow: Follow): Promise<void> {
  const { metric, args } = follow
  const id = await request('COLLECT', { metric, args: toArguments(args) }, (given) => follows.set(given, follow))
  await request('SUBSCRIBE', { metric: id, channel: CURRENT_CHANNEL })
}

/** The same for one that was not followed before, and is not if that fails. */
export async function bindNew(request: Request, follows: Follows, follow: Follow): Promise<void> {
  try {
    await bind(request, follows, follow)
  } catch (error) {
    follows.delete(follow)
    throw error
  }
}

/** What a channel binds; undefined where the producer does not tell. */
export async function boundOn(channel: number, query: Query): Promise<ReadonlyMap<number, string> | undefined> {
  try {
    const { value } = await query('producer.channels', { channel: String(channel) })
    return bindingsOf(value)
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

/** Whether the channel is still there. Rejects where something is lost with it. */
async function takeUp(
  request: Request,
  { channel, isAgain, follows }: Attachment,
  taken: () => void,
): Promise<boolean> {
  try {
    await request('SET_CHANNEL', { channel }, taken)
    return true
  } catch (error) {
    const isGone = error instanceof StatusError && error.status === 'NO_SUCH_CHANNEL'
    if (!isGone || !isAgain) throw error
    if (follows.size === 0) return false
    const message = `channel ${channel} is gone: it was deleted, or nobody has used it for too long`
    throw new ConnectionError('CHANNEL_GONE', message, { cause: error })
  }
}

function checkDone({ value }: ValueMessage): void {
  const result = value.type === BasicType.REC ? (plainOf(value) as { outcome?: unknown; detail?: unknown }) : {}
  if (result.outcome === 'ok') return
  throw new ConnectionError('CLOSED', `the producer could not make a channel that is not durable: ${result.detail}`)
}
