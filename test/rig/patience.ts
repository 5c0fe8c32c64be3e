/** Waiting for what other processes do: with an end, which is no measure of speed, and a reason. */
import { setTimeout } from 'node:timers/promises'

/** How often something is looked at, and how far apart the looks are, in ms. */
export interface Patience {
  readonly looks?: number
  readonly everyMs?: number
}

/** A minute and a half: before the end of a test, which could not say what was waited for. */
const LOOKS = 900
/** Two minutes without anything new. */
const IDLE_LOOKS = 1_200
const LOOK_MS = 100

/** Looks until it holds. Throws if it never does. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  { looks = LOOKS, everyMs = LOOK_MS }: Patience = {},
): Promise<void> {
  for (let looked = 0; !(await holds()); looked++) {
    if (looked === looks) throw new Error(`waited in vain until ${what}`)
    await setTimeout(everyMs)
  }
}

/** Waits until nothing is missing any more, or as long as it becomes less. Gives how many are missing for good. */
export async function missingAtLast(
  missing: () => Promise<number> | number,
  { looks = IDLE_LOOKS, everyMs = LOOK_MS }: Patience = {},
): Promise<number> {
  let [least, since] = [Number.POSITIVE_INFINITY, 0]
  while (least > 0 && since++ < looks) {
    await setTimeout(everyMs)
    const left = await missing()
    if (left < least) since = 0
    least = left
  }
  return least
}

/** How often something may move before it is believed to move in vain, as elections do that starve each other. */
const MOST_MOVES = 100

/** Notices that nothing moves any more, however slow the machine is. */
export class Standstill {
  readonly #limitMs: number
  readonly #now: () => number
  #seen: string | undefined
  #since = 0
  #moves = 0

  constructor(limitMs: number, now = () => performance.now()) {
    this.#limitMs = limitMs
    this.#now = now
  }

  /** Takes what is seen at this moment. Whether it has been the same for the limit, or has changed too often before that. */
  isReached(seen: string): boolean {
    const at = this.#now()
    if (this.#seen === undefined || (seen !== this.#seen && this.#moves < MOST_MOVES)) {
      if (this.#seen !== undefined) this.#moves++
      this.#seen = seen
      this.#since = at
    }
    return at - this.#since >= this.#limitMs
  }
}
