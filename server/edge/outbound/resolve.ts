/** Resolves the host of a destination, and recognizes the producer's own listeners among its addresses. */
import { lookup } from 'node:dns/promises'
import { BlockList } from 'node:net'
import { networkInterfaces } from 'node:os'
import { familyOf } from '../../kernel/core/special-addresses.ts'
import type { Destination, RequestOrigin } from './destination.ts'

/** Resolves a name to all its addresses. */
export type Resolver = (name: string) => Promise<readonly string[]>

export const systemResolver: Resolver = async (name) => {
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/** A port that the producer itself listens on. */
export interface OwnPort {
  readonly transport: 'tcp' | 'udp'
  readonly port: number
}

/** Whether a connection would reach the producer itself: one of its own ports, on any address of this machine. */
export function isOwnListener(
  { scheme, port }: Destination | RequestOrigin,
  address: string,
  own: readonly OwnPort[],
): boolean {
  const transport = scheme === 'gmetric' ? 'udp' : 'tcp'
  if (!own.some((one) => one.transport === transport && one.port === port)) return false
  // A BlockList also recognizes IPv4 addresses that are written as IPv6.
  const here = new BlockList()
  here.addSubnet('127.0.0.0', 8, 'ipv4')
  here.addSubnet('0.0.0.0', 8, 'ipv4')
  here.addSubnet('::', 127, 'ipv6')
  for (const found of Object.values(networkInterfaces()).flat()) {
    if (found) here.addAddress(found.address, familyOf(found.address))
  }
  return here.check(address, familyOf(address))
}
