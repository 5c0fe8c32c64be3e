/** From a URL to a connection that is logged in, within one deadline. */
import type { Clock } from './clock.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { ConnectionError } from './errors.ts'
import { type Credentials, logIn } from './login.ts'
import type { Transport } from './transport.ts'

const DEADLINE_MS = 10_000

/** Opens a transport. Throws ConnectionError; once `signal` is aborted it throws and leaves nothing open. */
export type Dial = (url: string, signal: AbortSignal) => Promise<Transport>

export interface SessionOptions {
  readonly url: string
  readonly credentials: Credentials
  readonly dial: Dial
  readonly clock: Clock
  /** Gives up. */
  readonly signal?: AbortSignal | undefined
  readonly connection: Omit<ConnectionOptions, 'clock' | 'peer' | 'closed'>
  readonly closed: (connection: Connection, reason: ConnectionError, isOurs: boolean) => void
}

export interface Session {
  readonly connection: Connection
  /** The channel that the producer has made for this connection. */
  readonly channel: number
  /** Whether nobody on the way can read along: encrypted, or on this machine. */
  readonly isConfidential: boolean
}

/** Throws ConnectionError; nothing is left open then. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { url, credentials, clock, signal } = options
  const peer = `${url} as ${credentials.identity}`
  const abort = new AbortController()
  const giveUp = () => abort.abort(signal?.reason)
  signal?.addEventListener('abort', giveUp)
  if (signal?.aborted) giveUp()
  const late = new ConnectionError('TIMEOUT', `${peer}: not connected and logged in after ${DEADLINE_MS / 1000} s`)
  const timer = clock.setTimeout(() => abort.abort(late), DEADLINE_MS)
  try {
    const transport = await options.dial(url, abort.signal)
    return await open(transport, peer, options, abort.signal)
  } catch (error) {
    throw abort.signal.aborted ? abort.signal.reason : error
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', giveUp)
  }
}

async function open(
  transport: Transport,
  peer: string,
  { credentials, clock, connection: options, closed }: SessionOptions,
  signal: AbortSignal,
): Promise<Session> {
  const connection: Connection = new Connection(transport, {
    ...options,
    clock,
    peer,
    closed: (reason, isOurs) => closed(connection, reason, isOurs),
  })
  const abort = () => connection.close(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    const channel = await logIn(connection, transport, credentials)
    return { connection, channel, isConfidential: transport.encrypted || transport.loopback }
  } catch (error) {
    connection.close()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
