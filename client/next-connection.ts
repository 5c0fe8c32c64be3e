/** Commands that were called while there is no connection wait here for the next one. */
import type { ClientClock } from './clock.ts'
import type { Connection } from './connection.ts'
import { ConnectionError } from './errors.ts'

interface Waiting {
  resolve(connection: Connection): void
  reject(error: Error): void
}

export class NextConnection {
  readonly #clock: ClientClock
  readonly #deadlineMs: number
  readonly #url: string
  readonly #waiting = new Set<Waiting>()

  constructor(clock: ClientClock, deadlineMs: number, url: string) {
    this.#clock = clock
    this.#deadlineMs = deadlineMs
    this.#url = url
  }

  /** Rejects where none comes in time. */
  wait(): Promise<Connection> {
    const late = `${this.#url}: there was no connection for ${this.#deadlineMs / 1000} seconds`
    return new Promise((resolve, reject) => {
      const settle = () => {
        timer.cancel()
        this.#waiting.delete(waiting)
      }
      const waiting: Waiting = {
        resolve(connection) {
          settle()
          resolve(connection)
        },
        reject(error) {
          settle()
          reject(error)
        },
      }
      const timer = this.#clock.setTimeout(() => waiting.reject(new ConnectionError('TIMEOUT', late)), this.#deadlineMs)
      this.#waiting.add(waiting)
    })
  }

  came(connection: Connection): void {
    for (const waiting of this.#waiting) waiting.resolve(connection)
  }

  /** There will be none. */
  end(error: Error): void {
    for (const waiting of this.#waiting) waiting.reject(error)
  }
}
