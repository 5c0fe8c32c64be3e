/** The time that the client needs. The server's clock and the tests' fake one fit this shape too. */
export interface ClientClock {
  /** Milliseconds since some moment; never goes back. */
  monotonicMs(): number
  setTimeout(callback: () => void, delayMs: number): ClientTimer
}

export interface ClientTimer {
  cancel(): void
}

export function realClock(): ClientClock {
  return {
    monotonicMs: () => performance.now(),
    setTimeout(callback, delayMs) {
      const handle = setTimeout(callback, delayMs)
      return { cancel: () => clearTimeout(handle) }
    },
  }
}

/** Settles with `waiting`, or when that takes longer. */
export function atMost(clock: ClientClock, delayMs: number, waiting: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(resolve, delayMs)
    waiting.then(resolve, reject).finally(() => timer.cancel())
  })
}
