/**
 * The operator's allow-list [MON 14]: nothing is dialled that it does not name. A name on it, even `*`, opens only addresses
 * of the outside world; what is special (this machine, its networks) has to stand there as an address or network besides,
 * and a network opens it only if all of it is: 0.0.0.0/0 never means 127.0.0.1.
 */
import { BlockList } from 'node:net'
import { type DestinationPattern, parseDestinationPattern } from '../../config/destination.ts'
import { familyOf, isSpecial, isSpecialNetwork } from '../../core/special-addresses.ts'
import type { Destination } from './destination.ts'

type Host = Pick<Destination, 'host' | 'isAddress'>

interface Entry {
  readonly scheme: string
  /** undefined: any. */
  readonly port: number | undefined
  readonly opensName: (name: string) => boolean
  readonly opensAddress: (address: string, special: boolean) => boolean
}

export class AllowList {
  readonly #entries: readonly Entry[]

  /** `patterns`: as in the configuration, which has checked them. */
  constructor(patterns: readonly string[]) {
    this.#entries = patterns.flatMap((text) => parseDestinationPattern(text) ?? []).map(entryOf)
  }

  /** Whether a destination may be tried, as far as the URL alone says. */
  permits(destination: Destination): boolean {
    return destination.isAddress
      ? this.permitsAddress(destination, destination.host)
      : this.#for(destination).some(({ opensName }) => opensName(destination.host))
  }

  /** Whether a connection to it may go to `address`, which is one that it has. */
  permitsAddress(destination: Destination & Host, address: string): boolean {
    const special = isSpecial(address)
    const entries = this.#for(destination)
    const opened = entries.some(({ opensAddress }) => opensAddress(address, special))
    if (destination.isAddress) return opened
    return entries.some(({ opensName }) => opensName(destination.host)) && (!special || opened)
  }

  #for({ scheme, port }: Destination): Entry[] {
    return this.#entries.filter((entry) => entry.scheme === scheme && (entry.port === undefined || entry.port === port))
  }
}

function entryOf({ scheme, host, port }: DestinationPattern): Entry {
  if (host === '*') return { scheme, port, opensName: () => true, opensAddress: (_, special) => !special }
  if (typeof host === 'string') {
    const ending = host.startsWith('*') ? host.slice(1) : undefined
    const opensName = (name: string): boolean => (ending === undefined ? name === host : name.endsWith(ending))
    return { scheme, port, opensName, opensAddress: () => false }
  }
  const list = new BlockList()
  list.addSubnet(host.address, host.prefix, host.family)
  const allSpecial = isSpecialNetwork(host)
  const opensAddress = (address: string, special: boolean): boolean =>
    (!special || allSpecial) && familyOf(address) === host.family && list.check(address, host.family)
  return { scheme, port, opensName: () => false, opensAddress }
}
