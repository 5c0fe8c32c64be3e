/**
 * The method `token` [MON 11]: one step, the token's bytes; an opaque one, or a JSON Web Token where keys are configured.
 * Guesses are not counted by identity: an opaque token says none, and what a token proves cannot be guessed.
 */
import { createHash } from 'node:crypto'
import { AuthError } from '../errors.ts'
import { whoIsExactly } from '../guess.ts'
import { formatIdentity } from '../identity.ts'
import type { Accounts, AuthStep, Failed, Mechanism, MechanismExchange, Peer } from '../mechanism.ts'
import { parseScope, type Scope } from '../scope.ts'
import { type JwtOptions, verifyJwt } from '../token/jwt.ts'
import { NO_TOKENS, OPAQUE_TOKEN, type TokenLookup } from '../tokens.ts'
import { mayShowSecrets } from './password.ts'

const MAX_TOKEN_BYTES = 16_384

const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/

export interface TokenMechanismOptions {
  readonly accounts: Accounts
  readonly plainOnLoopback: boolean
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  readonly tokens?: TokenLookup | undefined
  readonly jwt?: JwtOptions | undefined
}

export class TokenMechanism implements Mechanism {
  readonly method = 'token'
  readonly #options: TokenMechanismOptions

  /** Throws TypeError where tokens of any issuer, or for anybody, would be taken. */
  constructor(options: TokenMechanismOptions) {
    const { jwt } = options
    if (jwt && (jwt.issuer === '' || jwt.audience === '')) throw new TypeError('JWT needs an issuer and an audience')
    this.#options = options
  }

  isOffered(peer: Peer): boolean {
    return mayShowSecrets(peer, this.#options.plainOnLoopback)
  }

  begin(): MechanismExchange {
    return { step: (data) => this.#step(data) }
  }

  #step(data: Uint8Array): AuthStep | Promise<AuthStep> {
    if (data.length > MAX_TOKEN_BYTES) return failed(`it has more than ${MAX_TOKEN_BYTES} bytes`)
    const text = Buffer.from(data).toString('latin1')
    if (OPAQUE_TOKEN.test(text)) return this.#opaque(data)
    const { jwt } = this.#options
    return jwt && JWT.test(text) ? this.#jwt(text, jwt) : failed('it is no token')
  }

  #opaque(data: Uint8Array): AuthStep {
    const { tokens = NO_TOKENS, accounts, wallMs } = this.#options
    const token = tokens.find(createHash('sha256').update(data).digest())
    if (!token) return failed('there is no such token')
    const account = accounts.byId(token.user)
    const identity = account && formatIdentity(account)
    if (!account || account.loopbackOnly) return failed('there is no such user', identity)
    if (token.expires !== undefined && wallMs() >= token.expires) return failed('it has expired', identity)
    const scope = readScope(token.scope)
    if ('refused' in scope) return failed(scope.refused, identity)
    const credential = { method: this.method, token: token.id, expires: token.expires, scope: scope.scope }
    return { outcome: 'ok', account, credential }
  }

  async #jwt(text: string, options: JwtOptions): Promise<AuthStep> {
    const { accounts, wallMs } = this.#options
    const verified = await verifyJwt(text, options, wallMs())
    if ('refused' in verified) return failed(verified.refused)
    const who = whoIsExactly(verified.identity)
    if (!who) return failed('it names nobody who could be a user')
    const account = accounts.find(who.tenant, who.name)
    if (!account || account.loopbackOnly) return failed('there is no such user', formatIdentity(who))
    const { key, expires, scope } = verified
    return { outcome: 'ok', account, credential: { method: this.method, key, expires, scope } }
  }
}

/** What is stored was read before it was stored; should it be of another version, it must not read as "everything". */
function readScope(text: string): { readonly scope: Scope | undefined } | { readonly refused: string } {
  try {
    return { scope: parseScope(text) }
  } catch (error) {
    if (error instanceof AuthError) return { refused: error.message }
    throw error
  }
}

function failed(reason: string, identity?: string): Failed {
  return { outcome: 'failed', identity, reason }
}
