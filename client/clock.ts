/** The part of a clock that the client needs. The server's clock has it too, and so has the tests' fake one. */
export interface ClientClock {
  /** Milliseconds since some fixed moment; never goes back. */
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

/** Settles with `waiting`, or after `delayMs` if that takes longer. */
export function withinTime(clock: ClientClock, delayMs: number, waiting: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(resolve, delayMs)
    waiting.then(resolve, reject).finally(() => timer.cancel())
  })
}
