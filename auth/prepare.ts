/**
 * SASLprep (RFC 4013): one canonical form for names and passwords that look alike, so that an "é" is the same from every
 * keyboard. Code points newer than Unicode 3.2 are accepted: RFC 4013 does not know them, and people use emoji.
 */
import { saslprep } from '@mongodb-js/saslprep'
import { AuthError } from './errors.ts'
import { type QualifiedName, splitIdentity } from './identity.ts'

export const MAX_NAME_CHARACTERS = 64

/** The prepared text; undefined if it is empty or has control characters, lone surrogates or mixed directions. */
export function prepare(text: string): string | undefined {
  try {
    return saslprep(text, { allowUnassigned: true }) || undefined
  } catch {
    return undefined
  }
}

/** Splits and prepares `text`. Throws AuthError BAD_IDENTITY, whose message says what is allowed. */
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
  if (name === undefined) throw refuse('it contains characters that are not allowed in names (RFC 4013)')
  // Checked after preparation, which turns compatibility forms such as U+FF0F and U+2100 into a '/'.
  if (name.includes('/')) throw refuse("it contains '/'")
  if (name.trim() !== name) throw refuse('it begins or ends with a space')
  if ([...name].length > MAX_NAME_CHARACTERS) throw refuse(`it is longer than ${MAX_NAME_CHARACTERS} characters`)
  return name
}
