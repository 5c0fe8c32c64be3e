/** Who leads, as far as other parts of a node have to know it: where to connect to, and when that changes. */
import { type Address, formatAddress } from '../kernel/core/address.ts'

/** The node that leads. */
export interface Leader {
  readonly name: string
  /** That of `cluster.nodes`. */
  readonly address: Address
  /** It is of an earlier version, which takes streams without an answer. */
  readonly isSilent?: boolean
}

export interface Leadership {
  /** Undefined while no node is known to lead. */
  readonly leader: Leader | undefined
  /** Calls `listener` after each change; returns a function that ends this. */
  onChange(listener: () => void): () => void
}

/** Calls those who follow the node that leads when it is another one, or none. */
export class LeaderListeners {
  readonly #listeners = new Set<() => void>()
  #told: Leader | undefined

  /** Returns a function that ends it. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** `leader`: the one that leads now. */
  tell(leader: Leader | undefined): void {
    if (isSameLeader(leader, this.#told)) return
    this.#told = leader
    for (const listener of this.#listeners) listener()
  }
}

export function isSameLeader(one: Leader | undefined, other: Leader | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return one.name === other.name && formatAddress(one.address) === formatAddress(other.address)
}
