/**
 * All time in the server comes from a clock that is handed in. Three kinds that must not be mixed up: wall time (epoch;
 * jumps when somebody sets it), monotonic time (for differences; means nothing outside the process), and the
 * microseconds that values are stamped with.
 */

export interface Clock {
  /** Milliseconds since 1970. May jump either way. */
  wallMs(): number
  /** Milliseconds since some moment, with fractions. Never goes back. */
  monotonicMs(): number
  /** Microseconds since 1970, an integer: the wall clock, held over small steps back. See `stamps`. */
  microseconds(): number
  /** Calls once after `delayMs`, which may be longer than the 24.8 days of Node's own timer. Keeps the process alive. */
  setTimeout(callback: () => void, delayMs: number): Timer
  /** Calls every `intervalMs` (below 2^31). Keeps the process alive. */
  setInterval(callback: () => void, intervalMs: number): Timer
  /** Harmless for a timer that has run, was cleared, or never was. */
  clear(timer: Timer | undefined): void
}

/** For `Clock.clear`. */
export interface Timer {
  cancel(): void
}

const LONGEST_DELAY_MS = 2 ** 31 - 1

export function systemClock(): Clock {
  const wallMs = Date.now
  const monotonicMs = () => performance.now()
  return {
    wallMs,
    monotonicMs,
    microseconds: stamps(wallMs, monotonicMs),
    setTimeout(callback, delayMs) {
      let handle: NodeJS.Timeout
      const wait = (leftMs: number) => {
        const nextMs = Math.min(leftMs, LONGEST_DELAY_MS)
        handle = setTimeout(() => (leftMs > nextMs ? wait(leftMs - nextMs) : callback()), nextMs)
      }
      wait(delayMs)
      return { cancel: () => clearTimeout(handle) }
    },
    setInterval(callback, intervalMs) {
      const handle = setInterval(callback, intervalMs)
      return { cancel: () => clearInterval(handle) }
    },
    clear: (timer) => timer?.cancel(),
  }
}

const HELD_BACK_US = 1_000_000

/**
 * Time stamps in microseconds. The wall clock says the millisecond, the monotonic clock what lies between. A step back
 * of up to a second is held: stamps stand still until the wall has caught up. A longer one is followed, for then the
 * clock was wrong, and a stamp that stood still for an hour would be a worse lie than one that goes back.
 */
export function stamps(wallMs: () => number, monotonicMs: () => number): () => number {
  let offset = Number.NEGATIVE_INFINITY
  let last = 0
  return () => {
    const wall = Math.floor(wallMs() * 1_000)
    const monotonic = monotonicMs() * 1_000
    if (offset + monotonic < wall) offset = wall - monotonic
    else if (offset + monotonic >= wall + 1_000) offset = wall + 999 - monotonic
    const now = Math.floor(offset + monotonic)
    if (now > last || last - now > HELD_BACK_US) last = now
    return last
  }
}
