/** The sessions of a consumer that dials. */
import type { ClientClock } from './clock.ts'
import { type Credentials, nameOf, type Proof, type TokenCredentials, tokenOf } from './credentials.ts'
import { type ConnectionError, isPassing } from './errors.ts'
import type { Security } from './security.ts'
import { inTime, openSession, type PutOn, type Session, type SessionListener, type Sessions } from './session.ts'
import type { Transport } from './transport.ts'

/**
 * Opens a transport, which can take the layers of `security.wrap`. Throws ConnectionError; once `signal` is aborted it
 * throws and leaves nothing open.
 */
export type Dial = (url: string, signal: AbortSignal, security: Security) => Promise<Transport>

export interface DialledOptions extends Security {
  readonly url: string
  readonly credentials: Credentials
  readonly dial: Dial
  readonly putOn: PutOn
  readonly clock: ClientClock
  readonly deadlineMs: number
}

export class DialledSessions implements Sessions {
  readonly #options: DialledOptions
  readonly #peer: string
  /** The one that was used last. */
  #token: string | undefined
  #withdrawn: ConnectionError | undefined

  constructor(options: DialledOptions) {
    this.#options = options
    this.#peer = `${options.url} as ${nameOf(options.credentials)}`
  }

  get url(): string {
    return this.#options.url
  }

  next(listener: SessionListener, signal?: AbortSignal): Promise<Session> {
    const { url, credentials, clock, deadlineMs, dial, putOn, tls, wrap = [] } = this.#options
    const peer = this.#peer
    return inTime({ clock, signal, peer }, async (signal) => {
      const proof = 'token' in credentials ? await this.#byToken(credentials, signal) : credentials
      const transport = await dial(url, signal, { tls, wrap })
      return openSession(transport, { peer, clock, deadlineMs, proof, wrap, putOn, signal, listener })
    })
  }

  /** What was withdrawn is not tried again [MON 3 NOTICE]; another token may be as good as that was. */
  goesOn(reason: ConnectionError): boolean {
    const { credentials } = this.#options
    const isRenewed = 'token' in credentials && typeof credentials.token === 'function'
    if (reason.code !== 'WITHDRAWN' || !isRenewed) return isPassing(reason)
    this.#withdrawn = reason
    return true
  }

  /** Before anything is dialled: the producer gives a login ten seconds too. */
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
