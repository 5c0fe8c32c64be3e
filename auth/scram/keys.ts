/**
 * The keys of SCRAM-SHA-256 (RFC 5802 section 3, RFC 7677), by WebCrypto, so that a browser can do it too.
 * The server keeps a ScramVerifier, which can check a password but not stand for it. ScramKeys can: keep them secret.
 */
import { AuthError } from '../errors.ts'

/** RFC 7677 section 4: fewer rounds are no protection for a password. */
export const MIN_ITERATIONS = 4096

const KEY_BITS = 256

/** Plain data for storage; `salt` is 16 bytes, the keys 32 each. */
export interface ScramVerifier {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly storedKey: Uint8Array
  readonly serverKey: Uint8Array
}

/** What a client may keep instead of deriving it at each connection; good for this salt and iteration count only. */
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
    throw new AuthError('BAD_PASSWORD', 'the password is empty or holds control characters: choose another')
  }
  const { subtle } = webCrypto()
  const key = await subtle.importKey('raw', utf8(prepared), 'PBKDF2', false, ['deriveBits'])
  const parameters = { name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(salt), iterations }
  const salted = new Uint8Array(await subtle.deriveBits(parameters, key, KEY_BITS))
  const [clientKey, serverKey] = await Promise.all([hmac(salted, 'Client Key'), hmac(salted, 'Server Key')])
  return { salt: parameters.salt, iterations, clientKey, serverKey }
}

/** ASCII is prepared as it is; the tables for the rest are large, and loaded where they are needed. */
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
  return new Uint8Array(await subtle.sign('HMAC', imported, utf8(text)))
}

/** Of two byte strings of one length, the bitwise difference. */
export function xor(left: Uint8Array, right: Uint8Array): Uint8Array {
  return left.map((byte, i) => byte ^ right[i]!)
}

/** Compares without telling by its time where the first difference is. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && xor(left, right).reduce((all, byte) => all | byte, 0) === 0
}

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new TextEncoder().encode(text))
}

/** Browsers hide `subtle` from pages that came over plain http from another machine. */
export function webCrypto(): typeof globalThis.crypto {
  if (globalThis.crypto?.subtle) return globalThis.crypto
  throw new AuthError('NO_CRYPTO', 'no WebCrypto here: open the page over https or from localhost')
}
