/**
 * The sensors of a source, one per tenant. Each has its own hosts, limits and counters, so that no tenant can see, rename
 * or crowd out what another sends. The address of a sender decides for which tenant it sends.
 */

import { BlockList, isIP } from 'node:net'
import { unmapped } from '../../auth/network.ts'
import type { Network } from '../kernel/core/address.ts'
import type { Meter, Poll } from './poll.ts'

/** The arguments of a sensor besides its section. */
export interface TenantFeed {
  readonly meter?: Meter
  /** The tenant; undefined if it is that of the section itself. */
  readonly named?: string
}

/** The keys that the sections of these sources have in common. */
interface FeedSection {
  readonly tenant: string
  readonly allow: readonly Network[]
  readonly feeds: readonly { readonly tenant: string; readonly allow: readonly Network[] }[]
}

/** Makes the sensor of the section's own tenant, and one for each tenant named by a `feed` table. */
export function sensorsByTenant<Section extends FeedSection, Sensor extends Receiving>(
  section: Section,
  { meterOf }: Pick<Poll, 'meterOf'>,
  make: (section: Section, options: TenantFeed) => Sensor,
): SensorsByTenant<Sensor> {
  return new SensorsByTenant({
    own: make(section, { meter: meterOf(section.tenant) }),
    others: section.feeds.map(({ tenant, allow }) => ({
      allow,
      sensor: make({ ...section, tenant, allow }, { meter: meterOf(tenant), named: tenant }),
    })),
  })
}

/** Decides which senders it accepts. */
interface Receiving {
  readonly senders: AllowedSenders
}

export interface SensorsByTenantOptions<S> {
  /** The sensor for all senders that belong to no other tenant; its own `allow` decides whether they are accepted. */
  readonly own: S
  readonly others: readonly { readonly allow: readonly Network[]; readonly sensor: S }[]
}

export class SensorsByTenant<S extends Receiving> {
  /** The sensor of the section's own tenant. */
  readonly own: S
  readonly #others: readonly { readonly senders: AllowedSenders; readonly sensor: S }[]

  constructor({ own, others }: SensorsByTenantOptions<S>) {
    this.own = own
    this.#others = others.map(({ allow, sensor }) => ({ senders: new AllowedSenders(allow), sensor }))
  }

  /** Puts another list in the place of the section's `allow`. */
  allow(networks: readonly Network[]): void {
    this.own.senders.replace(networks)
  }

  /** The sensor for a sender; `address` is what Node reports. */
  of(address: string): S {
    for (const { senders, sensor } of this.#others) if (senders.check(address).allowed) return sensor
    return this.own
  }

  all(): S[] {
    return [this.own, ...this.#others.map(({ sensor }) => sensor)]
  }
}

/** Cached results: `BlockList.check` takes a microsecond, but forged addresses must not cost memory without limit. */
const MAX_CACHED = 4096

export interface Sender {
  readonly address: string
  readonly allowed: boolean
}

/**
 * The senders that a source accepts packets from. On a socket bound to `::`, the address of a datagram may be an IPv4
 * address written as IPv6. It is converted to its IPv4 form, because it identifies the host.
 */
export class AllowedSenders {
  #allowed = new BlockList()
  readonly #known = new Map<string, Sender>()

  constructor(allow: readonly Network[]) {
    this.replace(allow)
  }

  /** Puts other networks in the place of all. */
  replace(allow: readonly Network[]): void {
    this.#allowed = new BlockList()
    this.#known.clear()
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
