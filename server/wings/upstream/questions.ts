/**
 * The questions at one upstream that are not answered yet. It takes only so many of one identity, and this server is one identity
 * there: so each user here has a part of them, and those who wait have turns.
 */
import type { Clock } from '../../kit/running.ts'

/** An upstream takes 1,024 at once; the rest is for what this server asks for itself. */
const MAX_ASKED = 1_000
/** Of one user. */
const MAX_OF_USER = 250

export class Questions {
  readonly #clock: Pick<Clock, 'setTimeout' | 'clear'>
  #asked = 0
  /** How many of each user are asked. */
  readonly #askedOf = new Map<number, number>()
  /** Those who wait, by user; the next is the first user who may ask. */
  readonly #waiting = new Map<number, Set<() => void>>()
  #late = 0

  constructor(clock: Pick<Clock, 'setTimeout' | 'clear'>) {
    this.#clock = clock
  }

  /** Those whose time was over before it was their turn. */
  get late(): number {
    return this.#late
  }

  /** Sends a question of a user when it has its turn. Undefined if that does not come within `waitMs`; rejects as `send` does. */
  async ask<T>(user: number, waitMs: number, send: () => Promise<T>): Promise<T | undefined> {
    if (this.#mayAsk(user)) this.#count(user, 1)
    else if (!(await this.#turn(user, waitMs))) return undefined
    try {
      return await send()
    } finally {
      this.#count(user, -1)
      this.#next()
    }
  }

  #mayAsk(user: number): boolean {
    return this.#asked < MAX_ASKED && (this.#askedOf.get(user) ?? 0) < MAX_OF_USER
  }

  #count(user: number, more: number): void {
    this.#asked += more
    const asked = (this.#askedOf.get(user) ?? 0) + more
    if (asked > 0) this.#askedOf.set(user, asked)
    else this.#askedOf.delete(user)
  }

  /** Resolves with false if the time is over before. */
  #turn(user: number, waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(user) ?? new Set()
      this.#waiting.set(user, waiting)
      const end = (hasTurn: boolean): void => {
        this.#clock.clear(timer)
        waiting.delete(begin)
        if (waiting.size === 0) this.#waiting.delete(user)
        resolve(hasTurn)
      }
      const begin = (): void => {
        this.#count(user, 1)
        end(true)
      }
      const timer = this.#clock.setTimeout(() => {
        this.#late++
        end(false)
      }, waitMs)
      waiting.add(begin)
    })
  }

  /** A place is free. */
  #next(): void {
    for (const [user, waiting] of this.#waiting) {
      if (!this.#mayAsk(user)) continue
      // Who has had a turn is the last one from now on.
      this.#waiting.delete(user)
      this.#waiting.set(user, waiting)
      const [begin] = waiting
      begin?.()
      return
    }
  }
}
