/**
 * Addresses that a name of the outside world never means: this machine, its networks, groups, what only documents use, and
 * every form in which an IPv4 address can hide in an IPv6 one. IANA keeps the registries (RFC 6890); what they do not list
 * and is not in 2000::/3 is not given to anybody.
 */
import { BlockList, isIP, isIPv4 } from 'node:net'
import type { Network } from '../core/address.ts'

const IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Also where clouds tell machines their secrets.
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
  // Azure's own, inside each of its machines.
  '168.63.129.16/32',
]
const IPV6 = [
  // Loopback, unspecified, IPv4 mapped, compatible and translated (64:ff9b::/96, 64:ff9b:1::/48), discard.
  '::/3',
  // Teredo, benchmarks, ORCHID: all that 2001::/23 is reserved for.
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
  // Of this site
  'fc00::/7',
  'fe00::/9',
  // Link-local
  'fe80::/10',
  'fec0::/10',
  // Groups
  'ff00::/8',
]

interface Range {
  readonly prefix: number
  readonly list: BlockList
}

// A BlockList of both families would take IPv4 addresses for mapped ones and find them all in ::/3.
const ranges: Readonly<Record<Network['family'], readonly Range[]>> = {
  ipv4: IPV4.map((text) => rangeOf(text, 'ipv4')),
  ipv6: IPV6.map((text) => rangeOf(text, 'ipv6')),
}

function rangeOf(text: string, family: Network['family']): Range {
  const [address = '', digits] = text.split('/')
  const list = new BlockList()
  list.addSubnet(address, Number(digits), family)
  return { prefix: Number(digits), list }
}

export function familyOf(address: string): Network['family'] {
  return isIPv4(address) ? 'ipv4' : 'ipv6'
}

/** Whether an address is one that a connection may not go to unless it is named as an address. What is none would be resolved again. */
export function isSpecial(address: string): boolean {
  if (isIP(address) === 0) return true
  const family = familyOf(address)
  return ranges[family].some(({ list }) => list.check(address, family))
}

/** Whether all of a network is one kind of special: 10.1.0.0/16 is, 0.0.0.0/0 just holds some. */
export function isSpecialNetwork({ address, prefix, family }: Network): boolean {
  return ranges[family].some((range) => range.prefix <= prefix && range.list.check(address, family))
}
