/** Consumers that connect to their producer. */
import { Backoff, TO_PRODUCER } from '../protocol/kept/backoff.ts'
import { pause, unlessAborted } from '../protocol/kept/pause.ts'
import type { LabelledReader } from '../protocol/monitor/labelled.ts'
import type { ChannelOptions } from './channel-options.ts'
import { type ClientClock, realClock } from './clock.ts'
import type { ConnectionListener } from './connection.ts'
import { Consumer } from './consumer.ts'
import { type Credentials, describeCredentials, type Proof, type TokenCredentials, tokenOf } from './credentials.ts'
import { ConnectionError, isNotUp, isTransient } from './errors.ts'
import type { RetryEvent } from './events.ts'
import { type ClientSession, type InTimeOptions, inTime, openSession, type SessionSource } from './session.ts'
import type { Security, Transport } from './transport.ts'

/** How long a response may take: far longer than a disk does. */
export const RESPONSE_DEADLINE_MS = 30_000

/** How long a producer with several addresses may be silent: another one may answer, and the nodes of a cluster notice a silent leader as soon. */
const SILENCE_OF_SEVERAL_MS = 3_000
const MIN_SILENCE_MS = 1_000
const MAX_SILENCE_MS = 86_400_000

/**
 * Opens a transport to which the layers of `security.wrap` can be added. Throws ConnectionError. Once `signal` is aborted it
 * throws and leaves nothing open.
 */
export type DialTransport = (url: string, signal: AbortSignal, security: Security) => Promise<Transport>

export interface ConnectOptions extends ChannelOptions, Security {
  /** How long a response may take, and how long a command may wait for a connection; 30,000 if it is not given. */
  readonly deadlineMs?: number | undefined
  /**
   * How long the server may be silent until the connection counts as lost: 30,000 if it is not given, and 3,000 with several
   * addresses. After half of it a NOP asks whether the server is there.
   */
  readonly silenceMs?: number | undefined
  /** Gives up connecting. It has no effect on a consumer that is connected. */
  readonly signal?: AbortSignal | undefined
  /**
   * How long to wait for a server that is not up yet: attempts are made at the intervals of those after a lost connection, until
   * one succeeds or the time is over; `Infinity` waits as long as it takes. Without it there is one attempt.
   */
  readonly waitForServerMs?: number | undefined
  /** Called before each further attempt while `connect` waits for the server. Afterwards there is the event of this name. */
  readonly retrying?: ((event: RetryEvent) => void) | undefined
  readonly clock?: ClientClock | undefined
  readonly dial?: DialTransport | undefined
}

/** Several URLs are several addresses of one server: each connection takes the first that answers, beginning with the last one used. */
export type Connect = (
  url: string | readonly string[],
  credentials: Credentials,
  options?: ConnectOptions,
) => Promise<Consumer>

/** Makes a `connect` that dials in the given way unless the caller has another. `newReader` makes what reads a connection. */
export function connector(dialUrl: DialTransport, newReader?: () => LabelledReader): Connect {
  return async (url, credentials, options = {}) => {
    const { clock = realClock(), dial = dialUrl, deadlineMs = RESPONSE_DEADLINE_MS, tls, wrap, ...rest } = options
    const { signal, waitForServerMs = 0, retrying, silenceMs, ...ofChannel } = rest
    const urls = typeof url === 'string' ? [url] : url
    if (urls.length === 0) throw new RangeError('no address to connect to is given')
    if (silenceMs !== undefined && !(silenceMs >= MIN_SILENCE_MS && silenceMs <= MAX_SILENCE_MS)) {
      throw new RangeError(`\`silenceMs\` is a number from ${MIN_SILENCE_MS} to ${MAX_SILENCE_MS}`)
    }
    const sessions = new OutboundSessions({
      urls,
      credentials,
      clock,
      dial,
      deadlineMs,
      tls,
      wrap,
      newReader,
      silenceMs,
    })
    const open = (signal?: AbortSignal) => Consumer.open({ ...ofChannel, clock, deadlineMs, sessions }, signal)
    if (!(waitForServerMs > 0)) return open(signal)
    return whenUp(open, { clock, signal, peer: sessions.url, forMs: waitForServerMs, retrying })
  }
}

