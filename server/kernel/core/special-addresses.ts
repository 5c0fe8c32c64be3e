/**
 * Special addresses, which the name of a public host never means: this machine, private networks, groups, documentation
 * ranges, and every form in which an IPv6 address can carry an IPv4 one. They follow IANA's registries (RFC 6890); addresses
 * outside 2000::/3 that the registries do not list are unassigned.
 */
import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Network } from './address.ts'

const IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Includes the metadata services of clouds.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's own service, reachable from each of its machines.
  '168.63.129.16/32',
]
const IPV6 = [
  // Loopback, unspecified, IPv4-mapped, -compatible and -translated (64:ff9b::/96, 64:ff9b:1::/48), discard.
  '::/3',
  // Teredo, benchmarking and ORCHID: everything that 2001::/23 is reserved for.
  '2001::/23',
  '2001:db8::/32',
  // 6to4
  '2002::/16',
  '3fff::/20',
  '4000::/2',
  '8000::/2',
  'c000::/3',
  'e000::/4',
  'f000::/5',
  'f800::/6',
  // Site-local
  'fc00::/7',
  'fe00::/9',
  // Link-local
  'fe80::/10',
  'fec0::/10',
  // Multicast
  'ff00::/8',
]

const ranges = [...IPV4, ...IPV6].map((text) => ipaddr.parseCIDR(text))

export function familyOf(address: string): Network['family'] {
  return isIPv4(address) ? 'ipv4' : 'ipv6'
}

/** Whether connections to an address are allowed only if the operator named it as an address. Text that is no address counts as special, because it would be resolved again. */
export function isSpecial(address: string): boolean {
  if (isIP(address) === 0) return true
  const ip = ipaddr.parse(address)
  return ranges.some(([base, bits]) => base.kind() === ip.kind() && ip.match(base, bits))
}

/** Whether a whole network lies in one special range: 10.1.0.0/16 does, 0.0.0.0/0 does not. */
export function isSpecialNetwork({ address, prefix }: Network): boolean {
  const ip = ipaddr.parse(address)
  return ranges.some(([base, bits]) => bits <= prefix && base.kind() === ip.kind() && ip.match(base, bits))
}
