/**
 * Lets few requests of a tenant be worked on at the same time, because much of each is in memory then. Whoever waits for too
 * long is told so, and whoever has gone meanwhile waits no more.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../kernel/core/clock.ts'

export interface TurnsOptions {
  /** Requests of a tenant that are worked on at the same time. */
  readonly atOnce: number
  /** Those that may wait for their turn, and for how long. */
  readonly waiting: number
  readonly patienceMs: number
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
}

interface Row {
  active: number
  /** Those that wait, each with what gives it its turn. */
  readonly waiting: Set<() => void>
}

export class Turns {
  readonly #options: TurnsOptions
  readonly #tenants = new Map<string, Row>()

  constructor(options: TurnsOptions) {
    this.#options = options
  }

  /**
   * Undefined if there is no turn: too many wait, it does not come in time, or `ended` says that nobody wants it any more. What had a
   * turn before and goes on (`isBegun`) is refused for neither of the first two.
   */
  async take<T>(
    tenant: string,
    ended: AbortSignal,
    act: () => Promise<T>,
    { isBegun = false } = {},
  ): Promise<T | undefined> {
    const mine = this.#tenants.get(tenant) ?? { active: 0, waiting: new Set() }
    if (mine.active < this.#options.atOnce) mine.active++
    else if (!isBegun && mine.waiting.size >= this.#options.waiting) return undefined
    else if (!(await this.#inTurn(mine, ended, isBegun))) return undefined
    this.#tenants.set(tenant, mine)
    try {
      return await act()
    } finally {
      const [next] = mine.waiting
      // The next one takes over the place.
      if (next !== undefined) next()
      else if (--mine.active === 0) this.#tenants.delete(tenant)
    }
  }

  /** Whether the turn comes. */
  #inTurn(mine: Row, ended: AbortSignal, isBegun: boolean): Promise<boolean> {
    const { clock, patienceMs } = this.#options
    if (ended.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const end = (isTurn: boolean): void => {
        mine.waiting.delete(begin)
        ended.removeEventListener('abort', give)
        clock.clear(timer)
        resolve(isTurn)
      }
      const begin = (): void => end(true)
      const give = (): void => end(false)
      const timer = isBegun ? undefined : clock.setTimeout(give, patienceMs)
      mine.waiting.add(begin)
      ended.addEventListener('abort', give)
    })
  }
}

/** Aborted when the answer has gone out, or its connection has ended before. */
export function endOf(response: Pick<ServerResponse, 'destroyed' | 'once'>): AbortSignal {
  const controller = new AbortController()
  // While it was found out who asks, it may have ended: then nothing would say so any more.
  if (response.destroyed) controller.abort()
  else response.once('close', () => controller.abort())
  return controller.signal
}
