/** The AUTH exchange of one connection [MON 6.3, 6.4, 11]: what is offered, how often one may fail, who it is in the end. */
import { AuthError } from '../../auth/errors.ts'
import type { AuthExchange, Credential, Peer } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import { MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../protocol/bytes/framer.ts'
import type { Capabilities } from '../../protocol/monitor/capabilities.ts'
import { PROTOCOL_MAJOR, PROTOCOL_MINOR } from '../../protocol/monitor/constants.ts'
import type { StatusName } from '../../protocol/monitor/status.ts'
import { StatusError } from '../errors.ts'
import type { Door } from './arrival.ts'
import type { Producer } from './producer.ts'

const MAX_FAILURES = 3

export type LoginStep =
  | { readonly outcome: 'ok'; readonly identity: Identity; readonly credential: Credential }
  | { readonly outcome: 'continue'; readonly data: Uint8Array }
  /** `closed`: this was one failure too many. */
  | { readonly outcome: 'refused' | 'closed'; readonly status: StatusName; readonly detail: string }

export class Login {
  readonly #producer: Producer
  readonly #door: Door
  readonly #peer: Peer
  #exchange: AuthExchange
  #failures = 0

  constructor(producer: Producer, peer: Peer, door: Door = producer.authenticator) {
    this.#producer = producer
    this.#door = door
    this.#peer = peer
    this.#exchange = door.begin(peer)
  }

  /** Ends an exchange under way. */
  reset(): void {
    this.#exchange = this.#door.begin(this.#peer)
  }

  capabilities(authenticated: boolean): Capabilities {
    return {
      major: PROTOCOL_MAJOR,
      minor: PROTOCOL_MINOR,
      auth: this.#door.methods(this.#peer),
      layer: [],
      extension: ['commit-through', 'gap', 'notice'],
      software: this.#producer.software,
      maxFrameBytes: authenticated ? MAX_FRAME_BYTES : MAX_FRAME_BYTES_BEFORE_AUTH,
    }
  }

  async step(method: string, data: Uint8Array): Promise<LoginStep> {
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
        return this.#failed()
    }
  }

  #failed(): LoginStep {
    this.#failures++
    this.#producer.log.info({ peer: this.#peer.address, failures: this.#failures }, 'AUTH failed')
    const outcome = this.#failures >= MAX_FAILURES ? 'closed' : 'refused'
    return { outcome, status: 'AUTH_FAILED', detail: 'not admitted' }
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
