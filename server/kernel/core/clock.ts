/**
 * All time in the server comes from a clock that is handed in. It gives three kinds of time that must not be mixed up: wall
 * time (since 1970; jumps when somebody sets it), monotonic time (for differences; means nothing outside the process), and
 * the microseconds of time stamps.
 */

export interface Clock {
  /** Milliseconds since 1970. May jump either way. */
  wallMs(): number
  /** Milliseconds since an arbitrary moment, with fractions. Never goes back. */
  monotonicMs(): number
  /** Microseconds since 1970, an integer: the wall clock, except that it stands still over small steps back. See `stamps`. */
  microseconds(): number
  /** Calls once after `delayMs`, which may be longer than the 24.8 days of Node's own timer. Keeps the process alive. */
  setTimeout(callback: () => void, delayMs: number): Timer
  /** Calls every `intervalMs` (below 2^31). Keeps the process alive. */
  setInterval(callback: () => void, intervalMs: number): Timer
  /** Does nothing for undefined and for a timer that has run or was cleared. */
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
 * Time stamps in microseconds: milliseconds from the wall clock, fractions from the monotonic clock. After a step back of up
 * to a second, stamps stand still until the wall clock has caught up. A longer step is followed: the clock was wrong before,
 * and stamps that stand still for an hour would be worse than stamps that go back.
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

/**
 * The age clock, by which limits of age are judged: milliseconds since the database was created. It is monotonic while the
 * server runs, so that setting the wall clock expires nothing; the time between two runs is taken from the wall clock and is
 * never negative [MON 8 Limits]. `stored` holds the age and the wall time of the last batch. That was the clock of another machine
 * if a node of a cluster has taken over: then `downMs` is the time since this node got that batch, by its own clock.
 */
export function ageClock(
  clock: Pick<Clock, 'wallMs' | 'monotonicMs'>,
  stored: { readonly age: number; readonly wall: number },
  downMs?: number,
): () => number {
  const down = downMs ?? (stored.wall === 0 ? 0 : Math.max(0, clock.wallMs() - stored.wall))
  const base = stored.age + down - clock.monotonicMs()
  return () => base + clock.monotonicMs()
}
