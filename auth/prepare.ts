/**
 * SASLprep (RFC 4013): one form for names and passwords that look alike, so that an "é" typed on two keyboards is one.
 * Code points younger than Unicode 3.2 are let through: RFC 4013 knows none of them, and people use emoji.
 */
import { saslprep } from '@mongodb-js/saslprep'

/** The prepared text; undefined where none: control characters, lone surrogates, mixed directions, emptiness. */
export function prepare(text: string): string | undefined {
  try {
    return saslprep(text, { allowUnassigned: true }) || undefined
  } catch {
    return undefined
  }
}
