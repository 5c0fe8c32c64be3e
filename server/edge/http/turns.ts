/** Lets few requests of a tenant be worked on at the same time, because much of each is in memory then. */

export interface TurnsOptions {
  /** Requests of a tenant that are worked on at the same time. */
  readonly atOnce: number
  /** Those that may wait for their turn. */
  readonly waiting: number
}

interface Row {
  active: number
  readonly waiting: (() => void)[]
}

export class Turns {
  readonly #options: TurnsOptions
  readonly #tenants = new Map<string, Row>()

  constructor(options: TurnsOptions) {
    this.#options = options
  }

  /** Undefined if too many wait. */
  take<T>(tenant: string, act: () => Promise<T>): Promise<T> | undefined {
    const mine = this.#tenants.get(tenant) ?? { active: 0, waiting: [] }
    if (mine.waiting.length >= this.#options.waiting) return undefined
    this.#tenants.set(tenant, mine)
    return this.#inTurn(tenant, mine, act)
  }

  async #inTurn<T>(tenant: string, mine: Row, act: () => Promise<T>): Promise<T> {
    if (mine.active < this.#options.atOnce) mine.active++
    else await new Promise<void>((resolve) => mine.waiting.push(resolve))
    try {
      return await act()
    } finally {
      const next = mine.waiting.shift()
      // The next one takes over the place.
      if (next !== undefined) next()
      else if (--mine.active === 0) this.#tenants.delete(tenant)
    }
  }
}
