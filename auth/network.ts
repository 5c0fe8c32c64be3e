/** The network of an address, as far as it matters for trust and for guessing. Addresses are written as node:net writes them. */
import { isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The /24 of an IPv4 address, the /64 of an IPv6 address; loopback addresses and text that is no address stay as they are. */
export function networkPrefix(address: string): string {
  const plain = unmapped(address)
  if (isIP(plain) === 0 || isLoopback(plain)) return plain
  const bytes = ipaddr.parse(plain).toByteArray()
  if (bytes.length === 4) return `${bytes.slice(0, 3).join('.')}.0/24`
  const groups = [0, 2, 4, 6].map((at) => ((bytes[at]! << 8) | bytes[at + 1]!).toString(16))
  return `${groups.join(':')}::/64`
}

/** Whether an address is in 127.0.0.0/8, also mapped into IPv6, or is ::1. */
export function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.process(address).range() === 'loopback'
}

/** The IPv4 address that is mapped into an IPv6 one; any other text as it is. */
export function unmapped(address: string): string {
  if (!isIPv6(address)) return address
  const ip = ipaddr.IPv6.parse(address)
  return ip.isIPv4MappedAddress() ? ip.toIPv4Address().toString() : address
}
