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
