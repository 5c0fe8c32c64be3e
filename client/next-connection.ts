/** Commands that are called while there is no connection wait here for the next one. */
import { unlessAborted } from '../protocol/kept/pause.ts'
import type { ClientClock } from './clock.ts'
import type { ClientConnection } from './connection.ts'
import { ConnectionError } from './errors.ts'

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
    let release = () => {}
    const next = new Promise<ClientConnection>((resolve, reject) => {
      const settle = (next: ClientConnection | Error) => (next instanceof Error ? reject(next) : resolve(next))
      const late = `${this.#url}: there was no connection for ${this.#deadlineMs / 1000} seconds`
      const timer = this.#clock.setTimeout(() => settle(new ConnectionError('TIMEOUT', late)), this.#deadlineMs)
      this.#waiting.add(settle)
      release = () => {
        timer.cancel()
        this.#waiting.delete(settle)
      }
    })
    return unlessAborted(signal, next).finally(release)
  }

  /** There is a connection, or there will be none. */
  settle(next: ClientConnection | Error): void {
    for (const settle of this.#waiting) settle(next)
  }
}
