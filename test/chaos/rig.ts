/** What a rig is: a way to hurt the server and to count what was lost by it. `main.ts` runs them, so do the tests. */

export interface RigOptions {
  /** All randomness comes from it: a run that failed is made again. */
  readonly seed: number
  /** How often: kills, damaged files, cut states. */
  readonly count: number
  /** Takes a line for people. */
  readonly say: (line: string) => void
}

/**
 * Sums of a run, printed as they are. `lost`, `unexpected` and `reused` have to be there, and 0; so has `broken`, the number of
 * broken promises, of a rig that goes on after the first.
 */
export type Totals = Readonly<Record<string, number>>

/** Throws an Error that names the seed at the first thing that must not be. */
export type Rig = (options: RigOptions) => Promise<Totals>
