/**
 * The parts of an AUTH exchange: a session runs an AuthExchange, AuthMethods picks the Mechanism (one per method of [MON 11]),
 * and the Mechanism does the work. server/kernel/accounts/users.ts implements Accounts.
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
  /** For peers that do not connect over loopback the account does not exist. */
  readonly loopbackOnly: boolean
  /** When it was added, milliseconds since 1970; 0 if that is not known. */
  readonly created: number
}

export interface Accounts {
  /** Both names are in prepared form (prepare.ts). */
  find(tenant: string, name: string): Account | undefined
  byId(id: number): Account | undefined
}

/** A client certificate that was verified against the operator's authorities. */
export interface PeerCertificate {
  /** The common name of the subject, which is the identity. */
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

/** Says which client certificates are valid now: one that was verified may have been revoked since. */
export interface Certificates {
  isTrusted(certificate: PeerCertificate): boolean
}

/** The proof a user logged in with: it may expire before the connection ends, and it may allow less than the user's role. */
export interface Credential {
  readonly method: string
  /** The id of an opaque token. */
  readonly token?: number | undefined
  /** The thumbprint of the key that a JWT was signed with (token/jwt-keys.ts). */
  readonly key?: string | undefined
  readonly certificate?: PeerCertificate | undefined
  /** Milliseconds since 1970. */
  readonly expires?: number | undefined
  /** Without it the credential allows everything that the user may do. */
  readonly scope?: Scope | undefined
}

export interface AuthPeer {
  readonly address: string
  /** The listener is bound to loopback. The peer's address alone proves nothing: it may be that of a proxy. */
  readonly loopback: boolean
  /** The same at another node of the cluster, which passes the connection on where nobody else can read it. The peer is not on this machine. */
  readonly nodeLoopback?: boolean | undefined
  readonly encrypted: boolean
  /** 32 bytes that only the two ends of this TLS 1.3 connection know (RFC 9266). */
  readonly exporter?: Uint8Array | undefined
  readonly certificate?: PeerCertificate | undefined
  /** True once the connection has ended: what it asked for need not be checked any more. */
  readonly isGone?: (() => boolean) | undefined
}

/** `continue` is answered with AUTH_NEEDED and `data`; the consumer continues with an empty method. */
export type AuthStep =
  | { readonly outcome: 'ok'; readonly account: Account; readonly credential: Credential }
  | { readonly outcome: 'continue'; readonly data: Uint8Array }
  | Failed
  | { readonly outcome: 'unsupported' }
  | { readonly outcome: 'invalid'; readonly detail: string }

/** Everything but the outcome and `waitMs` is for the operator: the peer only learns that it failed. */
export interface Failed {
  readonly outcome: 'failed'
  /** The canonical form of the identity that the peer claimed, if it claimed one. */
  readonly identity?: string | undefined
  /**
   * The proof was not checked, or its result not reported, because of too many failed attempts; in so many milliseconds the next
   * one is checked. What counts is what was tried under the identity, not whether it exists.
   */
  readonly waitMs?: number | undefined
  /** Why a token or certificate was refused, in a few words without secrets. */
  readonly reason?: string | undefined
}

/** One per connection, used for one step at a time. */
export interface AuthExchange {
  /** Reads `data` before it returns. Rejects with AuthError HASHER_BUSY (try again) or HASHER_CLOSED. */
  step(method: string, data: Uint8Array): Promise<AuthStep>
}

export interface Mechanism {
  readonly method: string
  isOffered(peer: AuthPeer): boolean
  begin(peer: AuthPeer): MechanismExchange
}

/** Ends with the first answer that is not `continue`; `step` is not called after that. */
export interface MechanismExchange {
  step(data: Uint8Array): AuthStep | Promise<AuthStep>
}

/**
 * The methods that a connection is offered, and the order of the steps of its exchanges [MON 6.4, 11]. A named method begins
 * an exchange and replaces one in progress; an empty one continues it.
 */
export class AuthMethods {
  readonly #mechanisms: readonly Mechanism[]

  /** `mechanisms` are ordered by preference. */
  constructor(mechanisms: readonly Mechanism[]) {
    this.#mechanisms = mechanisms
  }

  /** The methods this peer may use, the best first. */
  methods(peer: AuthPeer): string[] {
    return this.#offered(peer).map((mechanism) => mechanism.method)
  }

  /** Called for a new connection, and again after WRAP tls, which changes what is known of the peer. */
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
    // Only `continue` keeps an exchange: one that failed, or whose step threw, cannot be resumed.
    this.#current = undefined
    if (!current && method === '')
      return { outcome: 'invalid', detail: 'an empty method, but no exchange is in progress' }
    if (!current) return { outcome: 'unsupported' }
    const step = await current.step(data)
    if (step.outcome === 'continue') this.#current = current
    return step
  }

  #begin(method: string): MechanismExchange | undefined {
    return this.#offered.find((mechanism) => mechanism.method === method)?.begin(this.#peer)
  }
}