/** Repeats the attempt as long as the producer may just not be up yet. */
function whenUp<T>(
  attempt: (signal: AbortSignal) => Promise<T>,
  { retrying, ...options }: InTimeOptions & Pick<ConnectOptions, 'retrying'>,
): Promise<T> {
  const backoff = new Backoff(TO_PRODUCER)
  let lastError: Error | undefined
  return inTime({ ...options, lastError: () => lastError }, async (signal) => {
    for (let failed = 1; ; failed++) {
      try {
        return await attempt(signal)
      } catch (error) {
        if (signal.aborted || !isNotUp(error)) throw error
        lastError = error
        const delayMs = backoff.next()
        retrying?.({ attempt: failed, delayMs, error })
        await pause(options.clock, delayMs, signal)
        signal.throwIfAborted()
      }
    }
  })
}

interface OutboundOptions extends Security {
  readonly urls: readonly string[]
  readonly credentials: Credentials
  readonly dial: DialTransport
  readonly clock: ClientClock
  readonly deadlineMs: number
  readonly newReader: (() => LabelledReader) | undefined
  readonly silenceMs: number | undefined
}

/** The sessions of a consumer that connects to its producer. */
class OutboundSessions implements SessionSource {
  readonly #options: OutboundOptions
  /** The index of the address that was used last, or of the next one if that went silent. */
  #current = 0
  /** The token that was used last. */
  #token: string | undefined
  #withdrawn: ConnectionError | undefined

  constructor(options: OutboundOptions) {
    this.#options = options
  }

  get url(): string {
    return this.#options.urls.join(', ')
  }

  get hasSeveralAddresses(): boolean {
    return this.#options.urls.length > 1
  }

  async next(listener: ConnectionListener, signal?: AbortSignal): Promise<ClientSession> {
    const { urls } = this.#options
    const errors: Error[] = []
    for (const [offset] of urls.entries()) {
      const index = (this.#current + offset) % urls.length
      try {
        const session = await this.#open(urls[index] as string, listener, signal)
        this.#current = index
        return session
      } catch (error) {
        if (signal?.aborted || !isTransient(error)) throw error
        errors.push(error as Error)
      }
    }
    throw allFailed(errors)
  }

  #open(url: string, listener: ConnectionListener, signal: AbortSignal | undefined): Promise<ClientSession> {
    const { credentials, clock, deadlineMs, dial, tls, wrap = [], newReader } = this.#options
    const { silenceMs = this.hasSeveralAddresses ? SILENCE_OF_SEVERAL_MS : undefined } = this.#options
    const peer = `${url} as ${describeCredentials(credentials)}`
    return inTime({ clock, signal, peer }, async (signal) => {
      const proof = 'token' in credentials ? await this.#byToken(credentials, signal) : credentials
      const transport = await dial(url, signal, { tls, wrap })
      const reader = newReader?.()
      return openSession(transport, { peer, clock, deadlineMs, proof, wrap, signal, listener, reader, silenceMs })
    })
  }

  /**
   * Withdrawn credentials are not tried again [MON 3 NOTICE], but a function may provide a new token. An address that went silent
   * is tried last: where a machine hangs, its kernel still accepts connections, and each would take all the time of an attempt.
   */
  mayContinue(reason: ConnectionError): boolean {
    const { credentials, urls } = this.#options
    if (reason.code === 'SILENT') this.#current = (this.#current + 1) % urls.length
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

/** One error for those of all addresses, with the code of a mistake if there is one. */
function allFailed(errors: readonly Error[]): Error {
  const cause = errors.find((error) => !isNotUp(error)) ?? (errors.at(-1) as Error)
  if (errors.length === 1 || !(cause instanceof ConnectionError)) return cause
  return new ConnectionError(cause.code, errors.map(({ message }) => message).join('; '), { cause })
}
