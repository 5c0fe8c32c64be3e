/**
 * Protection against guessing [MON 11]: after six failures within a minute a pair of (identity, network prefix) is not
 * looked at until the first of the six is a minute old. The owner of the account still gets in from elsewhere.
 * Only finished guesses count, so many honest connections at once do not lock themselves out.
 */
import { isIPv4, isIPv6 } from 'node:net'

const WINDOW_MS = 60_000
const FAILURES = 6
/** About 6 MB at worst. When full, the pair whose last failure is oldest is forgotten. */
const MAX_PAIRS = 16_384

export class Throttle {
  readonly #now: () => number
  readonly #maxPairs: number
  /** Times of the latest failures, oldest first; the map is in the order of each pair's last failure. */
  readonly #failures = new Map<string, number[]>()

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number, maxPairs = MAX_PAIRS) {
    this.#now = now
    this.#maxPairs = maxPairs
  }

  /** Pairs that are remembered at this moment. */
  get pairs(): number {
    return this.#failures.size
  }

  isThrottled(identity: string, address: string): boolean {
    const times = this.#failures.get(pairOf(identity, address))
    return times !== undefined && times.length === FAILURES && this.#now() - times[0]! < WINDOW_MS
  }

  /** Counts a failure. One that comes out while the pair is throttled does not prolong that. */
  failed(identity: string, address: string): void {
    if (this.isThrottled(identity, address)) return
    const now = this.#now()
    const pair = pairOf(identity, address)
    const times = this.#failures.get(pair) ?? []
    this.#failures.delete(pair)
    for (const [other, theirs] of this.#failures) {
      if (this.#failures.size < this.#maxPairs && now - theirs.at(-1)! < WINDOW_MS) break
      this.#failures.delete(other)
    }
    this.#failures.set(pair, [...times, now].slice(-FAILURES))
  }

  succeeded(identity: string, address: string): void {
    this.#failures.delete(pairOf(identity, address))
  }
}

/** No prefix holds a space, so two pairs never read the same. */
function pairOf(identity: string, address: string): string {
  return `${networkPrefix(address)} ${identity}`
}

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
