/**
 * What the parts of an AUTH exchange know of each other: a session runs an AuthExchange, the Authenticator leads it,
 * a Mechanism (one per method of [MON 11]) does the work. Storage implements Accounts.
 */
import type { Scope } from './permissions.ts'
import type { ScramVerifier } from './scram/keys.ts'

export interface Account {
  /** Never given to another account, not even after this one is removed. */
  readonly id: number
  readonly tenant: string
  readonly name: string
  readonly role: string
  readonly bcrypt: string | undefined
  readonly scram: ScramVerifier | undefined
  /** From anywhere but loopback there is no such account. */
  readonly loopbackOnly: boolean
}

export interface Accounts {
  /** Both names in prepared form (identity.ts). */
  find(tenant: string, name: string): Account | undefined
  byId(id: number): Account | undefined
}

/** A client certificate that was verified against the operator's authorities. */
export interface PeerCertificate {
  /** The common name of its subject: the identity. */
  readonly subject: string
  /** Hexadecimal, upper case, as X.509 tools show it. */
  readonly serial: string
  /** SHA-256 of the certificate, hexadecimal with colons. */
  readonly fingerprint: string
  /** DER. */
  readonly raw: Uint8Array
  /** Milliseconds since 1970. */
  readonly validUntil: number
}

/** Which client certificates are good at this moment: what was verified once may be revoked since. */
export interface Certificates {
  isTrusted(certificate: PeerCertificate): boolean
}

/** With what somebody proved who it is: what may end before the connection does, and what may be narrower than the user. */
export interface Credential {
  readonly method: string
  /** The id of an opaque token. */
  readonly token?: number | undefined
  /** The thumbprint of the key that a JWT was signed with (token/jwt-keys.ts). */
  readonly key?: string | undefined
  readonly certificate?: PeerCertificate | undefined
  /** Milliseconds since 1970. */
  readonly expires?: number | undefined
  /** Left out: everything the user may. */
  readonly scope?: Scope | undefined
}

export interface AuthPeer {
  readonly address: string
  /** The listener is bound to loopback; what the peer's address looks like proves nothing behind a proxy. */
  readonly loopback: boolean
  readonly encrypted: boolean
  /** 32 bytes that only the two ends of this TLS 1.3 connection know (RFC 9266). */
  readonly exporter?: Uint8Array | undefined
  readonly certificate?: PeerCertificate | undefined
}

/** `continue` is answered AUTH_NEEDED with `data`; the consumer goes on with an empty method. */
export type AuthStep =
  | { readonly outcome: 'ok'; readonly account: Account; readonly credential: Credential }
  | { readonly outcome: 'continue'; readonly data: Uint8Array }
  | Failed
  | { readonly outcome: 'unsupported' }
  | { readonly outcome: 'invalid'; readonly detail: string }

/** What stands beside the outcome is for the operator's eyes: the peer only ever learns that it failed. */
export interface Failed {
  readonly outcome: 'failed'
  /** Who the peer said to be, in the one spelling, where it said so. */
  readonly identity?: string | undefined
  /** Not looked at, or not told what was seen: too many guesses before. */
  readonly throttled?: boolean | undefined
  /** What was wrong with a token or certificate, in a few words without secrets. */
  readonly reason?: string | undefined
}

/** One per connection, used for one step at a time. */
export interface AuthExchange {
  /** `data` is read before this returns. Rejects with AuthError HASHER_BUSY (try again) or HASHER_CLOSED. */
  step(method: string, data: Uint8Array): Promise<AuthStep>
}

export interface Mechanism {
  readonly method: string
  isOffered(peer: AuthPeer): boolean
  begin(peer: AuthPeer): MechanismExchange
}

/** Ends with its first answer that is not `continue`; is not asked again after that. */
export interface MechanismExchange {
  step(data: Uint8Array): AuthStep | Promise<AuthStep>
}

/** The list of methods that one listener offers [MON 6.4, 11]. */
export class AuthMethods {
  readonly #mechanisms: readonly Mechanism[]

  /** The best first. */
  constructor(mechanisms: readonly Mechanism[]) {
    this.#mechanisms = mechanisms
  }

  /** The methods this peer may use, the best first. */
  methods(peer: AuthPeer): string[] {
    return this.#offered(peer).map((mechanism) => mechanism.method)
  }

  /** For a new connection, and anew after WRAP tls, when the peer is another one. */
  begin(peer: AuthPeer): AuthExchange {
    return new Exchange(this.#offered(peer), peer)
  }

  #offered(peer: AuthPeer): Mechanism[] {
    return this.#mechanisms.filter((mechanism) => mechanism.isOffered(peer))
  }
}

class Exchange implements AuthExchange {
  readonly #offered: readonly Mechanism[]
  readonly #peer: AuthPeer
  #current: MechanismExchange | undefined

  constructor(offered: readonly Mechanism[], peer: AuthPeer) {
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
