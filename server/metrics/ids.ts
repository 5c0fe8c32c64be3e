/** Metric, result and channel ids: random, 1..0x7FFFFFFF, unique among the living, never handed out again soon [MON 5]. */
import { randomInt } from 'node:crypto'
import { MAX_ID } from '../../protocol/monitor/constants.ts'

const REMEMBERED = 65_536

export class Ids {
  readonly #used = new Set<number>()
  /** Ids that died lately, in a ring. */
  readonly #dead = new Uint32Array(REMEMBERED)
  #oldest = 0

  take(): number {
    for (;;) {
      const id = randomInt(1, MAX_ID + 1)
      if (this.claim(id)) return id
    }
  }

  /** An id that comes back from the store; false if it is taken. */
  claim(id: number): boolean {
    if (this.#used.has(id)) return false
    this.#used.add(id)
    return true
  }

  /** It stays taken until another 65,536 have died. */
  free(id: number): void {
    this.#used.delete(this.#dead[this.#oldest] as number)
    this.#dead[this.#oldest] = id
    this.#oldest = (this.#oldest + 1) % REMEMBERED
  }
}
