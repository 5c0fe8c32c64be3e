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

/** Limits for which something may move in vain, as elections do that starve each other. */
const MOST_LIMITS = 5

/** Notices that nothing moves any more, however slow the machine is. */
export class Standstill {
  readonly #limitMs: number
  readonly #now: () => number
  readonly #began: number
  #seen: string | undefined
  #since: number

  constructor(limitMs: number, now = () => performance.now()) {
    this.#limitMs = limitMs
    this.#now = now
    this.#began = this.#since = now()
  }

  /** Takes what is seen at this moment. Whether it has been the same for the limit, or moves in vain for five times as long. */
  isReached(seen: string): boolean {
    const at = this.#now()
    if (seen !== this.#seen) this.#since = at
    this.#seen = seen
    return at - this.#since >= this.#limitMs || at - this.#began >= MOST_LIMITS * this.#limitMs
  }
}
