/**
 * Tests that import this have two forms: a short one for `npm test`, and a long one, the same with more of everything, for
 * `TEST_LONG=1 npm test`, which also runs those in files `*.long.ts`.
 */
export const isLong = process.env['TEST_LONG'] === '1'

/** How many of something there are in this run. */
export function times({ short, long }: { readonly short: number; readonly long: number }): number {
  return isLong ? long : short
}
