/** Consumers that connect to their producer. */
import { type ClientClock, realClock } from './clock.ts'
import type { ConnectionListener } from './connection.ts'
import { type ChannelOptions, Consumer } from './consumer.ts'
import { type Credentials, describeCredentials, type Proof, type TokenCredentials, tokenOf } from './credentials.ts'
import { type ConnectionError, isTransient } from './errors.ts'
import { type ClientSession, inTime, openSession, type SessionSource } from './session.ts'
import type { Security, Transport } from './transport.ts'

/** How long a response may take: far longer than a disk does. */
export const RESPONSE_DEADLINE_MS = 30_000

/**
 * Opens a transport to which the layers of `security.wrap` can be added. Throws ConnectionError. Once `signal` is aborted it
 * throws and leaves nothing open.
 */
export type DialTransport = (url: string, signal: AbortSignal, security: Security) => Promise<Transport>

export interface ConnectOptions extends ChannelOptions, Security {
  /** How long a response may take, and how long a command may wait for a connection; 30,000 if it is not given. */
  readonly deadlineMs?: number | undefined
  /** Gives up the first attempt to connect. */
  readonly signal?: AbortSignal | undefined
  readonly clock?: ClientClock | undefined
  readonly dial?: DialTransport | undefined
}

export type Connect = (url: string, credentials: Credentials, options?: ConnectOptions) => Promise<Consumer>

/** Makes a `connect` that dials in the given way unless the caller has another. */
export function connector(dialUrl: DialTransport): Connect {
  return (
    url,
    credentials,
    { clock = realClock(), dial = dialUrl, deadlineMs = RESPONSE_DEADLINE_MS, signal, tls, wrap, ...rest } = {},
  ) => {
    const sessions = new OutboundSessions({ url, credentials, clock, dial, deadlineMs, tls, wrap })
    return Consumer.open({ ...rest, clock, deadlineMs, sessions }, signal)
  }
}

interface OutboundOptions extends Security {
  readonly url: string
  readonly credentials: Credentials
  readonly dial: DialTransport
  readonly clock: ClientClock
  readonly deadlineMs: number
}

/** The sessions of a consumer that connects to its producer. */
class OutboundSessions implements SessionSource {
  readonly #options: OutboundOptions
  readonly #peer: string
  /** The token that was used last. */
  #token: string | undefined
  #withdrawn: ConnectionError | undefined

  constructor(options: OutboundOptions) {
    this.#options = options
    this.#peer = `${options.url} as ${describeCredentials(options.credentials)}`
  }

  get url(): string {
    return this.#options.url
  }

  next(listener: ConnectionListener, signal?: AbortSignal): Promise<ClientSession> {
    const { url, credentials, clock, deadlineMs, dial, tls, wrap = [] } = this.#options
    const peer = this.#peer
    return inTime({ clock, signal, peer }, async (signal) => {
      const proof = 'token' in credentials ? await this.#byToken(credentials, signal) : credentials
      const transport = await dial(url, signal, { tls, wrap })
      return openSession(transport, { peer, clock, deadlineMs, proof, wrap, signal, listener })
    })
  }

  /** Withdrawn credentials are not tried again [MON 3 NOTICE], but a function may provide a new token. */
  mayContinue(reason: ConnectionError): boolean {
    const { credentials } = this.#options
    const isRenewed = 'token' in credentials && typeof credentials.token === 'function'
    if (reason.code !== 'WITHDRAWN' || !isRenewed) return isTransient(reason)
    this.#withdrawn = reason
    return true
  }

  /** To be called before dialling, because the producer gives a login only ten seconds. */
  async #byToken(credentials: TokenCredentials, signal: AbortSignal): Promise<Proof> {
    const token = await unlessAborted(signal, tokenOf(credentials))
    if (this.#withdrawn && token === this.#token) throw this.#withdrawn
    this.#withdrawn = undefined
    this.#token = token
    return { token }
  }
}

function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
