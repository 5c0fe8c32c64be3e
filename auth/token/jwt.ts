/**
 * Verifies JSON Web Tokens of another issuer (RFC 7519) with jose and the keys that the operator configured. Keys that the token
 * itself brings (`jwk`, `jku`, `x5c`) are ignored, and one token costs at most one verification.
 */
import { decodeProtectedHeader, errors, jwtVerify } from 'jose'
import { AuthError } from '../errors.ts'
import { parseScope, type Scope } from '../permissions.ts'
import type { JwtKeys } from './jwt-keys.ts'

/** The accepted difference between the issuer's clock and ours. */
const TOLERANCE_S = 5

export interface JwtOptions {
  readonly keys: JwtKeys
  /** The required `iss`. */
  readonly issuer: string
  /** The audience that `aud` must be or contain. */
  readonly audience: string
  /** The claim that names the user. */
  readonly identity: string
}

export interface VerifiedJwt {
  /** `tenant/user` or `user`, as signed. */
  readonly identity: string
  /** The thumbprint of the key. */
  readonly key: string
  /** Milliseconds since 1970; issuers write whole seconds. Undefined if the token does not say. */
  readonly issued: number | undefined
  /** Milliseconds since 1970. */
  readonly expires: number
  readonly scope: Scope | undefined
}

/** `refused` is the reason for the operator, without any content of the token. */
export type JwtResult = VerifiedJwt | { readonly refused: string }

/** Does not reject, whatever `token` contains. */
export async function verifyJwt(token: string, options: JwtOptions, nowMs: number): Promise<JwtResult> {
  try {
    const { alg = '', kid, crit } = decodeProtectedHeader(token)
    if (crit !== undefined) return { refused: 'the token requires extensions that are not supported' }
    const key = options.keys.find(alg, kid)
    if (!key) return { refused: 'no configured key matches the signature of the token' }
    const { payload } = await jwtVerify(token, key.key, {
      algorithms: [...key.algorithms],
      issuer: options.issuer,
      audience: options.audience,
      requiredClaims: ['iss', 'aud', 'exp'],
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(nowMs),
    })
    const identity = Object.hasOwn(payload, options.identity) ? payload[options.identity] : undefined
    if (typeof identity !== 'string') return { refused: `the claim ${options.identity} is missing or not a string` }
    const expires = (payload.exp! + TOLERANCE_S) * 1000
    const issued = payload.iat === undefined ? undefined : payload.iat * 1000
    return { identity, key: key.id, issued, expires, scope: scopeOf(payload['scope']) }
  } catch (error) {
    return { refused: whyRefused(error) }
  }
}

/** Without the claim the token allows everything that the user may do; an empty array allows nothing. */
function scopeOf(claim: unknown): Scope | undefined {
  if (claim === undefined) return undefined
  if (!Array.isArray(claim) || !claim.every((line) => typeof line === 'string')) {
    throw new AuthError('BAD_SCOPE', 'the claim scope is not an array of strings')
  }
  return parseScope(claim.join('\n')) ?? []
}

/** Messages of jose name claims and checks, never values. Any other error comes from a malformed token. */
function whyRefused(error: unknown): string {
  if (error instanceof errors.JOSEError || error instanceof AuthError) return error.message
  return 'the token cannot be read'
}
