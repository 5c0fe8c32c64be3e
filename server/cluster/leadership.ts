/** Who leads, as far as other parts of a node have to know it: where to connect to, and when that changes. */
import { type Address, formatAddress } from '../core/address.ts'

/** The node that leads. */
export interface Leader {
  readonly name: string
  /** That of `cluster.nodes`. */
  readonly address: Address
}

export interface Leadership {
  /** Undefined while no node is known to lead. */
  readonly leader: Leader | undefined
  /** Calls `listener` after each change; returns a function that ends this. */
  onChange(listener: () => void): () => void
}

export function isSameLeader(one: Leader | undefined, other: Leader | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return one.name === other.name && formatAddress(one.address) === formatAddress(other.address)
}
