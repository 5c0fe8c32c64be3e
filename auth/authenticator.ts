/** Authenticates users [MON 11], and checks during a connection whether the credential they used is still valid. */
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
  /** At least 16 random bytes that survive restarts: the salt of an unknown user is derived from them. */
  readonly serverSecret: Uint8Array
  /** The iteration count that SCRAM reports for unknown users: the one that passwords are stored with. */
  readonly iterations: number
  readonly plainOnLoopback: boolean
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Without it nobody has opaque tokens. */
  readonly tokens?: TokenLookup | undefined
  /** Without it no JWT is accepted. */
  readonly jwt?: JwtOptions | undefined
  /** Without it a certificate that TLS has verified is valid until it expires. */
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

  /** Called for a new connection, and again after WRAP tls, which changes what is known of the peer. */
  begin(peer: AuthPeer): AuthExchange {
    return this.#methods.begin(peer)
  }

  /**
   * The reason why a session of this user with this credential must end; undefined while it may continue. It is cheap enough
   * to be called for every session every second. `nowMs` is in milliseconds since 1970.
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
