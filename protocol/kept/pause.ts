/** Waiting that ends at once when a signal is aborted, and leaves no listener there. */

/** The part of a clock that a pause needs. */
export interface PauseClock {
  setTimeout(callback: () => void, delayMs: number): { cancel(): void }
}

/** Calls `callback` when `signal` is aborted later, unless the function that is returned is called before. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  signal?.addEventListener('abort', callback)
  return () => signal?.removeEventListener('abort', callback)
}

/** Settles after `delayMs`, or as soon as `signal` is aborted and leaves no timer then. Never rejects. */
export function pause(clock: PauseClock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel()
      release()
      resolve()
    }
    const timer = clock.setTimeout(done, delayMs)
    const release = onAbort(signal, done)
  })
}

/** Settles with `waiting`, or rejects with the reason of `signal` as soon as that is aborted. */
export function unlessAborted<T>(signal: AbortSignal | undefined, waiting: Promise<T>): Promise<T> {
  if (signal === undefined) return waiting
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) abort()
    waiting.then(resolve, reject).finally(onAbort(signal, abort))
  })
}
