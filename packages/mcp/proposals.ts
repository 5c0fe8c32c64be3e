/**
 * Controls that were proposed with one token: what is submitted later is exactly what was checked before. A proposal is known by the
 * idempotency key with which it is submitted, so that the server runs it once, however often it is submitted.
 */
import { randomUUID } from 'node:crypto'
import type { Arguments } from '../../client/index.ts'

export interface Proposal {
  readonly key: string
  readonly control: string
  readonly args: Arguments
  /** Whether it was submitted here: then it may wait for approval. */
  isSubmitted: boolean
}

/** The oldest is forgotten for one more; it can be proposed again with its key. */
const MAX_PROPOSALS = 100

export class Proposals {
  readonly #byKey = new Map<string, Proposal>()

  /** With the key of an earlier one, such as one that the program has forgotten, it takes the place of that. */
  add(control: string, args: Arguments, key: string = randomUUID()): Proposal {
    const proposal = { key, control, args, isSubmitted: false }
    this.#byKey.delete(key)
    this.#byKey.set(key, proposal)
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size <= MAX_PROPOSALS) break
      this.#byKey.delete(oldest)
    }
    return proposal
  }

  find(key: string): Proposal | undefined {
    return this.#byKey.get(key)
  }
}
