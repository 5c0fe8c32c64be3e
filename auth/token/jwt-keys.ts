/**
 * The public keys that verify JSON Web Tokens, parsed from a JWKS (RFC 7517) or from a PEM file with one key. Only public keys of
 * asymmetric algorithms are accepted: with a shared secret everyone who can verify tokens can also forge them, and a public
 * key mistaken for a secret would let everyone forge them who knows it.
 */
import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { AuthError } from '../errors.ts'

/** A larger key would only take longer to verify. */
const MAX_RSA_BITS = 8192
const MIN_RSA_BITS = 2048
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const CURVES: Readonly<Record<string, readonly string[]>> = {
  'P-256': ['ES256'],
  'P-384': ['ES384'],
  'P-521': ['ES512'],
  Ed25519: ['EdDSA', 'Ed25519'],
}

export interface JwtKey {
  /** The thumbprint (RFC 7638, SHA-256, base64url), which differs for another key under the same `kid`. */
  readonly id: string
  readonly kid: string | undefined
  readonly key: KeyObject
  /** The algorithms it may be used with, all of its own key type. */
  readonly algorithms: readonly string[]
}

export class JwtKeys {
  #keys: readonly JwtKey[] = []

  /** Replaces all keys. Throws AuthError BAD_KEYS, and then keeps the previous ones. */
  reload(text: string): void {
    this.#keys = parseKeys(text)
  }

  /** Whether the key is still trusted. */
  has(id: string): boolean {
    return this.#keys.some((key) => key.id === id)
  }

  /** The key with this `kid`; for a token without one, the only key for its algorithm if there is exactly one. */
  find(algorithm: string, kid: string | undefined): JwtKey | undefined {
    const fitting = this.#keys.filter((key) => key.algorithms.includes(algorithm))
    if (kid !== undefined) return fitting.find((key) => key.kid === kid)
    return fitting.length === 1 ? fitting[0] : undefined
  }
}

/** Throws AuthError BAD_KEYS. */
function parseKeys(text: string): JwtKey[] {
  const keys = text.includes('-----BEGIN') ? [parsePem(text)] : parseJwks(text)
  if (keys.length === 0) throw bad('it contains no public key that can verify signatures')
  const kids = keys.flatMap(({ kid }) => kid ?? [])
  const twice = kids.find((kid, i) => kids.indexOf(kid) < i)
  if (twice !== undefined) throw bad(`two keys are named ${twice}: each needs a \`kid\` of its own`)
  return keys
}

function parsePem(text: string): JwtKey {
  const labels = [...text.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----/g)].map(([, label]) => label!)
  if (labels.some((label) => label.includes('PRIVATE')))
    throw bad('it contains a private key: provide the public one alone')
  if (labels.length !== 1) throw bad('a PEM file contains one public key or certificate; several keys need a JWKS file')
  return keyFrom({}, () => createPublicKey(text), 'the key')
}

function parseJwks(text: string): JwtKey[] {
  const { keys } = parsedObject(text)
  if (!Array.isArray(keys)) throw bad('it is neither PEM nor a JWKS: `keys` is missing or not an array')
  return keys.flatMap((jwk: unknown, i) => {
    const which = `key ${i + 1}`
    if (!isObject(jwk)) throw bad(`${which} is not an object`)
    if (jwk['kty'] === 'oct') throw bad(`${which} is a shared secret: only public keys are accepted`)
    if ('d' in jwk) throw bad(`${which} is a private key: provide the public one alone`)
    // Keys for another use or of an unknown type are skipped. RFC 7517 section 5
    if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return []
    if (!['RSA', 'EC', 'OKP'].includes(String(jwk['kty']))) return []
    if (jwk['kty'] !== 'RSA' && !Object.hasOwn(CURVES, String(jwk['crv']))) return []
    return [keyFrom(jwk, () => createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' }), which)]
  })
}

function keyFrom(jwk: Readonly<Record<string, unknown>>, read: () => KeyObject, which: string): JwtKey {
  const key = readable(read, which)
  const { kid, alg } = jwk
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) throw bad(`${which}: its \`kid\` is not a string`)
  const possible = algorithmsOf(key, which)
  const algorithms = alg === undefined ? possible : possible.filter((each) => each === alg)
  if (algorithms.length === 0) throw bad(`${which}: its \`alg\` does not match its type`)
  return { id: thumbprint(key), kid, key, algorithms }
}

function readable(read: () => KeyObject, which: string): KeyObject {
  try {
    return read()
  } catch (cause) {
    throw bad(`${which} cannot be read as a public key`, cause)
  }
}

function algorithmsOf(key: KeyObject, which: string): readonly string[] {
  if (key.asymmetricKeyType === 'rsa') {
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    if (bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS) return RSA_ALGORITHMS
    throw bad(`${which}: RSA of ${bits} bits; ${MIN_RSA_BITS} to ${MAX_RSA_BITS} are supported`)
  }
  const algorithms = CURVES[curveOf(key) ?? '']
  if (algorithms) return algorithms
  throw bad(`${which}: its type is none of RSA, P-256, P-384, P-521 and Ed25519`)
}

/** The name of its curve in a JWK; undefined if it has none. */
function curveOf(key: KeyObject): string | undefined {
  try {
    return key.export({ format: 'jwk' }).crv
  } catch {
    // OpenSSL knows many types and curves that have no form as a JWK.
    return undefined
  }
}

/** RFC 7638: the members that the type requires, in alphabetical order. */
function thumbprint(key: KeyObject): string {
  const { kty, crv, e, n, x, y } = key.export({ format: 'jwk' })
  const required = kty === 'RSA' ? { e, kty, n } : kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x }
  return createHash('sha256').update(JSON.stringify(required)).digest('base64url')
}

function parsedObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // Reported below: the error of JSON.parse would quote the file.
  }
  throw bad('it is neither PEM nor the JSON of a JWKS')
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function bad(why: string, cause?: unknown): AuthError {
  return new AuthError('BAD_KEYS', `the file of JWT keys cannot be used: ${why}`, { cause })
}
