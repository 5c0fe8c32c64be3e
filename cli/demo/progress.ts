/** How a scenario waits: as long as something moves, since no machine is too slow to show what is promised. */
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 20
/** If nothing progresses for this long, something is wrong. */
export const PATIENCE_MS = 30_000

/** Resolves with true when the condition holds, with false if `progress` has stood still for too long. */
export async function waitWhileMoving(
  condition: () => boolean | Promise<boolean>,
  progress: () => number,
  signal: AbortSignal,
): Promise<boolean> {
  let before = progress()
  let movedMs = performance.now()
  while (!(await condition())) {
    await sleep(POLL_MS, undefined, { signal })
    const now = progress()
    if (now !== before) movedMs = performance.now()
    before = now
    if (performance.now() - movedMs >= PATIENCE_MS) return false
  }
  return true
}
