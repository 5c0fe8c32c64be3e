/**
 * The keys of SCRAM-SHA-256 (RFC 5802 section 3, RFC 7677), derived with WebCrypto, which browsers have too.
 * The server stores a ScramVerifier, which can check a password but not replace it. ScramKeys can replace it: keep them secret.
 */
import { AuthError } from '../errors.ts'

/** The minimum of RFC 7677 section 4: fewer iterations do not protect a password. */
export const MIN_ITERATIONS = 4096

const KEY_BITS = 256

/** Plain data for storage; `salt` is 16 bytes, the keys 32 each. */
export interface ScramVerifier {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly storedKey: Uint8Array
  readonly serverKey: Uint8Array
}

/** Keys that a client may keep instead of deriving them for each connection; valid for this salt and iteration count only. */
export interface ScramKeys {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly clientKey: Uint8Array
  readonly serverKey: Uint8Array
}

/** PBKDF2 over the prepared password. Throws AuthError BAD_PASSWORD, RangeError below 4096 iterations. */
export async function deriveKeys(password: string, salt: Uint8Array, iterations: number): Promise<ScramKeys> {
  if (iterations < MIN_ITERATIONS)
    throw new RangeError(`${iterations} iterations: SCRAM needs ${MIN_ITERATIONS} or more`)
  const prepared = await preparedPassword(password)
  if (prepared === undefined) {
    throw new AuthError('BAD_PASSWORD', 'the password is empty or contains control characters: choose another')
  }
  const { subtle } = webCrypto()
  const key = await subtle.importKey('raw', new Uint8Array(utf8(prepared)), 'PBKDF2', false, ['deriveBits'])
  const parameters = { name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(salt), iterations }
  const salted = new Uint8Array(await subtle.deriveBits(parameters, key, KEY_BITS))
  const [clientKey, serverKey] = await Promise.all([hmac(salted, 'Client Key'), hmac(salted, 'Server Key')])
  return { salt: parameters.salt, iterations, clientKey, serverKey }
}

/** ASCII needs no preparation; the tables for other characters are large and loaded only when needed. */
async function preparedPassword(password: string): Promise<string | undefined> {
  if (/^[\x20-\x7e]+$/.test(password)) return password
  const { prepare } = await import('../prepare.ts')
  return prepare(password)
}

export async function verifierOf({ salt, iterations, clientKey, serverKey }: ScramKeys): Promise<ScramVerifier> {
  return { salt, iterations, storedKey: await sha256(clientKey), serverKey }
}

export async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await webCrypto().subtle.digest('SHA-256', new Uint8Array(bytes)))
}

export async function hmac(key: Uint8Array, text: string): Promise<Uint8Array> {
  const { subtle } = webCrypto()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await subtle.importKey('raw', new Uint8Array(key), algorithm, false, ['sign'])
  return new Uint8Array(await subtle.sign('HMAC', imported, new Uint8Array(utf8(text))))
}

/** The bitwise difference of two byte strings of equal length. */
export function xor(left: Uint8Array, right: Uint8Array): Uint8Array {
  return left.map((byte, i) => byte ^ right[i]!)
}

/** Compares in time that does not depend on where the first difference is. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && xor(left, right).reduce((all, byte) => all | byte, 0) === 0
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Browsers provide `subtle` only to pages from https or localhost. */
export function webCrypto(): typeof globalThis.crypto {
  if (globalThis.crypto?.subtle) return globalThis.crypto
  throw new AuthError('NO_CRYPTO', 'no WebCrypto here: open the page over https or from localhost')
}
