/**
 * Protection against guessing [MON 11]. Nothing depends on whether the identity exists. Everything is in memory, so a restart
 * ends all blocks, and forgets who has succeeded where.
 *
 * A pair of an identity and a network is blocked after six failures within a minute: for one minute, then for two, four, and
 * so on up to fifteen. Other users, and the owner of the account from elsewhere, still get in.
 *
 * Beyond that, each identity has a ceiling of failures for all networks together in which it has not succeeded before, and
 * lower ones for the wider networks of an IPv6 address. Above it these networks are rejected, and only these: whoever guesses
 * from very many networks closes none that the owner uses. Loopback is one network, and has no ceiling.
 *
 * Flooding does not free a blocked pair: within a prefix no pair that counts is evicted, and prefixes are evicted as a whole,
 * the one with the oldest failure first, so eviction takes failures of 32,768 other pairs from at least 64 prefixes. The
 * price: if 512 identities of one prefix are blocked or failed within the last minute, attempts of further identities from
 * that prefix are rejected, unless they succeeded there before.
 */
import { isLoopback, networkPrefix, widerPrefixes } from './network.ts'

const MINUTE_MS = 60_000
/** A pair that has succeeded is known for this long. */
const KNOWN_MS = 30 * 24 * 60 * MINUTE_MS
/** Failures within a minute, without a success in between, that block a pair. */
const FAILURES = 6
/** Failures of one identity within a minute, over all networks in which it is not known. */
const CEILING = 20
/** The same over a /56, a /48 and a /32: more than a /64 may have alone, and never all of the ceiling. */
const WIDER_CEILINGS = [8, 12, 16] as const
/** Attempts of a pair that are checked within a minute, no matter how often it succeeds in between. */
const MAX_TRIES = 20
const MAX_BLOCK_MS = 15 * MINUTE_MS
/** Time after the end of its last block until the next block of a pair is the shortest again. */
const QUIET_MS = 15 * MINUTE_MS
/** Networks in which one identity is known: so few that nobody makes the others forgotten by logging in from everywhere. */
const MAX_KNOWN_NETWORKS = 16

export interface ThrottleLimits {
  /** The maximum of remembered pairs, of pairs that succeeded, and a quarter of all other counts: at most 64 MB together. */
  readonly pairs: number
  readonly pairsOfPrefix: number
}

const LIMITS: ThrottleLimits = { pairs: 32_768, pairsOfPrefix: 512 }

interface Pair {
  /** Times of the failures within the last minute, oldest first. */
  recent: number[]
  /** The number of latest failures without a success after them. */
  series: number
  /** The number of blocks so far. */
  blocks: number
  blockedUntil: number
}

