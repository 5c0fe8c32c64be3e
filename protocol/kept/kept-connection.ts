/**
 * A connection that is made again whenever it is lost, for as long as it is wanted. There is one attempt or connection at a time:
 *
 * ```text
 *            start             connected()
 *   ────────────► connecting ─────────────► connected
 *                  ▲      │ failed               │ lost
 *   the pause ends │      ▼                      │
 *                  └── waiting ◄─────────────────┘            stop(), from anywhere: ended
 * ```
 *
 * Its user opens the connection, notices a silent peer by the means of its protocol (only that knows what to ask, and when
 * silence is its own fault), says when the connection is of use, and stops it if no other may follow. When to try again is
 * decided here.
 */
import { Backoff, type Intervals } from './backoff.ts'
import { type PauseClock, pause } from './pause.ts'

export type KeptState =
  | { readonly is: 'connecting' }
  | { readonly is: 'connected' }
  /** `failures` counts the connections in a row that failed or were not steady; `nextMs` is when the next attempt is due. */
  | {
      readonly is: 'waiting'
      readonly lost: Error
      readonly failures: number
      readonly delayMs: number
      readonly nextMs: number
    }
  | { readonly is: 'ended' }

/** One attempt, and the connection that it makes. */
export interface ConnectionAttempt {
  /** Aborted when the connection has to end, and then `run` has to settle soon; also when it has ended. */
  readonly signal: AbortSignal
  /** The connection is of use from now on. What is not of use for `steadyMs` counts as a failed attempt. */
  connected(): void
  /** The next connection will get further, whatever ends this one: it is made after the first interval. */
  progressed(): void
}

export interface KeptConnectionOptions {
  /** `monotonicMs`: never goes back. */
  readonly clock: PauseClock & { monotonicMs(): number }
  readonly intervals: Intervals
  /** 0..1 */
  readonly random?: (() => number) | undefined
  /** Makes a connection, and resolves with the reason when it has ended. Rejects if there was none. Leaves nothing open. */
  readonly run: (attempt: ConnectionAttempt) => Promise<Error>
  /** Called with each new state, except after `stop`. Must not throw. */
  readonly changed?: (state: KeptState) => void
}

export class KeptConnection {
  readonly #options: KeptConnectionOptions
  readonly #backoff: Backoff
  readonly #stopped = new AbortController()
  /** Of the attempt or connection that there is, or was last. */
  #attempt = new AbortController()
  #state: KeptState = { is: 'connecting' }
  #running: Promise<void> | undefined

  constructor(options: KeptConnectionOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.intervals, options.random)
  }

  get state(): KeptState {
    return this.#state
  }

  /** Makes the first attempt, and all others. */
  start(): void {
    this.#running ??= this.#keep()
  }

  /** Ends the attempt or connection that there is; the next one is made after a pause. */
  drop(reason: Error): void {
    this.#attempt.abort(reason)
  }

  /** Ends it for good. Settles when nothing is left open. */
  async stop(reason: Error): Promise<void> {
    this.#state = { is: 'ended' }
    this.#stopped.abort()
    this.#attempt.abort(reason)
    await this.#running
  }

  async #keep(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stopped
    while (!signal.aborted) {
      const lost = await this.#connection()
      const delayMs = this.#backoff.next()
      const nextMs = clock.monotonicMs() + delayMs
      this.#become({ is: 'waiting', lost, failures: this.#backoff.pauses, delayMs, nextMs })
      await pause(clock, delayMs, signal)
    }
  }

  /** One connection, from the attempt to its end. Never rejects. */
  async #connection(): Promise<Error> {
    const { clock, intervals, run } = this.#options
    const attempt = new AbortController()
    const { signal } = attempt
    this.#attempt = attempt
    this.#become({ is: 'connecting' })
    let connectedMs: number | undefined
    try {
      signal.throwIfAborted()
      return await run({
        signal,
        connected: () => {
          if (signal.aborted) return
          connectedMs = clock.monotonicMs()
          this.#become({ is: 'connected' })
        },
        progressed: () => {
          if (!signal.aborted) this.#backoff.reset()
        },
      })
    } catch (error) {
      return error as Error
    } finally {
      attempt.abort()
      if (clock.monotonicMs() - (connectedMs ?? Number.NaN) >= intervals.steadyMs) this.#backoff.reset()
    }
  }

  #become(state: KeptState): void {
    if (this.#state.is === 'ended') return
    this.#state = state
    this.#options.changed?.(state)
  }
}
