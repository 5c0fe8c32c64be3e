/** Metric, result and channel ids: random numbers from 1 to 0x7FFFFFFF, unique among those in use and not reused soon [MON 5]. */
import { randomInt } from 'node:crypto'
import type { Identity } from '../../../auth/permissions.ts'
import { MAX_ID } from '../../../protocol/monitor/constants.ts'

/** Two would do for numbers that look random; four hide the key. */
const ROUNDS = 4
const HALF = 0xffff

/**
 * All numbers of 32 bits in an order that a random key decides, none twice: a Feistel network over a counter. To draw random numbers,
 * and to remember 65,536 of those that were freed, takes several times as long.
 */
class Shuffled {
  readonly #key = Array.from({ length: ROUNDS }, () => randomInt(2 ** 32))
  #next = randomInt(2 ** 32)

  next(): number {
    const number = this.#next++
    let [left, right] = [(number >>> 16) & HALF, number & HALF]
    for (const part of this.#key) {
      const mixed = Math.imul((right ^ part) + 1, 0x9e3779b1)
      const scattered = Math.imul(mixed ^ (mixed >>> 15) ^ (part >>> 16), 0x85ebca6b)
      ;[left, right] = [right, left ^ ((scattered ^ (scattered >>> 13)) & HALF)]
    }
    return ((left << 16) | right) >>> 0
  }
}

export class Ids {
  readonly #used = new Set<number>()
  readonly #shuffled = new Shuffled()

  take(): number {
    for (;;) {
      const id = this.#shuffled.next()
      if (id > 0 && id <= MAX_ID && this.claim(id)) return id
    }
  }

  /** Takes an id that comes back from the store; returns false if it is in use. */
  claim(id: number): boolean {
    if (this.#used.has(id)) return false
    this.#used.add(id)
    return true
  }

  /** Frees an id. One that was taken here is taken again when all others were. */
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
