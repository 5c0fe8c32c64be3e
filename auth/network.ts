/** The network of an address, as far as it matters for trust and for guessing. Addresses are written as node:net writes them. */
import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** All of it is one machine, whose users may take any address of it. */
const LOOPBACK = '127.0.0.0/8'
const IPV6_BITS = [64, 56, 48, 32] as const

/**
 * The /24 of an IPv4 address, or the /64 of an IPv6 address; 127.0.0.0/8 stands for all of loopback, also for ::1. Text that
 * is no address stays as it is.
 */
export function networkPrefix(address: string): string {
  return prefixOf(address, IPV6_BITS[0])
}

/** The network of one customer of a provider: the /24 of an IPv4 address, or the /48 of an IPv6 address. */
export function networkSite(address: string): string {
  return prefixOf(address, IPV6_BITS[2])
}

/** The networks around the /64 of an IPv6 address, narrowest first: /56, /48, /32. Nothing for another address. */
export function widerPrefixes(address: string): readonly string[] {
  const isWide = isIPv6(unmapped(address)) && !isLoopback(address)
  return isWide ? IPV6_BITS.slice(1).map((bits) => prefixOf(address, bits)) : []
}

function prefixOf(address: string, ipv6Bits: number): string {
  if (isIPv4(address)) return isLoopback(address) ? LOOPBACK : `${address.slice(0, address.lastIndexOf('.'))}.0/24`
  if (!isIPv6(address)) return address
  const ip = ipaddr.IPv6.parse(address)
  if (ip.isIPv4MappedAddress()) return prefixOf(ip.toIPv4Address().toString(), ipv6Bits)
  if (ip.range() === 'loopback') return LOOPBACK
  const groups = ip.parts.slice(0, 4).map((group, at) => {
    const cut = Math.min(16, Math.max(0, 16 * (at + 1) - ipv6Bits))
    return ((group >> cut) << cut).toString(16)
  })
  return `${groups.join(':')}::/${ipv6Bits}`
}

/** Whether an address is in 127.0.0.0/8, also mapped into IPv6, or is ::1. */
export function isLoopback(address: string): boolean {
  if (isIPv4(address)) return address.startsWith('127.')
  return isIPv6(address) && ipaddr.process(address).range() === 'loopback'
}

/** Whether the host of a URL is this machine, so that what goes there crosses no network. */
export function isOwnMachine(hostname: string): boolean {
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

/** The IPv4 address that is mapped into an IPv6 one; any other text as it is. */
export function unmapped(address: string): string {
  if (!isIPv6(address)) return address
  const ip = ipaddr.IPv6.parse(address)
  return ip.isIPv4MappedAddress() ? ip.toIPv4Address().toString() : address
}
