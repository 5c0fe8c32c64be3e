/** The calls of `setImmediate` in this process: whether any is pending, and which of them go on for ever. */
import { createHook } from 'node:async_hooks'

/** A chain of immediates that is longer than this is a loop. */
export const ENDLESS_TURNS = 5_000
/** Within so many turns each loop has shown where it is. */
const SHOWING_TURNS = 10

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export function isImmediatePending(): boolean {
  return process.getActiveResourcesInfo().includes('Immediate')
}

/** The places that call `setImmediate` again and again; none as soon as there is a turn after which nothing is pending. */
export async function endlessImmediates(): Promise<string[]> {
  for (let turn = 0; turn < ENDLESS_TURNS; turn++) {
    await nextTurn()
    if (!isImmediatePending()) return []
  }
  return immediatesNow()
}

/** The places that call `setImmediate` in the next few turns. */
export async function immediatesNow(): Promise<string[]> {
  const places = new Set<string>()
  let isOwn = false
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'Immediate' && !isOwn) places.add(callerOfSetImmediate(new Error().stack ?? ''))
    },
  }).enable()
  try {
    for (let turn = 0; turn < SHOWING_TURNS; turn++) {
      isOwn = true
      const next = nextTurn()
      isOwn = false
      await next
    }
  } finally {
    hook.disable()
  }
  return [...places]
}

function callerOfSetImmediate(stack: string): string {
  const lines = stack.split('\n')
  const after = lines.slice(lines.findIndex((line) => line.includes(' setImmediate (node:')) + 1)
  return after.find((line) => !line.includes('(<anonymous>)'))?.trim() ?? 'an unknown place'
}
