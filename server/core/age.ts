/**
 * The age clock: what limits of age are judged by. Monotonic while the server runs, so that setting the wall clock expires
 * nothing; the time it was down is counted by the wall clock, and never as negative [MON 8 Limits].
 */
import type { Clock } from './clock.ts'

/** Milliseconds since the database was made. `stored` is the age and the wall time of the last batch. */
export function ageClock(clock: Clock, stored: { readonly age: number; readonly wall: number }): () => number {
  const down = stored.wall === 0 ? 0 : Math.max(0, clock.wallMs() - stored.wall)
  const base = stored.age + down - clock.monotonicMs()
  return () => base + clock.monotonicMs()
}
