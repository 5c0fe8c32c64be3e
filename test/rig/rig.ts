/** What a rig is: a way to hurt the server and to count what was lost by it. `chaos/main.ts` runs them, so do the tests. */

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

/** One run of a rig, from the plan to what it leaves behind. */
export interface Course {
  /** Where it is, for people: `kill 3`, for example. */
  readonly moment: string
  all(): Promise<Totals>
  /** Ends and removes everything that it has made, wherever it is. */
  remove(): Promise<unknown>
}

/** Runs it from its beginning to its end. What it throws says in which rig, with which seed and when. */
export async function runCourse(rig: string, { seed }: Pick<RigOptions, 'seed'>, course: Course): Promise<Totals> {
  try {
    return await course.all()
  } catch (error) {
    throw located(error, `${rig}, seed ${seed}, ${course.moment}`)
  } finally {
    await course.remove()
  }
}

/** What went wrong, with where it did. */
export function located(error: unknown, where: string): Error {
  return new Error(`${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
}

/** Counts of what happened, by its name. */
export class Tally {
  readonly #counts = new Map<string, number>()

  /** These stand first, and are there although they never happened. */
  constructor(names: readonly string[] = []) {
    for (const name of names) this.#counts.set(name, 0)
  }

  add(name: string, count = 1): void {
    this.#counts.set(name, this.of(name) + count)
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  totals(): Totals {
    return Object.fromEntries(this.#counts)
  }

  /** In the order of the alphabet, with this before each name. */
  sorted(before = ''): Totals {
    const sorted = [...this.#counts].sort(([a], [b]) => a.localeCompare(b))
    return Object.fromEntries(sorted.map(([name, count]) => [before + name, count]))
  }
}
