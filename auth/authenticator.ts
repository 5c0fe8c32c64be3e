/**
 * Which methods a peer is offered, and how the steps of one connection follow each other [MON 6.4, 11].
 * A method that is named begins an exchange, whatever was under way; an empty one goes on with it.
 */
import type { Accounts, AuthExchange, AuthStep, Mechanism, MechanismExchange, Peer } from './mechanism.ts'
import { PasswordMechanism } from './mechanisms/password.ts'
import { ScramMechanism } from './mechanisms/scram-sha-256.ts'
import type { PasswordHasher } from './password.ts'
import type { Throttle } from './throttle.ts'

export interface AuthenticatorOptions {
  readonly accounts: Accounts
  readonly hasher: Pick<PasswordHasher, 'verify'>
  readonly throttle: Throttle
  /** Random, at least 16 bytes, kept over restarts: unknown users get their salt from it. */
  readonly serverSecret: Uint8Array
  /** What unknown users are told in SCRAM: that which passwords are stored with. */
  readonly iterations: number
  readonly plainOnLoopback: boolean
}

export class Authenticator {
  readonly #mechanisms: readonly Mechanism[]

  constructor(options: AuthenticatorOptions) {
    this.#mechanisms = [new ScramMechanism(options), new PasswordMechanism(options)]
  }

  /** The methods this peer may use, the best first. */
  methods(peer: Peer): string[] {
    return this.#offered(peer).map((mechanism) => mechanism.method)
  }

  /** For a new connection, and anew after WRAP tls, when the peer is another one. */
  begin(peer: Peer): AuthExchange {
    return new Exchange(this.#offered(peer), peer)
  }

  #offered(peer: Peer): Mechanism[] {
    return this.#mechanisms.filter((mechanism) => mechanism.isOffered(peer))
  }
}

class Exchange implements AuthExchange {
  readonly #offered: readonly Mechanism[]
  readonly #peer: Peer
  #current: MechanismExchange | undefined

  constructor(offered: readonly Mechanism[], peer: Peer) {
    this.#offered = offered
    this.#peer = peer
  }

  async step(method: string, data: Uint8Array): Promise<AuthStep> {
    const current = method === '' ? this.#current : this.#begin(method)
    // Only `continue` keeps an exchange: one that failed, or whose step threw, cannot be taken up again.
    this.#current = undefined
    if (!current && method === '') return { outcome: 'invalid', detail: 'an empty method, and no exchange under way' }
    if (!current) return { outcome: 'unsupported' }
    const step = await current.step(data)
    if (step.outcome === 'continue') this.#current = current
    return step
  }

  #begin(method: string): MechanismExchange | undefined {
    return this.#offered.find((mechanism) => mechanism.method === method)?.begin(this.#peer)
  }
}
