/**
 * The method `token` [MON 11]: one step, the token's bytes; an opaque one, or a JSON Web Token where keys are configured.
 * Guesses are not counted by identity: an opaque token says none, and what a token proves cannot be guessed.
 */
import { createHash } from 'node:crypto'
import { AuthError } from '../errors.ts'
import { formatIdentity } from '../identity.ts'
import { parseExactIdentity } from '../login-attempt.ts'
import type { Accounts, AuthPeer, AuthStep, Failed, Mechanism, MechanismExchange } from '../mechanism.ts'
import { parseScope, type Scope } from '../permissions.ts'
import { type JwtOptions, verifyJwt } from '../token/jwt.ts'
import { mayShowSecrets } from './password.ts'

export interface OpaqueToken {
  readonly id: number
  /** The id of the account it stands for. */
  readonly user: number
  /** What it may be used for, as `parseScope` reads it; empty: everything its user may. */
  readonly scope: string
  /** Milliseconds since 1970; undefined: never. */
  readonly expires: number | undefined
}

/** Those that were not revoked. */
export interface TokenLookup {
  /** `hash` is the SHA-256 of the token's bytes. */
  find(hash: Uint8Array): OpaqueToken | undefined
  byId(id: number): OpaqueToken | undefined
}

/** Nobody has one. */
export const NO_TOKENS: TokenLookup = { find: () => undefined, byId: () => undefined }

/** What an opaque token looks like; anything weaker is not one, even if somebody had its hash stored. */
export const OPAQUE_TOKEN = /^cnb_[A-Za-z0-9_-]{43}$/

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

  isOffered(peer: AuthPeer): boolean {
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
    const who = parseExactIdentity(verified.identity)
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
