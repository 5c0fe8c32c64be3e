/**
 * The senders that a source accepts packets from. On a socket bound to `::`, the address of a datagram may be an IPv4
 * address written as IPv6. It is converted to its IPv4 form, because it identifies the host.
 */
import { BlockList, isIP } from 'node:net'
import { unmapped } from '../../auth/network.ts'
import type { Network } from '../core/address.ts'

/** Cached results: `BlockList.check` takes a microsecond, but forged addresses must not cost memory without limit. */
const MAX_CACHED = 4096

export interface Sender {
  readonly address: string
  readonly allowed: boolean
}

export class AllowedSenders {
  readonly #allowed = new BlockList()
  readonly #known = new Map<string, Sender>()

  constructor(allow: readonly Network[]) {
    for (const { address, prefix, family } of allow) this.#allowed.addSubnet(address, prefix, family)
  }

  /** `address` is what Node reports for a datagram. */
  check(address: string): Sender {
    const known = this.#known.get(address)
    if (known) return known
    if (this.#known.size >= MAX_CACHED) this.#known.clear()
    const source = this.#checkNew(address)
    this.#known.set(address, source)
    return source
  }

  #checkNew(given: string): Sender {
    const address = unmapped(given)
    // A link-local address ends in its interface, `%eth0`, which tells equal addresses apart but is not part of a network.
    const [bare = ''] = address.split('%')
    const version = isIP(bare)
    return { address, allowed: version !== 0 && this.#allowed.check(bare, version === 4 ? 'ipv4' : 'ipv6') }
  }
}
