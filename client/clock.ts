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
