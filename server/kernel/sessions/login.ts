/** The login of one connection [MON 6.3, 6.4, 11]: methods on offer, AUTH exchange, number of failures, and identity in the end. */
import { AuthError } from '../../../auth/errors.ts'
import { parseIdentityOrNone } from '../../../auth/login-attempt.ts'
import type { AuthExchange, AuthPeer, Credential, Failed } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import { MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../../protocol/bytes/framer.ts'
import type { Capabilities, ProducerName } from '../../../protocol/monitor/capabilities.ts'
import { PROTOCOL_MAJOR, PROTOCOL_MINOR } from '../../../protocol/monitor/constants.ts'
import type { StatusName } from '../../../protocol/monitor/status.ts'
import { whenStoredOrFull } from '../channels/journal.ts'
import { StatusError } from '../core/errors.ts'
import type { SessionContext } from './context.ts'
import type { AuthProvider, IncomingConnection } from './incoming-connection.ts'

const EXTENSIONS = ['channel-name', 'commit-through', 'element-time', 'gap', 'notice']
const MAX_FAILURES = 3
/** Recorded in the audit log instead of a name that nobody has. */
const UNKNOWN = 'unknown'

export type LoginStep =
  | { readonly outcome: 'ok'; readonly identity: Identity; readonly credential: Credential }
  | { readonly outcome: 'continue'; readonly data: Uint8Array }
  /** The outcome is `closed` after one failure too many. */
  | { readonly outcome: 'refused' | 'closed'; readonly status: StatusName; readonly detail: string }

export class SessionLogin {
  readonly #context: SessionContext
  readonly #auth: AuthProvider
  /** What the producer is called before AUTH, where it announces itself. */
  readonly #announced: ProducerName | undefined
  #peer: AuthPeer
  #exchange: AuthExchange
  /** The method of the current exchange, or of the last one. */
  #method = ''
  #failures = 0

  constructor(
    context: SessionContext,
    peer: AuthPeer,
    { outbound, announced }: Pick<IncomingConnection, 'outbound' | 'announced'> = {},
  ) {
    this.#context = context
    this.#auth = (outbound ?? announced)?.auth ?? context.authenticator
    this.#announced = announced?.producer
    this.#peer = peer
    this.#exchange = this.#auth.begin(peer)
  }

  /** Abandons the current exchange. */
  reset(): void {
    this.#exchange = this.#auth.begin(this.#peer)
  }

  /** Adds facts about the peer, which a TLS handshake has shown. */
  learn(facts: Partial<AuthPeer>): void {
    this.#peer = { ...this.#peer, ...facts }
    this.reset()
  }

  /**
   * `identity`: undefined before AUTH. `dialled`: the channel, on a connection that begins without AUTH. `watches`: whether the
   * credential reads and does nothing else.
   */
  capabilities(
    identity: Identity | undefined,
    layer: readonly string[],
    { dialled, watches = false }: { readonly dialled?: number | undefined; readonly watches?: boolean } = {},
  ): Capabilities {
    const { generation, self } = this.#context
    const authenticated = identity !== undefined
    return {
      major: PROTOCOL_MAJOR,
      minor: PROTOCOL_MINOR,
      auth: this.#auth.methods(this.#peer),
      layer,
      extension: [...EXTENSIONS, ...(dialled === undefined ? [] : ['dialled']), ...(watches ? ['watch-only'] : [])],
      software: this.#context.software,
      maxFrameBytes: authenticated ? MAX_FRAME_BYTES : MAX_FRAME_BYTES_BEFORE_AUTH,
      ...(dialled !== undefined && { channel: dialled }),
      ...(!authenticated && this.#announced && { producer: this.#announced }),
      ...(authenticated && { generation, producer: self.name, below: self.below(identity) }),
    }
  }

  async step(method: string, data: Uint8Array): Promise<LoginStep> {
    if (method !== '') this.#method = method
    const step = await this.#step(method, data)
    switch (step.outcome) {
      case 'ok': {
        const { account, credential } = step
        return { outcome: 'ok', identity: this.#context.accounts.identity(account), credential }
      }
      case 'continue':
        return step
      case 'unsupported':
        return {
          outcome: 'refused',
          status: 'UNSUPPORTED',
          detail: `the method ${method} is not offered on this connection`,
        }
      case 'invalid':
        return { outcome: 'refused', status: 'INVALID_ARGUMENT', detail: step.detail }
      case 'failed':
        return this.#failed(step)
    }
  }

  /** Records the failure in the audit log before it is answered. A throttled one is only counted there. */
  async #failed({ identity = '', waitMs, reason }: Failed): Promise<LoginStep> {
    const { failures, log } = this.#context
    const { address } = this.#peer
    const throttled = waitMs !== undefined
    this.#failures++
    log.info({ peer: address, method: this.#method, failures: this.#failures, throttled, reason }, 'AUTH failed')
    failures.failed({ identity: this.#recorded(identity), address, method: this.#method, throttled })
    if (!throttled && !(await whenStoredOrFull(this.#context))) {
      log.warn({ peer: address }, 'the disk is full: an AUTH failure is answered before it is in the audit log')
    }
    const outcome = this.#failures >= MAX_FAILURES ? 'closed' : 'refused'
    return { outcome, status: 'AUTH_FAILED', detail: throttled ? throttledDetail(waitMs) : 'not admitted' }
  }

  /** A name that nobody has may be a password that was typed into the wrong field: it is not written down. */
  #recorded(identity: string): string {
    if (identity === '') return ''
    const who = parseIdentityOrNone(identity)
    return who && this.#context.accounts.find(who.tenant, who.name) ? identity : UNKNOWN
  }

  async #step(method: string, data: Uint8Array): ReturnType<AuthExchange['step']> {
    try {
      return await this.#exchange.step(method, data)
    } catch (error) {
      if (error instanceof AuthError && error.code === 'HASHER_BUSY') {
        throw new StatusError('BUSY', 'too many logins at once; try again in a second')
      }
      throw error
    }
  }
}

function throttledDetail(waitMs: number): string {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000))
  return `too many logins have failed: the next one is checked in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`
}
