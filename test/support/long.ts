/**
 * Tests that import this have two forms: a short one for `npm test`, and a long one, the same with more of everything, for
 * `TEST_LONG=1 npm test`, which also runs those in files `*.long.ts`.
 */
export const isLong = process.env['TEST_LONG'] === '1'

/** How many of something there are in this run. */
export function times({ short, long }: { readonly short: number; readonly long: number }): number {
  return isLong ? long : short
}

/** The seeds of a random test, from 0 up; TEST_SEED=n is that one alone. Names of tests have them, so that a failure says its own. */
export function seeds(of: { readonly short: number; readonly long: number }): number[] {
  const given = process.env['TEST_SEED']
  return given === undefined ? Array.from({ length: times(of) }, (_, seed) => seed) : [Number(given)]
}
