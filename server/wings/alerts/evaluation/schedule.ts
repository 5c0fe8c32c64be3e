/**
 * When a group is evaluated: at the multiples of its interval, shifted by a part of it that follows from its name, so that groups are
 * spread over their interval. Times are milliseconds since 1970. What was missed is done in order, at its own times.
 */
import { murmurOf } from '../../../../protocol/bytes/hash.ts'

/** What was missed before that is left out. */
const CAUGHT_UP_MS = 3_600_000

export interface Ticks {
  /** The next time to evaluate at; undefined while there is none. */
  readonly nextMs: number | undefined
  /** Times that are left out, because they are too long ago. */
  readonly skipped: number
  /** By how much the clock was set back; 0 if it was not. The times of alerts move with it. */
  readonly setBackMs: number
}

const NOTHING = { nextMs: undefined, skipped: 0, setBackMs: 0 }

const encoder = new TextEncoder()

/** Where in its interval a group has its time. */
export function offsetOf(key: string, intervalMs: number): number {
  return Math.floor(((murmurOf(encoder.encode(key), 1) >>> 0) / 2 ** 32) * intervalMs)
}

/** `reachedMs`: the last time that was evaluated, or from which on times count. */
export function ticksAfter(reachedMs: number, nowMs: number, intervalMs: number, offsetMs: number): Ticks {
  // A clock that is a little behind only waits.
  if (nowMs < reachedMs - intervalMs) return { ...NOTHING, setBackMs: reachedMs - nowMs }
  const nextMs = slotAfter(reachedMs, intervalMs, offsetMs)
  if (nextMs > nowMs) return NOTHING
  const oldestMs = nowMs - CAUGHT_UP_MS
  if (nextMs >= oldestMs) return { ...NOTHING, nextMs }
  const firstMs = slotAfter(oldestMs - 1, intervalMs, offsetMs)
  // An interval may be longer than what is caught up.
  const lastMs = firstMs <= nowMs ? firstMs : firstMs - intervalMs
  return { ...NOTHING, nextMs: lastMs, skipped: Math.round((lastMs - nextMs) / intervalMs) }
}

/** The first time of a group after another time. */
export function slotAfter(afterMs: number, intervalMs: number, offsetMs: number): number {
  return (Math.floor((afterMs - offsetMs) / intervalMs) + 1) * intervalMs + offsetMs
}
