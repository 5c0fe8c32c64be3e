/** How users prove who they are [MON 11], and whether what they proved it with is still good while they are connected. */
import type { Accounts, AuthExchange, AuthPeer, Certificates, Credential } from './mechanism.ts'
import { AuthMethods } from './mechanism.ts'
import { CertificateMechanism } from './mechanisms/certificate.ts'
import { PasswordMechanism } from './mechanisms/password.ts'
import { ScramMechanism } from './mechanisms/scram-sha-256.ts'
import { NO_TOKENS, type TokenLookup, TokenMechanism } from './mechanisms/token.ts'
import type { PasswordHasher } from './password.ts'
import type { Throttle } from './throttle.ts'
import type { JwtOptions } from './token/jwt.ts'

export interface AuthenticatorOptions {
  readonly accounts: Accounts
  readonly hasher: Pick<PasswordHasher, 'verify'>
  readonly throttle: Throttle
  /** Random, at least 16 bytes, kept over restarts: unknown users get their salt from it. */
  readonly serverSecret: Uint8Array
  /** What unknown users are told in SCRAM: that which passwords are stored with. */
  readonly iterations: number
  readonly plainOnLoopback: boolean
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Left out: nobody has opaque tokens. */
  readonly tokens?: TokenLookup | undefined
  /** Left out: no JWT is taken. */
  readonly jwt?: JwtOptions | undefined
  /** Left out: a certificate that TLS has verified is good until it expires. */
  readonly certificates?: Certificates | undefined
}

export class Authenticator {
  readonly #options: AuthenticatorOptions
  readonly #methods: AuthMethods

  constructor(options: AuthenticatorOptions) {
    this.#options = options
    this.#methods = new AuthMethods([
      new CertificateMechanism(options),
      new ScramMechanism('scram-sha-256-plus', options),
      new ScramMechanism('scram-sha-256', options),
      new TokenMechanism(options),
      new PasswordMechanism(options),
    ])
  }

  /** The methods this peer may use, the best first. */
  methods(peer: AuthPeer): string[] {
    return this.#methods.methods(peer)
  }

  /** For a new connection, and anew after WRAP tls, when the peer is another one. */
  begin(peer: AuthPeer): AuthExchange {
    return this.#methods.begin(peer)
  }

  /**
   * Why whoever logged in as this user, with this credential, may not stay; undefined while they may. Cheap enough to be
   * asked of every session every second. `nowMs`: milliseconds since 1970.
   */
  validity(userId: number, credential: Credential, nowMs: number): string | undefined {
    const { accounts, tokens = NO_TOKENS, jwt, certificates } = this.#options
    const { token, key, certificate, expires } = credential
    if (!accounts.byId(userId)) return 'the user was removed'
    if (token !== undefined && !tokens.byId(token)) return 'the token was revoked'
    if (key !== undefined && !jwt?.keys.has(key)) return 'the key that the token was signed with is no longer trusted'
    if (certificate && certificates?.isTrusted(certificate) === false) return 'the certificate is no longer trusted'
    if (expires !== undefined && nowMs >= expires) return `the ${certificate ? 'certificate' : 'token'} has expired`
    return undefined
  }
}
