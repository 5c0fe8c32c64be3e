/** The AUTH exchange of one connection [MON 6.3, 6.4, 11]: what is offered, how often one may fail, who it is in the end. */
import { AuthError } from '../../auth/errors.ts'
import type { AuthExchange, Credential, Failed, Peer } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import { MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../protocol/bytes/framer.ts'
import type { Capabilities } from '../../protocol/monitor/capabilities.ts'
import { PROTOCOL_MAJOR, PROTOCOL_MINOR } from '../../protocol/monitor/constants.ts'
import type { StatusName } from '../../protocol/monitor/status.ts'
import { StatusError } from '../core/errors.ts'
import type { AuthProvider } from './incoming-connection.ts'
import type { Producer } from './producer.ts'

const MAX_FAILURES = 3
/** How often an answer that waits for the disk looks whether that is full. */
const FULL_MS = 500

export type LoginStep =
  | { readonly outcome: 'ok'; readonly identity: Identity; readonly credential: Credential }
  | { readonly outcome: 'continue'; readonly data: Uint8Array }
  /** `closed`: this was one failure too many. */
  | { readonly outcome: 'refused' | 'closed'; readonly status: StatusName; readonly detail: string }

export class Login {
  readonly #producer: Producer
  readonly #door: AuthProvider
  #peer: Peer
  #exchange: AuthExchange
  /** Of the exchange under way, or the last one. */
  #method = ''
  #failures = 0

  constructor(producer: Producer, peer: Peer, door: AuthProvider = producer.authenticator) {
    this.#producer = producer
    this.#door = door
    this.#peer = peer
    this.#exchange = door.begin(peer)
  }

  /** Ends an exchange under way. */
  reset(): void {
    this.#exchange = this.#door.begin(this.#peer)
  }

  /** More is known of the peer: it is under TLS. */
  moved(facts: Partial<Peer>): void {
    this.#peer = { ...this.#peer, ...facts }
    this.reset()
  }

  capabilities(authenticated: boolean, layer: readonly string[]): Capabilities {
    return {
      major: PROTOCOL_MAJOR,
      minor: PROTOCOL_MINOR,
      auth: this.#door.methods(this.#peer),
      layer,
      extension: ['commit-through', 'gap', 'notice'],
      software: this.#producer.software,
      maxFrameBytes: authenticated ? MAX_FRAME_BYTES : MAX_FRAME_BYTES_BEFORE_AUTH,
    }
  }

  async step(method: string, data: Uint8Array): Promise<LoginStep> {
    if (method !== '') this.#method = method
    const step = await this.#step(method, data)
    switch (step.outcome) {
      case 'ok': {
        const { account, credential } = step
        return { outcome: 'ok', identity: this.#producer.accounts.identity(account), credential }
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

  /** The failure is in the audit log before anybody is told. One that was not looked at is only counted there. */
  async #failed({ identity = '', throttled = false, reason }: Failed): Promise<LoginStep> {
    const { failures, log } = this.#producer
    const { address } = this.#peer
    this.#failures++
    log.info({ peer: address, method: this.#method, failures: this.#failures, throttled, reason }, 'AUTH failed')
    failures.failed({ identity, address, method: this.#method, throttled })
    if (!throttled && !(await this.#isStored())) {
      log.warn({ peer: address }, 'the disk is full: an AUTH failure is answered before it is in the audit log')
    }
    const outcome = this.#failures >= MAX_FAILURES ? 'closed' : 'refused'
    return { outcome, status: 'AUTH_FAILED', detail: 'not admitted' }
  }

  /** Waits until what was recorded is stored, or, giving false, the disk is found to be full. */
  #isStored(): Promise<boolean> {
    const { journal, host, clock } = this.#producer
    if (host.refusing === 'full') return Promise.resolve(false)
    return new Promise((resolve) => {
      const timer = clock.setInterval(() => {
        if (host.refusing === 'full') done(false)
      }, FULL_MS)
      const done = (isStored: boolean): void => {
        clock.clear(timer)
        resolve(isStored)
      }
      journal.whenStored().then(
        () => done(true),
        () => done(false),
      )
    })
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
