/**
 * Keeps a consumer connected: a lost connection is made again, at growing intervals, until that cannot succeed any more or
 * the consumer is closed.
 */
import type { ClientClock } from './clock.ts'
import type { ClientConnection } from './connection.ts'
import { ConnectionError, isTransient } from './errors.ts'

const FIRST_MS = 100
const MAX_MS = 10_000
/** A connection that was shorter than this does not count as a success. */
const LASTED_MS = 5_000

/** Another attempt to connect is going to be made. */
export interface RetryEvent {
  /** Its number: 1 for the first after the connection was lost, or after the first attempt has failed. */
  readonly attempt: number
  /** How long it is until then. */
  readonly delayMs: number
  /** Why there is no connection: what ended the last one, or the last attempt. */
  readonly error: Error
}

/** The intervals between attempts, which grow. */
export class Backoff {
  readonly #clock: ClientClock
  #pauses = 0

  constructor(clock: ClientClock) {
    this.#clock = clock
  }

  reset(): void {
    this.#pauses = 0
  }

  /**
   * Waits between half of the interval and all of it, so that not all consumers of a producer come back at once. `begun` is called
   * with the time that it takes. Ends early once `signal` is aborted.
   */
  pause(signal: AbortSignal, begun: (delayMs: number) => void): Promise<void> {
    const longestMs = Math.min(MAX_MS, FIRST_MS * 2 ** this.#pauses++)
    const delayMs = Math.ceil(longestMs * (0.5 + Math.random() / 2))
    begun(delayMs)
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = this.#clock.setTimeout(done, delayMs)
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }
}

export interface ReconnectOptions {
  readonly clock: ClientClock
  /** Connects and restores the session. Has to end when `signal` is aborted. */
  readonly connect: (signal: AbortSignal) => Promise<void>
  /** Called before each attempt. */
  readonly retrying: (event: RetryEvent) => void
  /** Called when there will be no further connection. */
  readonly ended: (error: Error) => void
}

export class Reconnect {
  readonly #options: ReconnectOptions
  readonly #backoff: Backoff
  readonly #abort = new AbortController()
  #connectedMs: number
  #isRunning = false
  /** Why the new connection was lost before `connect` had settled; undefined if it was not. */
  #lost: Error | undefined

  constructor(options: ReconnectOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.clock)
    this.#connectedMs = options.clock.monotonicMs()
  }

  /** The connection that `connect` has made has ended, for this reason. */
  lost(reason: Error): void {
    if (this.#abort.signal.aborted) return
    if (this.#isRunning) {
      this.#lost = reason
      return
    }
    if (this.#options.clock.monotonicMs() - this.#connectedMs >= LASTED_MS) this.#backoff.reset()
    this.#isRunning = true
    void this.#run(reason)
  }

  /** Makes no further attempts. */
  stop(): void {
    this.#abort.abort()
  }

  async #run(reason: Error): Promise<void> {
    const { clock, connect, retrying, ended } = this.#options
    const { signal } = this.#abort
    try {
      let error: Error | undefined = reason
      for (let attempt = 1; error !== undefined && !signal.aborted; attempt++) {
        const event = { attempt, error }
        await this.#backoff.pause(signal, (delayMs) => retrying({ ...event, delayMs }))
        if (!signal.aborted) error = await failureOf(connect(signal))
      }
    } catch (error) {
      if (!signal.aborted) ended(error as Error)
      return
    }
    this.#connectedMs = clock.monotonicMs()
    this.#isRunning = false
    const lost = this.#lost
    this.#lost = undefined
    if (lost !== undefined) this.lost(lost)
  }
}

/** Why the attempt has failed; undefined if it has not. Rejects if it has failed for good. */
async function failureOf(attempt: Promise<void>): Promise<Error | undefined> {
  try {
    await attempt
    return undefined
  } catch (error) {
    if (isTransient(error)) return error as Error
    throw error
  }
}

/** Commands that are called while there is no connection wait here for the next one. */
export class NextConnection {
  readonly #clock: ClientClock
  readonly #deadlineMs: number
  readonly #url: string
  /** Each is called with the connection, or with the reason that there will be none. */
  readonly #waiting = new Set<(next: ClientConnection | Error) => void>()

  constructor(clock: ClientClock, deadlineMs: number, url: string) {
    this.#clock = clock
    this.#deadlineMs = deadlineMs
    this.#url = url
  }

  /** Rejects if there is no connection in time, and with the reason of `signal` once that is aborted. */
  wait(signal?: AbortSignal): Promise<ClientConnection> {
    return new Promise((resolve, reject) => {
      const release = () => {
        timer.cancel()
        signal?.removeEventListener('abort', abort)
        this.#waiting.delete(settle)
      }
      const settle = (next: ClientConnection | Error) => {
        release()
        if (next instanceof Error) reject(next)
        else resolve(next)
      }
      const abort = () => {
        release()
        reject(signal?.reason)
      }
      const late = `${this.#url}: there was no connection for ${this.#deadlineMs / 1000} seconds`
      const timer = this.#clock.setTimeout(() => settle(new ConnectionError('TIMEOUT', late)), this.#deadlineMs)
      signal?.addEventListener('abort', abort)
      this.#waiting.add(settle)
    })
  }

  /** There is a connection, or there will be none. */
  settle(next: ClientConnection | Error): void {
    for (const settle of this.#waiting) settle(next)
  }
}
