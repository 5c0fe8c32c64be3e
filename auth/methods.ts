/**
 * A list of methods as one connection meets it: which of them it is offered, and how the steps of its exchanges follow
 * each other [MON 6.4, 11]. A method that is named begins an exchange, whatever was under way; an empty one goes on with it.
 */
import type { AuthExchange, AuthStep, Mechanism, MechanismExchange, Peer } from './mechanism.ts'

export class Methods {
  readonly #mechanisms: readonly Mechanism[]

  /** The best first. */
  constructor(mechanisms: readonly Mechanism[]) {
    this.#mechanisms = mechanisms
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
