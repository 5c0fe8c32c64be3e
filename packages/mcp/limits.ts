/** How much may be asked for with one token, in all of its sessions together: calls in a minute, and calls at the same time. */

const MINUTE_MS = 60_000
const MAX_AT_ONCE = 8

export interface CallCounts {
  /** Calls that were let in. */
  readonly calls: number
  /** Calls that were refused. */
  readonly refused: number
}

export class CallLimits {
  readonly #perMinute: number
  readonly #now: () => number
  /** When each call of the last minute began, the oldest first. */
  readonly #begun: number[] = []
  #running = 0
  #calls = 0
  #refused = 0

  /** `now` gives milliseconds that never go back. */
  constructor(perMinute: number, now: () => number) {
    this.#perMinute = perMinute
    this.#now = now
  }

  get counts(): CallCounts {
    return { calls: this.#calls, refused: this.#refused }
  }

  /** Whether no call runs, and none of the last minute counts. */
  get isIdle(): boolean {
    this.#forget()
    return this.#running === 0 && this.#begun.length === 0
  }

  /** Returns the function that ends the call. Throws Error with a text for the agent. */
  begin(): () => void {
    this.#forget()
    const [oldest] = this.#begun
    if (oldest !== undefined && this.#begun.length >= this.#perMinute) {
      const waitS = Math.max(1, Math.ceil((oldest + MINUTE_MS - this.#now()) / 1_000))
      throw this.#refusal(`this token may make ${this.#perMinute} calls a minute: try again in ${waitS} s`)
    }
    if (this.#running >= MAX_AT_ONCE) {
      throw this.#refusal(`${MAX_AT_ONCE} calls with this token are running already: wait until one of them has ended`)
    }
    this.#begun.push(this.#now())
    this.#running++
    this.#calls++
    let isEnded = false
    return () => {
      if (isEnded) return
      isEnded = true
      this.#running--
    }
  }

  #refusal(message: string): Error {
    this.#refused++
    return new Error(message)
  }

  #forget(): void {
    const since = this.#now() - MINUTE_MS
    const kept = this.#begun.findIndex((begun) => begun > since)
    this.#begun.splice(0, kept < 0 ? this.#begun.length : kept)
  }
}
