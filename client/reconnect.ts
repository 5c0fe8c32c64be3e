/**
 * Keeps a connection: makes another one when it is lost, at growing intervals, until that cannot help any more or it is
 * ended from here.
 */
import type { ClientClock } from './clock.ts'
import { type ConnectionError, isPassing } from './errors.ts'

const FIRST_MS = 100
const MAX_MS = 10_000
/** A connection that was shorter does not count as a success. */
const LASTED_MS = 5_000

export interface ReconnectOptions {
  readonly clock: ClientClock
  /** Connects and makes everything as it was. Has to end when `signal` is aborted. */
  readonly connect: (signal: AbortSignal) => Promise<void>
  /** For good. */
  readonly ended: (error: Error) => void
}

export class Reconnect {
  readonly #options: ReconnectOptions
  readonly #abort = new AbortController()
  #attempts = 0
  #connectedMs: number
  #isRunning = false
  #lost: ConnectionError | undefined

  constructor(options: ReconnectOptions) {
    this.#options = options
    this.#connectedMs = options.clock.monotonicMs()
  }

  /** The connection that `connect` has made has ended. */
  lost(reason: ConnectionError): void {
    if (this.#abort.signal.aborted) return
    if (this.#isRunning) {
      this.#lost = reason
      return
    }
    if (this.#options.clock.monotonicMs() - this.#connectedMs >= LASTED_MS) this.#attempts = 0
    this.#isRunning = true
    void this.#again()
  }

  /** No more attempts. */
  stop(): void {
    this.#abort.abort()
  }

  async #again(): Promise<void> {
    const { clock, connect, ended } = this.#options
    const { signal } = this.#abort
    try {
      while (!signal.aborted) {
        await this.#pause()
        if (signal.aborted || (await this.#attempt(connect, signal))) break
      }
    } catch (error) {
      if (!signal.aborted) ended(error as Error)
      return
    }
    this.#connectedMs = clock.monotonicMs()
    this.#isRunning = false
    const lost = this.#lost
    this.#lost = undefined
    if (lost) this.lost(lost)
  }

  /** Whether it came about. Rejects where it never will. */
  async #attempt(connect: ReconnectOptions['connect'], signal: AbortSignal): Promise<boolean> {
    try {
      await connect(signal)
      return true
    } catch (error) {
      if (isPassing(error)) return false
      throw error
    }
  }

  /** Between half of it and all: many consumers of one producer do not come at once. */
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
