/** The time that the client needs. The server's clock and the tests' fake one fit this shape too. */
export interface Clock {
  /** Milliseconds since some moment; never goes back. */
  monotonicMs(): number
  setTimeout(callback: () => void, delayMs: number): Timer
}

export interface Timer {
  cancel(): void
}

export function systemClock(): Clock {
  return {
    monotonicMs: () => performance.now(),
    setTimeout(callback, delayMs) {
      const handle = setTimeout(callback, delayMs)
      return { cancel: () => clearTimeout(handle) }
    },
  }
}

/** Settles with `waiting`, or when that takes longer. */
export function atMost(clock: Clock, delayMs: number, waiting: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(resolve, delayMs)
    waiting.then(resolve, reject).finally(() => timer.cancel())
  })
}
