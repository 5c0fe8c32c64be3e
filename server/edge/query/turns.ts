/** Which queries are worked on at the same time, over all listeners: few of a tenant, and not too many of all. */
import type { Clock } from '../../kernel/core/clock.ts'
import { Turns } from '../turns.ts'

/** Those of a tenant that wait, and for how long: a page of Grafana asks for all its panels at once. */
const WAITING = 64
const PATIENCE_MS = 30_000
/** What all tenants have together: each may hold the memory of its result. */
const OF_ALL = { atOnce: 16, waiting: 64, patienceMs: 10_000 }

export class QueryTurns {
  readonly #ofTenant: Turns
  readonly #ofAll: Turns

  constructor(maxConcurrent: number, clock: Pick<Clock, 'setTimeout' | 'clear'>) {
    this.#ofTenant = new Turns({ atOnce: maxConcurrent, waiting: WAITING, patienceMs: PATIENCE_MS, clock })
    this.#ofAll = new Turns({ ...OF_ALL, clock })
  }

  /** Whether there was a turn. */
  async take(tenant: string, ended: AbortSignal, act: () => Promise<void>): Promise<boolean> {
    const done = async (): Promise<true> => {
      await act()
      return true
    }
    const taken = await this.#ofTenant.take(tenant, ended, () => this.#ofAll.take('', ended, done))
    return taken ?? false
  }
}