export class Throttle {
  readonly #now: () => number
  readonly #limits: ThrottleLimits
  /** Pairs by prefix and then by identity; prefixes are in the order of their latest failure. */
  readonly #prefixes = new Map<string, Map<string, Pair>>()
  /** Failures where the identity is not known, by identity. */
  readonly #ofIdentity: RecentFailures
  /** The same by wider prefix and identity. */
  readonly #ofWider: RecentFailures
  /** The time of the last success by identity and then by prefix; both in the order of the latest success. */
  readonly #successes = new Map<string, Map<string, number>>()
  readonly #underWay = new Map<string, number>()
  #pairs = 0
  #known = 0
  #sweptAt = Number.NEGATIVE_INFINITY

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number, limits: ThrottleLimits = LIMITS) {
    this.#now = now
    this.#limits = limits
    this.#ofIdentity = new RecentFailures(4 * limits.pairs)
    this.#ofWider = new RecentFailures(4 * limits.pairs)
  }

  /** The number of pairs that are remembered for their failures. */
  get pairs(): number {
    return this.#pairs
  }

  /** Whether an attempt of this pair is rejected unchecked. */
  isThrottled(identity: string, address: string): boolean {
    return this.waitMs(identity, address) > 0
  }

  /** How long attempts of this pair will be rejected unchecked if none fails meanwhile; 0 if they are checked. */
  waitMs(identity: string, address: string): number {
    const prefix = networkPrefix(address)
    const now = this.#now()
    const pair = this.#prefixes.get(prefix)?.get(identity)
    let wait = 0
    if (pair !== undefined) {
      pair.recent = withinMinute(pair.recent, now)
      wait = Math.max(pair.blockedUntil - now, waitBelow(pair.recent, MAX_TRIES, now))
    }
    if (this.isKnown(identity, address)) return Math.max(0, wait)
    if (pair === undefined && this.#isFull(prefix, now)) wait = MINUTE_MS
    return Math.max(0, wait, this.#waitOfCeilings(identity, address, now))
  }

  /** Counts a failure. A failure while the pair is throttled does not prolong the block. */
  failed(identity: string, address: string): void {
    if (this.isThrottled(identity, address)) return
    const now = this.#now()
    this.#sweep(now)
    if (!this.isKnown(identity, address) && !isLoopback(address)) {
      this.#ofIdentity.count(identity, now)
      for (const prefix of widerPrefixes(address)) this.#ofWider.count(keyOf(prefix, identity), now)
    }
    const pair = this.#remembered(networkPrefix(address), identity)
    if (now - pair.blockedUntil >= QUIET_MS) pair.blocks = 0
    pair.recent.push(now)
    pair.series++
    if (Math.min(pair.series, recentOf(pair, now)) < FAILURES) return
    pair.blockedUntil = now + Math.min(MINUTE_MS * 2 ** pair.blocks, MAX_BLOCK_MS)
    pair.blocks++
    pair.series = 0
  }

  succeeded(identity: string, address: string): void {
    const prefix = networkPrefix(address)
    const pair = this.#prefixes.get(prefix)?.get(identity)
    if (pair) {
      pair.series = 0
      pair.blocks = 0
    }
    const networks = this.#successes.get(identity) ?? new Map<string, number>()
    this.#known -= networks.size
    networks.delete(prefix)
    for (const [oldest] of networks) {
      if (networks.size < MAX_KNOWN_NETWORKS) break
      networks.delete(oldest)
    }
    networks.set(prefix, this.#now())
    this.#known += networks.size
    this.#successes.delete(identity)
    this.#successes.set(identity, networks)
    for (const [oldest, theirs] of this.#successes) {
      if (this.#known <= this.#limits.pairs || theirs === networks) break
      this.#successes.delete(oldest)
      this.#known -= theirs.size
    }
  }

  /** Whether the identity has succeeded in this network before. */
  isKnown(identity: string, address: string): boolean {
    const at = this.#successes.get(identity)?.get(networkPrefix(address))
    return at !== undefined && this.#now() - at < KNOWN_MS
  }

  /**
   * Begins an attempt whose check is asynchronous; the caller calls the result when the check is done. Returns undefined if
   * the pair's attempts in progress could exceed the limit: concurrent attempts count like consecutive ones.
   */
  begin(identity: string, address: string): (() => void) | undefined {
    const prefix = networkPrefix(address)
    const pair = this.#prefixes.get(prefix)?.get(identity)
    const key = keyOf(prefix, identity)
    const underWay = this.#underWay.get(key) ?? 0
    if (underWay + (pair ? recentOf(pair, this.#now()) : 0) >= MAX_TRIES) return undefined
    this.#underWay.set(key, underWay + 1)
    return () => {
      const left = (this.#underWay.get(key) ?? 0) - 1
      if (left > 0) this.#underWay.set(key, left)
      else this.#underWay.delete(key)
    }
  }

  #waitOfCeilings(identity: string, address: string, now: number): number {
    if (isLoopback(address)) return 0
    const ofWider = widerPrefixes(address).map((prefix, at) => {
      return waitBelow(this.#ofWider.of(keyOf(prefix, identity), now), WIDER_CEILINGS[at] ?? CEILING, now)
    })
    return Math.max(waitBelow(this.#ofIdentity.of(identity, now), CEILING, now), ...ofWider)
  }

  /** Whether the prefix has no place for a further identity. Pairs whose block has ended are evicted first. */
  #isFull(prefix: string, now: number): boolean {
    const pairs = this.#prefixes.get(prefix)
    if (!pairs || pairs.size < this.#limits.pairsOfPrefix) return false
    this.#forget(prefix, pairs, (pair) => recentOf(pair, now) === 0 && now >= pair.blockedUntil)
    return pairs.size >= this.#limits.pairsOfPrefix
  }

  /** Finds or adds the pair, and moves its prefix to the end of the order. */
  #remembered(prefix: string, identity: string): Pair {
    const pairs = this.#prefixes.get(prefix) ?? new Map<string, Pair>()
    this.#prefixes.delete(prefix)
    this.#prefixes.set(prefix, pairs)
    let pair = pairs.get(identity)
    if (pair) return pair
    for (const [oldest, theirs] of this.#prefixes) {
      if (this.#pairs < this.#limits.pairs || theirs === pairs) break
      this.#prefixes.delete(oldest)
      this.#pairs -= theirs.size
    }
    pair = { recent: [], series: 0, blocks: 0, blockedUntil: Number.NEGATIVE_INFINITY }
    pairs.set(identity, pair)
    this.#pairs++
    return pair
  }

  /** Drops expired pairs, at most once a minute. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < MINUTE_MS) return
    this.#sweptAt = now
    for (const [prefix, pairs] of this.#prefixes) {
      this.#forget(prefix, pairs, (pair) => recentOf(pair, now) === 0 && now - pair.blockedUntil >= QUIET_MS)
    }
  }

  #forget(prefix: string, pairs: Map<string, Pair>, isPast: (pair: Pair) => boolean): void {
    for (const [identity, pair] of pairs) {
      if (isPast(pair) && pairs.delete(identity)) this.#pairs--
    }
    if (pairs.size === 0) this.#prefixes.delete(prefix)
  }
}

/** The number of failures within the last minute; drops older ones. */
function recentOf(pair: Pair, now: number): number {
  pair.recent = withinMinute(pair.recent, now)
  return pair.recent.length
}

/** No prefix holds a space, so two pairs never read the same. */
function keyOf(prefix: string, identity: string): string {
  return `${prefix} ${identity}`
}

/** The time until fewer than `most` of the ascending times lie within the last minute; 0 if there are fewer now. */
function waitBelow(times: readonly number[], most: number, now: number): number {
  const decisive = times.at(-most)
  return times.length < most || decisive === undefined ? 0 : decisive + MINUTE_MS - now
}

/** Those of the ascending times that lie within the last minute. */
function withinMinute(times: number[], now: number): number[] {
  const first = times.findIndex((at) => now - at < MINUTE_MS)
  if (first === 0) return times
  return first < 0 ? [] : times.slice(first)
}

/**
 * The failures within the last minute, by key. The caller counts no more than a ceiling. The key with the oldest failure is
 * evicted first: one that is attacked fast enough to matter is never the oldest.
 */
class RecentFailures {
  readonly #maxKeys: number
  /** In the order of the latest failure. */
  readonly #times = new Map<string, number[]>()

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  count(key: string, now: number): void {
    const times = withinMinute(this.#times.get(key) ?? [], now)
    times.push(now)
    this.#times.delete(key)
    for (const [oldest, theirs] of this.#times) {
      if (this.#times.size < this.#maxKeys && withinMinute(theirs, now).length > 0) break
      this.#times.delete(oldest)
    }
    this.#times.set(key, times)
  }

  of(key: string, now: number): readonly number[] {
    return withinMinute(this.#times.get(key) ?? [], now)
  }
}
