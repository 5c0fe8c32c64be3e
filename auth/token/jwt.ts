/**
 * JSON Web Tokens that another system has issued (RFC 7519), verified by jose against keys that the operator named.
 * What the token says of its own key (`jwk`, `jku`, `x5c`) is not looked at, and one token costs at most one verification.
 */
import { decodeProtectedHeader, errors, jwtVerify } from 'jose'
import { AuthError } from '../errors.ts'
import { parseScope, type Scope } from '../permissions.ts'
import type { JwtKeys } from './jwt-keys.ts'

/** How far the clock of the issuer may be ahead of ours, or behind. */
const TOLERANCE_S = 5

export interface JwtOptions {
  readonly keys: JwtKeys
  /** What `iss` has to be. */
  readonly issuer: string
  /** What `aud` has to be or hold. */
  readonly audience: string
  /** The claim that names the user. */
  readonly identity: string
}

export interface VerifiedJwt {
  /** As it was signed: `tenant/user` or `user`. */
  readonly identity: string
  /** The thumbprint of the key. */
  readonly key: string
  /** Milliseconds since 1970. */
  readonly expires: number
  readonly scope: Scope | undefined
}

/** `refused`: why, for the operator; it holds nothing of the token. */
export type JwtResult = VerifiedJwt | { readonly refused: string }

/** Never rejects for what is in `token`. */
export async function verifyJwt(token: string, options: JwtOptions, nowMs: number): Promise<JwtResult> {
  try {
    const { alg = '', kid, crit } = decodeProtectedHeader(token)
    if (crit !== undefined) return { refused: 'the token demands extensions that nobody here knows' }
    const key = options.keys.find(alg, kid)
    if (!key) return { refused: 'no key fits what the token was signed with' }
    const { payload } = await jwtVerify(token, key.key, {
      algorithms: [...key.algorithms],
      issuer: options.issuer,
      audience: options.audience,
      requiredClaims: ['iss', 'aud', 'exp'],
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(nowMs),
    })
    const identity = Object.hasOwn(payload, options.identity) ? payload[options.identity] : undefined
    if (typeof identity !== 'string') return { refused: `the claim ${options.identity} names no user` }
    const expires = (payload.exp! + TOLERANCE_S) * 1000
    return { identity, key: key.id, expires, scope: scopeOf(payload['scope']) }
  } catch (error) {
    return { refused: whyRefused(error) }
  }
}

/** Left out: everything the user may. An empty list allows nothing; what is no list of lines is no scope at all. */
function scopeOf(claim: unknown): Scope | undefined {
  if (claim === undefined) return undefined
  if (!Array.isArray(claim) || !claim.every((line) => typeof line === 'string')) {
    throw new AuthError('BAD_SCOPE', 'the claim scope is no array of lines')
  }
  return parseScope(claim.join('\n')) ?? []
}

/** Messages of jose name claims and checks, never values. What else is thrown is about the shape of what was signed. */
function whyRefused(error: unknown): string {
  if (error instanceof errors.JOSEError || error instanceof AuthError) return error.message
  return 'the token cannot be read'
}
