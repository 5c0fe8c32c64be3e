/**
 * Patterns of metric names and of arguments that select a source. `*` stands for any run of bytes, dots included; a pattern
 * holds at most 8 of them [MON 9 Patterns].
 */
import { matcher } from '../../../auth/pattern.ts'
import { StatusError } from '../core/errors.ts'

export { matcher }

const MAX_STARS = 8

export function isPattern(text: string): boolean {
  return text.includes('*')
}

/** Returns a function that says whether a text matches. Throws StatusError INVALID_ARGUMENT for too many stars. */
export function compilePattern(pattern: string): (text: string) => boolean {
  if (isPattern(pattern) && pattern.split('*').length - 1 > MAX_STARS) {
    throw new StatusError('INVALID_ARGUMENT', `a pattern holds at most ${MAX_STARS} stars`)
  }
  return matcher(pattern)
}

/** What every name begins with that a pattern matches. */
export function literalPrefix(pattern: string): string {
  const star = pattern.indexOf('*')
  return star < 0 ? pattern : pattern.slice(0, star)
}

/**
 * Whether a name or pattern asks for a family by its prefix, or may match the prefix and then a text that `rest` matches; `rest`
 * judges each character by itself.
 */
export function mayContinue(name: string, prefix: string, rest: RegExp): boolean {
  if (literalPrefix(name).startsWith(prefix)) return true
  const isRest = (text: string): boolean => rest.test(text.replaceAll('*', ''))
  // A longer beginning has more characters than the prefix.
  let at = Math.min(name.length, prefix.length + name.split('*').length - 1)
  if (!isRest(name.slice(at))) return false
  while (!matcher(name.slice(0, at))(prefix)) {
    if (at === 0 || !isRest(name.charAt(at - 1))) return false
    at--
  }
  return true
}

/** Whether a name that begins with `prefix` may match a name or pattern. */
export function mayBegin(name: string, prefix: string): boolean {
  if (!isPattern(name)) return name.startsWith(prefix)
  const fixed = literalPrefix(name)
  return fixed.startsWith(prefix) || prefix.startsWith(fixed)
}
