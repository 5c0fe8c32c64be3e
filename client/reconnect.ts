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

export interface ReconnectOptions {
  readonly clock: ClientClock
  /** Connects and restores the session. Has to end when `signal` is aborted. */
  readonly connect: (signal: AbortSignal) => Promise<void>
  /** Called when there will be no further connection. */
  readonly ended: (error: Error) => void
}

export class Reconnect {
  readonly #options: ReconnectOptions
  readonly #abort = new AbortController()
  #attempts = 0
  #connectedMs: number
  #isRunning = false
  /** Whether the new connection was lost before `connect` had settled. */
  #isLost = false

  constructor(options: ReconnectOptions) {
    this.#options = options
    this.#connectedMs = options.clock.monotonicMs()
  }

  /** The connection that `connect` has made has ended. */
  lost(): void {
    if (this.#abort.signal.aborted) return
    if (this.#isRunning) {
      this.#isLost = true
      return
    }
    if (this.#options.clock.monotonicMs() - this.#connectedMs >= LASTED_MS) this.#attempts = 0
    this.#isRunning = true
    void this.#run()
  }

  /** Makes no further attempts. */
  stop(): void {
    this.#abort.abort()
  }

  async #run(): Promise<void> {
    const { clock, connect, ended } = this.#options
    const { signal } = this.#abort
    try {
      while (!signal.aborted) {
        await this.#pause()
        if (signal.aborted || (await succeeds(connect(signal)))) break
      }
    } catch (error) {
      if (!signal.aborted) ended(error as Error)
      return
    }
    this.#connectedMs = clock.monotonicMs()
    this.#isRunning = false
    const isLost = this.#isLost
    this.#isLost = false
    if (isLost) this.lost()
  }

  /** Waits between half of the interval and all of it, so that not all consumers of a producer come back at once. */
  #pause(): Promise<void> {
    const longestMs = Math.min(MAX_MS, FIRST_MS * 2 ** this.#attempts++)
    const { signal } = this.#abort
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = this.#options.clock.setTimeout(done, longestMs * (0.5 + Math.random() / 2))
      signal.addEventListener('abort', done)
    })
  }
}

/** Rejects if the attempt has failed for good. */
async function succeeds(attempt: Promise<void>): Promise<boolean> {
  try {
    await attempt
    return true
  } catch (error) {
    if (isTransient(error)) return false
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

  /** Rejects if there is no connection in time. */
  wait(): Promise<ClientConnection> {
    return new Promise((resolve, reject) => {
      const settle = (next: ClientConnection | Error) => {
        timer.cancel()
        this.#waiting.delete(settle)
        if (next instanceof Error) reject(next)
        else resolve(next)
      }
      const late = `${this.#url}: there was no connection for ${this.#deadlineMs / 1000} seconds`
      const timer = this.#clock.setTimeout(() => settle(new ConnectionError('TIMEOUT', late)), this.#deadlineMs)
      this.#waiting.add(settle)
    })
  }

  /** There is a connection, or there will be none. */
  settle(next: ClientConnection | Error): void {
    for (const settle of this.#waiting) settle(next)
  }
}
