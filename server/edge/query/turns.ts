/** Which queries are worked on at the same time, over all listeners: few of a tenant, and not too many of all. */
import type { Clock } from '../../kernel/core/clock.ts'
import { type MemoryPlace, MemoryRoom } from '../memory-room.ts'
import { Turns } from '../turns.ts'

/** Those of a tenant that wait, and for how long: a page of Grafana asks for all its panels at once. */
const WAITING = 64
const PATIENCE_MS = 30_000
/** What all tenants have together. */
const OF_ALL = { atOnce: 16, waiting: 64, patienceMs: 10_000 }
/** What all that are worked on, or being answered, hold together, as far as it is counted. */
const MOST_BYTES = 96 * 2 ** 20

export class QueryTurns {
  readonly #ofTenant: Turns
  readonly #ofAll: Turns
  readonly #memory: MemoryRoom

  constructor(maxConcurrent: number, clock: Pick<Clock, 'setTimeout' | 'clear'>, mostBytes = MOST_BYTES) {
    this.#ofTenant = new Turns({ atOnce: maxConcurrent, waiting: WAITING, patienceMs: PATIENCE_MS, clock })
    this.#ofAll = new Turns({ ...OF_ALL, clock })
    this.#memory = new MemoryRoom(mostBytes)
  }

  /** Whether there was a turn. `act` gets a place for what it holds, which it has until it ends. */
  async take(tenant: string, ended: AbortSignal, act: (memory: MemoryPlace) => Promise<void>): Promise<boolean> {
    const done = async (): Promise<true> => {
      const memory = this.#memory.enter(tenant)
      try {
        await act(memory)
      } finally {
        memory.leave()
      }
      return true
    }
    const taken = await this.#ofTenant.take(tenant, ended, () => this.#ofAll.take('', ended, done))
    return taken ?? false
  }
}
