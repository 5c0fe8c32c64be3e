/**
 * The operator's allow-list [MON 14]: the producer connects only to destinations that it names. A name, even `*`, permits
 * public addresses only. A special address (this machine, private networks) must also be listed as an address or network,
 * and a network permits it only if the whole network is special: 0.0.0.0/0 never includes 127.0.0.1.
 */
import { BlockList } from 'node:net'
import { type DestinationPattern, parseDestinationPattern } from '../../kernel/config/destination.ts'
import { familyOf, isSpecial, isSpecialNetwork } from '../../kernel/core/special-addresses.ts'
import type { Destination, RequestOrigin } from './destination.ts'

interface Entry {
  readonly scheme: string
  /** undefined if any port is permitted. */
  readonly port: number | undefined
  readonly permitsName: (name: string) => boolean
  readonly coversAddress: (address: string, special: boolean) => boolean
}

export class AllowList {
  #entries: readonly Entry[] = []

  /** `patterns` come from the configuration, which has checked them. */
  constructor(patterns: readonly string[]) {
    this.replace(patterns)
  }

  /** Puts other patterns in the place of all. */
  replace(patterns: readonly string[]): void {
    this.#entries = patterns.flatMap((text) => parseDestinationPattern(text) ?? []).map(entryOf)
  }

  /** Whether the URL alone permits a connection. */
  permits(destination: Destination | RequestOrigin): boolean {
    return destination.isAddress
      ? this.permitsAddress(destination, destination.host)
      : this.#for(destination).some(({ permitsName }) => permitsName(destination.host))
  }

  /** Whether a connection to `destination` may go to `address`, to which its host resolves. */
  permitsAddress(destination: Destination | RequestOrigin, address: string): boolean {
    const special = isSpecial(address)
    const entries = this.#for(destination)
    const isCovered = entries.some(({ coversAddress }) => coversAddress(address, special))
    if (destination.isAddress) return isCovered
    return entries.some(({ permitsName }) => permitsName(destination.host)) && (!special || isCovered)
  }

  #for({ scheme, port }: Destination | RequestOrigin): Entry[] {
    return this.#entries.filter((entry) => entry.scheme === scheme && (entry.port === undefined || entry.port === port))
  }
}

function entryOf({ scheme, host, port }: DestinationPattern): Entry {
  if (host === '*') return { scheme, port, permitsName: () => true, coversAddress: (_, special) => !special }
  if (typeof host === 'string') {
    const ending = host.startsWith('*') ? host.slice(1) : undefined
    const permitsName = (name: string): boolean => (ending === undefined ? name === host : name.endsWith(ending))
    return { scheme, port, permitsName, coversAddress: () => false }
  }
  const list = new BlockList()
  list.addSubnet(host.address, host.prefix, host.family)
  const allSpecial = isSpecialNetwork(host)
  const coversAddress = (address: string, special: boolean): boolean =>
    (!special || allSpecial) && familyOf(address) === host.family && list.check(address, host.family)
  return { scheme, port, permitsName: () => false, coversAddress }
}
