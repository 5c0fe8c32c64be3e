/**
 * The method `certificate` [MON 11]: one step without data. TLS has already verified the client's certificate and that the peer
 * has its key; the common name of its subject is the identity.
 */

import { formatIdentity } from '../identity.ts'
import { parseExactIdentity } from '../login-attempt.ts'
import type { Accounts, AuthPeer, AuthStep, Certificates, Failed, Mechanism, MechanismExchange } from '../mechanism.ts'

export interface CertificateMechanismOptions {
  readonly accounts: Pick<Accounts, 'find'>
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  readonly certificates?: Certificates | undefined
}

export class CertificateMechanism implements Mechanism {
  readonly method = 'certificate'
  readonly #options: CertificateMechanismOptions

  constructor(options: CertificateMechanismOptions) {
    this.#options = options
  }

  isOffered(peer: AuthPeer): boolean {
    return peer.certificate !== undefined
  }

  begin(peer: AuthPeer): MechanismExchange {
    return { step: (data) => this.#step(peer, data) }
  }

  #step({ certificate }: AuthPeer, data: Uint8Array): AuthStep {
    if (data.length > 0) return { outcome: 'invalid', detail: 'certificate takes no data' }
    const who = certificate && parseExactIdentity(certificate.subject)
    if (!who) return failed('its common name is not a user name')
    const { accounts, certificates, wallMs } = this.#options
    const identity = formatIdentity(who)
    const account = accounts.find(who.tenant, who.name)
    if (!account || account.loopbackOnly) return failed('there is no such user', identity)
    if (wallMs() >= certificate.validUntil) return failed('it has expired', identity)
    if (certificates?.isTrusted(certificate) === false) return failed('it is no longer trusted', identity)
    const credential = { method: this.method, certificate, expires: certificate.validUntil }
    return { outcome: 'ok', account, credential }
  }
}

function failed(reason: string, identity?: string): Failed {
  return { outcome: 'failed', identity, reason }
}
