/**
 * Patterns: `*` is any run of bytes, dots too; at most 8 of them [MON 9 Patterns]. Matched in linear time by always taking
 * the leftmost place for each piece, never by a regular expression.
 */
import { StatusError } from '../errors.ts'

const MAX_STARS = 8

export function isPattern(text: string): boolean {
  return text.includes('*')
}

/** A function that says whether a text matches. Throws StatusError INVALID_ARGUMENT for too many stars. */
export function compilePattern(pattern: string): (text: string) => boolean {
  if (pattern.split('*').length - 1 > MAX_STARS) {
    throw new StatusError('INVALID_ARGUMENT', `a pattern holds at most ${MAX_STARS} stars`)
  }
  return matcher(pattern)
}

/** The same for any number of stars. */
export function matcher(pattern: string): (text: string) => boolean {
  const pieces = pattern.split('*')
  if (pieces.length === 1) return (text) => text === pattern
  const first = pieces[0] as string
  const last = pieces[pieces.length - 1] as string
  const middle = pieces.slice(1, -1)
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
    const end = text.length - last.length
    let at = first.length
    for (const piece of middle) {
      const found = text.indexOf(piece, at)
      if (found < 0 || found + piece.length > end) return false
      at = found + piece.length
    }
    return true
  }
}
