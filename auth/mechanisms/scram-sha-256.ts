/**
 * The method `scram-sha-256` [MON 11]: client-first, client-final, and an empty third step.
 * After the proof was right the consumer still has to check ours: it is authenticated only by that third step.
 */
import { Guess, whoIs } from '../guess.ts'
import type { Accounts, AuthStep, Mechanism, MechanismExchange, Peer } from '../mechanism.ts'
import { ScramServer } from '../scram/server.ts'
import type { Throttle } from '../throttle.ts'

export interface ScramMechanismOptions {
  readonly accounts: Accounts
  readonly throttle: Throttle
  readonly serverSecret: Uint8Array
  readonly iterations: number
}

export class ScramMechanism implements Mechanism {
  readonly method = 'scram-sha-256'
  readonly #options: ScramMechanismOptions

  constructor(options: ScramMechanismOptions) {
    this.#options = options
  }

  isOffered(): boolean {
    return true
  }

  begin(peer: Peer): MechanismExchange {
    return new ScramExchange(peer, this.#options)
  }
}

class ScramExchange implements MechanismExchange {
  readonly #server: ScramServer
  #guess: Guess | undefined
  #isProven = false

  constructor(peer: Peer, { accounts, throttle, serverSecret, iterations }: ScramMechanismOptions) {
    this.#server = new ScramServer({
      serverSecret,
      iterations,
      find: (username) => {
        const who = whoIs(username)
        if (!who) return undefined
        const guess = new Guess(who, peer, accounts, throttle)
        this.#guess = guess
        return guess.isThrottled ? undefined : { identity: guess.identity, verifier: guess.account?.scram }
      },
    })
  }

  step(data: Uint8Array): AuthStep {
    const guess = this.#guess
    if (!guess) return this.#first(data)
    return this.#isProven ? acknowledged(guess, data) : this.#final(guess, data)
  }

  #first(data: Uint8Array): AuthStep {
    const step = this.#server.step(data)
    return step.outcome === 'continue' ? { outcome: 'continue', data: step.data } : { outcome: 'failed' }
  }

  #final(guess: Guess, data: Uint8Array): AuthStep {
    if (guess.isThrottled) return { outcome: 'failed' }
    const step = this.#server.step(data)
    if (step.outcome !== 'proven') return guess.failed()
    this.#isProven = true
    return { outcome: 'continue', data: step.data }
  }
}

function acknowledged(guess: Guess, data: Uint8Array): AuthStep {
  if (data.length > 0) return { outcome: 'invalid', detail: 'the last step of scram-sha-256 has empty data' }
  return guess.proven('scram-sha-256')
}
