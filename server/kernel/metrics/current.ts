/**
 * Which value of a series is the current one, the answer to QUERY and GET: the one that came last, unless it is late, that is
 * older than the one before. Times are only compared as far as they can be trusted, because the clocks of senders, and that of
 * this server, may be set to anything at any time; docs/sources/README.md#times has the rule for people.
 */
import type { Clock } from '../core/clock.ts'

/** No clock that is right gives a time so far ahead of the server's: microseconds. */
const AHEAD_US = 60_000_000
/** A value that came so long ago makes no other late. By then its sender would have sent another. */
const LATE_MS = 60_000

/** Whether a time is one that only a wrong clock can have given, or that was given before this server's clock was set back. */
export function isAhead(time: number, now: number): boolean {
  return time > now + AHEAD_US
}

/** Whether one of two values of a series is newer that came on two ways, so that nobody knows which came last. `now`: microseconds. */
export function isNewer(time: number, other: number, now: number): boolean {
  const [is, otherIs] = [isAhead(time, now), isAhead(other, now)]
  return is === otherIs ? time > other : otherIs
}

/** Whether a value makes older ones late that come now. `cameMs`: when it came, monotonic milliseconds. */
export function makesLate(time: number, cameMs: number, clock: Pick<Clock, 'monotonicMs' | 'microseconds'>): boolean {
  return clock.monotonicMs() - cameMs < LATE_MS && !isAhead(time, clock.microseconds())
}

/** When the current value of a series was measured, and when it came. */
export class CurrentTime {
  #time = Number.NEGATIVE_INFINITY
  #cameMs = Number.NEGATIVE_INFINITY

  /** A value has come. Returns whether it is the current one from now on. `time`: microseconds since 1970. */
  isTaken(time: number, clock: Pick<Clock, 'monotonicMs' | 'microseconds'>): boolean {
    if (time < this.#time && makesLate(this.#time, this.#cameMs, clock)) return false
    this.#time = time
    this.#cameMs = clock.monotonicMs()
    return true
  }
}

/** A clock that stands still while values are taken that came together: to ask the time for each costs more than to take it. */
export class StillClock implements Pick<Clock, 'monotonicMs' | 'microseconds'> {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  #monotonicMs = 0
  #microseconds = 0

  constructor(clock: Pick<Clock, 'monotonicMs' | 'microseconds'>) {
    this.#clock = clock
    this.read()
  }

  /** It shows the time of now, until it is read again. */
  read(): void {
    this.#monotonicMs = this.#clock.monotonicMs()
    this.#microseconds = this.#clock.microseconds()
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  microseconds(): number {
    return this.#microseconds
  }
}
