/** Waiting for what another process, a socket or a disk does. */
import { setTimeout } from 'node:timers/promises'

/** How often something is looked at, and how far apart the looks are. A busy machine makes the looks rarer, not fewer. */
const LOOKS = 4_500
const LOOK_MS = 10
/** For looks that take long themselves. */
const MOST_MS = 240_000

/**
 * Waits until `check` throws nothing, and fails with what it threw last. The limit ends what would never come, before the
 * limit of the test, which could not say why; it is no measure of speed.
 */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  const endMs = performance.now() + MOST_MS
  for (let looked = 1; ; looked++) {
    try {
      return await check()
    } catch (error) {
      if (looked === LOOKS || performance.now() >= endMs) throw error
    }
    await setTimeout(LOOK_MS)
  }
}
