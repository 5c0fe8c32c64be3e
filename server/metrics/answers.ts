/** Ids of QUERYs whose answer is to come: each accepts only STOP and dies with its answer [MON 6.11]. */
import type { Identity } from '../../auth/permissions.ts'
import type { Ids } from './ids.ts'

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

  /** The answer is there, or is not wanted any more; false if it was not open. */
  close(id: number): boolean {
    if (!this.#open.delete(id)) return false
    this.#ids.free(id)
    return true
  }
}
