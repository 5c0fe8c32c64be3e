/**
 * Metric, result and channel ids: random numbers from 1 to 0x7FFFFFFF, unique among those in use and not reused soon [MON 5].
 */
import { randomInt } from 'node:crypto'
import type { Identity } from '../../auth/permissions.ts'
import { MAX_ID } from '../../protocol/monitor/constants.ts'

const REMEMBERED = 65_536

export class Ids {
  readonly #used = new Set<number>()
  /** A ring of the ids that were freed last. */
  readonly #freed = new Uint32Array(REMEMBERED)
  #oldest = 0

  take(): number {
    for (;;) {
      const id = randomInt(1, MAX_ID + 1)
      if (this.claim(id)) return id
    }
  }

  /** Takes an id that comes back from the store; returns false if it is in use. */
  claim(id: number): boolean {
    if (this.#used.has(id)) return false
    this.#used.add(id)
    return true
  }

  /** Frees an id, which stays reserved until another 65,536 ids are freed. */
  free(id: number): void {
    this.#used.delete(this.#freed[this.#oldest] as number)
    this.#freed[this.#oldest] = id
    this.#oldest = (this.#oldest + 1) % REMEMBERED
  }
}

/** The ids of QUERYs that are not answered yet. Such an id accepts only STOP and ends with its answer [MON 6.11]. */
export class QueryIds {
  readonly #ids: Ids
  readonly #open = new Map<number, number>()

  constructor(ids: Ids) {
    this.#ids = ids
  }

  open(identity: Identity): number {
    const id = this.#ids.take()
    this.#open.set(id, identity.userId)
    return id
  }

  has(identity: Identity, id: number): boolean {
    return this.#open.get(id) === identity.userId
  }

  /** Ends an id, because its answer is there or is not wanted any more. Returns false if it was not open. */
  close(id: number): boolean {
    if (!this.#open.delete(id)) return false
    this.#ids.free(id)
    return true
  }
}
