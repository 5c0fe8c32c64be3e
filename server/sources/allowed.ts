/**
 * The senders that a source takes packets from. The address of a datagram may be an IPv4 address written as IPv6 (on a
 * socket bound to `::`), and must come out the same as over IPv4: it is the identity of the host.
 */
import { BlockList, isIP } from 'node:net'
import { unmapped } from '../../auth/network.ts'
import type { Network } from '../core/address.ts'

/** How many answers are remembered: `BlockList.check` costs a microsecond, and forged addresses cost memory. */
const REMEMBERED = 4096

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

  /** `address` as Node gives it with a datagram. */
  of(address: string): Sender {
    const known = this.#known.get(address)
    if (known) return known
    if (this.#known.size >= REMEMBERED) this.#known.clear()
    const source = this.#judge(address)
    this.#known.set(address, source)
    return source
  }

  #judge(given: string): Sender {
    const address = unmapped(given)
    // A link-local address comes with its interface, `%eth0`, which distinguishes equal ones but is not part of a network.
    const [bare = ''] = address.split('%')
    const version = isIP(bare)
    return { address, allowed: version !== 0 && this.#allowed.check(bare, version === 4 ? 'ipv4' : 'ipv6') }
  }
}
