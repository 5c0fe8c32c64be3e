/**
 * Keeps a consumer connected: a lost connection is made again, at growing intervals, until that cannot succeed any more or
 * the consumer is closed.
 */
import { TO_PRODUCER } from '../protocol/kept/backoff.ts'
import { type ConnectionAttempt, KeptConnection } from '../protocol/kept/kept-connection.ts'
import { onAbort, unlessAborted } from '../protocol/kept/pause.ts'
import type { ClientClock } from './clock.ts'
import type { ClientConnection } from './connection.ts'
import { ConnectionError, isTransient } from './errors.ts'

/** Another attempt to connect is going to be made. */
export interface RetryEvent {
  /** Its number: 1 for the first after the connection was lost, or after the first attempt has failed. */
  readonly attempt: number
  /** How long it is until then. */
  readonly delayMs: number
  /** Why there is no connection: what ended the last one, or the last attempt. */
  readonly error: Error
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
  readonly #kept: KeptConnection
  /** Attempts since the connection was lost. */
  #attempts = 0
  #ended: (reason: Error) => void = () => {}

  /** There is a connection already. */
  constructor({ clock, connect, retrying, ended }: ReconnectOptions) {
    let isFirst = true
    const run = async ({ signal, connected }: ConnectionAttempt): Promise<Error> => {
      // The new connection may be lost before `connect` has settled.
      const lost = new Promise<Error>((resolve) => {
        this.#ended = resolve
      })
      if (!isFirst) await connect(signal)
      isFirst = false
      this.#attempts = 0
      connected()
      return unlessAborted(signal, lost)
    }
    this.#kept = new KeptConnection({
      clock,
      intervals: TO_PRODUCER,
      run,
      isFinal: (error) => !isTransient(error),
      changed: (state) => {
        if (state.is === 'ended') ended(state.reason)
        if (state.is === 'waiting') retrying({ attempt: ++this.#attempts, delayMs: state.delayMs, error: state.lost })
      },
    })
    this.#kept.start()
  }

  /** The connection that `connect` has made has ended, for this reason. */
  lost(reason: Error): void {
    this.#ended(reason)
  }

  /** Makes no further attempts. */
  stop(): void {
    void this.#kept.stop(new Error('the consumer was closed'))
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
        ignore()
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
      const ignore = onAbort(signal, abort)
      this.#waiting.add(settle)
    })
  }

  /** There is a connection, or there will be none. */
  settle(next: ClientConnection | Error): void {
    for (const settle of this.#waiting) settle(next)
  }
}
