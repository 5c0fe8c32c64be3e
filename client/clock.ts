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

/** Settles with `waiting`, or rejects with the reason of `signal` as soon as that is aborted. */
export function unlessAborted<T>(signal: AbortSignal | undefined, waiting: Promise<T>): Promise<T> {
  if (signal === undefined) return waiting
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    waiting.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
