/** Metric, result and channel ids: numbers from 1 to 0x7FFFFFFF without an order, unique among those in use and not reused soon [MON 5]. */
import { randomInt } from 'node:crypto'
import type { Identity } from '../../auth/permissions.ts'
import { MAX_ID } from '../../protocol/monitor/constants.ts'

/**
 * Every number below 2^31 once before any comes again, in an order that differs in each process: multiplying by an odd number and
 * folding the upper half into the lower one are one-to-one. To remember what was freed costs a QUERY twice as much.
 */
class Shuffled {
  readonly #factors = [oddNumber(), oddNumber()] as const
  #next = randomInt(MAX_ID)

  next(): number {
    const [first, second] = this.#factors
    let number = Math.imul(this.#next++, first) & MAX_ID
    number ^= number >>> 16
    number = Math.imul(number, second) & MAX_ID
    return number ^ (number >>> 15)
  }
}

/** So large that neighbours are far apart. */
function oddNumber(): number {
  return randomInt(2 ** 29, 2 ** 31) | 1
}

export class Ids {
  readonly #used = new Set<number>()
  readonly #shuffled = new Shuffled()

  take(): number {
    for (;;) {
      const id = this.#shuffled.next()
      if (id > 0 && this.claim(id)) return id
    }
  }

  /** Takes an id that comes back from the store; returns false if it is in use. */
  claim(id: number): boolean {
    if (this.#used.has(id)) return false
    this.#used.add(id)
    return true
  }

  /** Frees an id, which is taken again when all others were. */
  free(id: number): void {
    this.#used.delete(id)
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
