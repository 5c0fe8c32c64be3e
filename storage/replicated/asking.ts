/**
 * Questions to the nats-servers that may be asked more than once. While they elect a leader, a request is dropped, and whoever waits
 * for its answer would notice the new leader only when the time of the request is over. So it is asked again meanwhile, side by side,
 * and the first answer counts. What is published is never sent again like this: whether it has arrived is for the log to say.
 */

/** The wait before a question is asked again: a nats-server that can answer does so in less, unless it is very busy. */
const AGAIN_MS = 250

/**
 * Settles as the first of the questions to settle; the first one to reject ends it, too, so it takes no longer than one of them. The
 * others go on until their time is over, and what they give is ignored.
 */
export function askAgain<T>(question: () => Promise<T>, everyMs = AGAIN_MS): Promise<T> {
  return new Promise((resolve, reject) => {
    const ask = (): void => {
      question()
        .finally(() => clearInterval(asking))
        .then(resolve, reject)
    }
    const asking = setInterval(ask, everyMs)
    ask()
  })
}

/** Settles as the promise does, or rejects with the reason of the signal as soon as that is aborted. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
