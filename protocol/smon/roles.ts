/** What the next number of a stream can be, and how errors call it. */

/** What a number is. Up to SOURCE: steps from the current token, and index operations may stand before it. */
export const TOKEN = 0
export const NEW = 1
export const SOURCE = 2
/** The length of a defstring; FD may stand in its place. */
export const DEFINITION = 3
export const NAME = 4
export const VALUE = 5
export const TEXT = 6
export const INDEX = 7

export const ROLES = [
  'a token',
  'the number of a new token',
  'the token to copy',
  'the length of a definition',
  'the length of a definition',
  'a value',
  'the length of a string',
  'an index',
] as const
