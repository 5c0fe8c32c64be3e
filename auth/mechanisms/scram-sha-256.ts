/**
 * The methods `scram-sha-256` and `scram-sha-256-plus` [MON 11]: client-first, client-final, and an empty third step.
 * After a correct proof the consumer still has to check the server's: the third step confirms that and authenticates it.
 */
import { LoginAttempt, parseIdentityOrNone } from '../login-attempt.ts'
import type { Accounts, AuthPeer, AuthStep, Mechanism, MechanismExchange } from '../mechanism.ts'
import { ScramServer } from '../scram/server.ts'
import type { Throttle } from '../throttle.ts'

export interface ScramMechanismOptions {
  readonly accounts: Pick<Accounts, 'find'>
  readonly throttle: Throttle
  /** At least 16 random bytes that survive restarts: the salt of an unknown user is derived from them. */
  readonly serverSecret: Uint8Array
  /** The iteration count reported for unknown users: the one that passwords are stored with. */
  readonly iterations: number
}

type Method = 'scram-sha-256' | 'scram-sha-256-plus'

export class ScramMechanism implements Mechanism {
  readonly method: Method
  readonly #options: ScramMechanismOptions

  constructor(method: Method, options: ScramMechanismOptions) {
    this.method = method
    this.#options = options
  }

  /** Channel binding requires TLS 1.3. RFC 9266 */
  isOffered(peer: AuthPeer): boolean {
    return this.method === 'scram-sha-256' || peer.exporter !== undefined
  }

  begin(peer: AuthPeer): MechanismExchange {
    return new ScramExchange(this.method, peer, this.#options)
  }
}

class ScramExchange implements MechanismExchange {
  readonly #method: Method
  readonly #server: ScramServer
  #guess: LoginAttempt | undefined
  #isProven = false

  constructor(method: Method, peer: AuthPeer, { accounts, throttle, serverSecret, iterations }: ScramMechanismOptions) {
    this.#method = method
    this.#server = new ScramServer({
      serverSecret,
      iterations,
      exporter: peer.exporter,
      isBound: method === 'scram-sha-256-plus',
      find: (username) => {
        const who = parseIdentityOrNone(username)
        if (!who) return undefined
        const guess = new LoginAttempt(who, peer, accounts, throttle)
        this.#guess = guess
        return guess.isThrottled ? undefined : { identity: guess.identity, verifier: guess.account?.scram }
      },
    })
  }

  step(data: Uint8Array): AuthStep {
    const guess = this.#guess
    if (!guess) return this.#first(data)
    return this.#isProven ? this.#acknowledged(guess, data) : this.#final(guess, data)
  }

  #first(data: Uint8Array): AuthStep {
    const step = this.#server.step(data)
    if (step.outcome === 'continue') return { outcome: 'continue', data: step.data }
    return this.#guess ? this.#guess.throttled() : { outcome: 'failed' }
  }

  #final(guess: LoginAttempt, data: Uint8Array): AuthStep {
    if (guess.isThrottled) return guess.throttled()
    const step = this.#server.step(data)
    if (step.outcome !== 'proven') return guess.failed()
    this.#isProven = true
    return { outcome: 'continue', data: step.data }
  }

  #acknowledged(guess: LoginAttempt, data: Uint8Array): AuthStep {
    if (data.length > 0) return { outcome: 'invalid', detail: `the last step of ${this.#method} has empty data` }
    return guess.succeeded(this.#method)
  }
}
