/**
 * The verifiers that are stored instead of a password, one for each method that checks passwords. They are plain data; the
 * password itself is never stored.
 */
import { AuthError } from './errors.ts'
import { checkPassword, type PasswordHasher } from './password.ts'
import { prepare } from './prepare.ts'
import { deriveKeys, MIN_ITERATIONS, type ScramVerifier, verifierOf, webCrypto } from './scram/keys.ts'

/** The iterations that protect a password chosen by a person if the database is stolen. */
export const DEFAULT_ITERATIONS = 600_000

const SALT_BYTES = 16
const MIN_PASSWORD_CHARACTERS = 8

export interface Verifiers {
  /** A bcrypt hash of 60 characters. */
  readonly bcrypt: string
  readonly scram: ScramVerifier
}

/**
 * Those who set passwords take turns: `setter` names one of them. Throws AuthError: BAD_PASSWORD for a password that cannot be
 * used, HASHER_BUSY or HASHER_CLOSED.
 */
export async function makeVerifiers(
  password: string,
  hasher: Pick<PasswordHasher, 'hash'>,
  iterations = DEFAULT_ITERATIONS,
  setter = '',
): Promise<Verifiers> {
  const prepared = preparePassword(password)
  const [bcrypt, scram] = await Promise.all([hasher.hash(prepared, setter), makeSecretVerifier(prepared, iterations)])
  return { bcrypt, scram }
}

/** A verifier for SCRAM alone. The default is enough for a random secret of 256 bits, but not for a person's password. */
export async function makeSecretVerifier(secret: string, iterations = MIN_ITERATIONS): Promise<ScramVerifier> {
  const salt = webCrypto().getRandomValues(new Uint8Array(SALT_BYTES))
  return verifierOf(await deriveKeys(secret, salt, iterations))
}

/** Throws AuthError BAD_PASSWORD for a password that may not be set. One that was set by an older version may be shorter. */
export function checkNewPassword(password: string): void {
  const characters = [...preparePassword(password)].length
  if (characters >= MIN_PASSWORD_CHARACTERS) return
  throw new AuthError(
    'BAD_PASSWORD',
    `the password has ${characters} characters, at least ${MIN_PASSWORD_CHARACTERS} are needed`,
  )
}

/** The form in which a password is hashed and compared. Throws AuthError BAD_PASSWORD. */
export function preparePassword(password: string): string {
  checkPassword(password)
  const prepared = prepare(password)
  if (prepared === undefined) {
    throw new AuthError('BAD_PASSWORD', 'the password contains characters that cannot be typed reliably (RFC 4013)')
  }
  checkPassword(prepared)
  return prepared
}
