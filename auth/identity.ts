/**
 * Who somebody says to be: `tenant/user`, or `user` for the tenant `default` [MON 11].
 * Names are compared in their prepared form: whoever looks an account up takes what `parseIdentity` returns,
 * not the text.
 */
import { AuthError } from './errors.ts'
import { prepare } from './prepare.ts'
import { type QualifiedName, splitIdentity } from './qualified-name.ts'

export { DEFAULT_TENANT, formatIdentity, type QualifiedName } from './qualified-name.ts'

export const MAX_NAME_CHARACTERS = 64

/** Splits and prepares `text`. Throws AuthError BAD_IDENTITY, whose message says what to write instead. */
export function parseIdentity(text: string): QualifiedName {
  const { tenant, name } = splitIdentity(text)
  return { name: prepareName('user', name), tenant: prepareName('tenant', tenant) }
}

/**
 * The prepared form of a user's or tenant's name: 1..64 characters, no '/', no control characters, no space at an end.
 * Throws AuthError BAD_IDENTITY.
 */
export function prepareName(kind: 'user' | 'tenant', text: string): string {
  const refuse = (why: string): AuthError => new AuthError('BAD_IDENTITY', `not a ${kind} name: ${why}`)
  if (text === '') throw refuse('it is empty')
  const name = prepare(text)
  if (name === undefined) throw refuse('it holds characters that a name may not have (RFC 4013)')
  // After preparation: compatibility forms such as U+FF0F and U+2100 turn into a '/' only there.
  if (name.includes('/')) throw refuse("'/' may not stand in it")
  if (name.trim() !== name) throw refuse('it begins or ends with a space')
  if ([...name].length > MAX_NAME_CHARACTERS) throw refuse(`it is longer than ${MAX_NAME_CHARACTERS} characters`)
  return name
}
