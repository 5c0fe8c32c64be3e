/** Where somebody comes from, as far as it matters for trust and for guessing. Addresses as node:net writes them. */
import { isIPv4, isIPv6 } from 'node:net'

/** IPv4: /24, IPv6: /64, IPv4 mapped into IPv6: as IPv4; loopback and what is no IP address: as it is. */
export function networkPrefix(address: string): string {
  const plain = unmapped(address)
  if (isLoopback(plain)) return plain
  if (isIPv4(plain)) return `${plain.slice(0, plain.lastIndexOf('.'))}.0/24`
  if (isIPv6(plain)) return `${groups(plain).slice(0, 4).join(':')}::/64`
  return plain
}

/** 127.0.0.0/8, also mapped into IPv6, and ::1. */
export function isLoopback(address: string): boolean {
  const plain = unmapped(address)
  if (isIPv4(plain)) return plain.startsWith('127.')
  return isIPv6(plain) && groups(plain).join(':') === '0:0:0:0:0:0:0:1'
}

function unmapped(address: string): string {
  if (!isIPv6(address)) return address
  const all = groups(address)
  if (all.slice(0, 6).join(':') !== '0:0:0:0:0:ffff') return address
  return all
    .slice(6)
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 255])
    .join('.')
}

/** The eight groups of a valid IPv6 address, in lower case without leading zeros. RFC 4291 2.2 */
function groups(address: string): string[] {
  const [text] = address.toLowerCase().split('%')
  const [left = '', right] = text!.split('::')
  const before = groupsOf(left)
  if (right === undefined) return before
  const after = groupsOf(right)
  return [...before, ...new Array<string>(8 - before.length - after.length).fill('0'), ...after]
}

function groupsOf(text: string): string[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16).toString(16)]
    const [a, b, c, d] = group.split('.').map(Number)
    return [((a! << 8) | b!).toString(16), ((c! << 8) | d!).toString(16)]
  })
}
