/**
 * SASLprep (RFC 4013): one form for names and passwords that look alike, so that an "é" typed on two keyboards is one.
 * Code points younger than Unicode 3.2 are let through: RFC 4013 knows none of them, and people use emoji.
 */
import { saslprep } from '@mongodb-js/saslprep'
import { AuthError } from './errors.ts'
import { type QualifiedName, splitIdentity } from './identity.ts'

export const MAX_NAME_CHARACTERS = 64

/** The prepared text; undefined where none: control characters, lone surrogates, mixed directions, emptiness. */
export function prepare(text: string): string | undefined {
  try {
    return saslprep(text, { allowUnassigned: true }) || undefined
  } catch {
    return undefined
  }
}

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
