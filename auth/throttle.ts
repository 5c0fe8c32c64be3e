/**
 * Protection against guessing [MON 11] by pairs of (identity, network prefix): six failures within a minute block a pair for
 * one minute, then for two, four, and so on up to fifteen. Other users, and the owner of the account from elsewhere, still get
 * in. Nothing depends on whether the identity exists. Everything is in memory, so a restart clears all blocks.
 *
 * Flooding does not free a blocked pair: within a prefix no pair that counts is evicted, and prefixes are evicted as a whole,
 * the one with the oldest failure first, so eviction takes failures of 32,768 other pairs from at least 64 prefixes. The
 * price: if 512 identities of one prefix are blocked or failed within the last minute, attempts of further identities from
 * that prefix are rejected, unless they succeeded there before.
 */
import { networkPrefix } from './network.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** Failures within a minute, without a success in between, that block a pair. */
const FAILURES = 6
/** An identity with more failures per minute than this, over all prefixes, is under a distributed attack. */
const CEILING = 100
/** Attempts of a pair that are checked within a minute, no matter how often it succeeds in between. */
const MAX_TRIES = 20
const MAX_BLOCK_MS = 15 * MINUTE_MS
/** Time after the end of its last block until the next block of a pair is the shortest again. */
const QUIET_MS = 15 * MINUTE_MS

export interface ThrottleLimits {
  /** The maximum of remembered pairs, of identities, and of pairs that succeeded: at most 32 MB together. */
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
  readonly #rate: FailureRate
  /** The time of each pair's last success, oldest first. */
  readonly #successes = new Map<string, number>()
  readonly #underWay = new Map<string, number>()
  #pairs = 0
  #sweptAt = Number.NEGATIVE_INFINITY

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number, limits: ThrottleLimits = LIMITS) {
    this.#now = now
    this.#limits = limits
    this.#rate = new FailureRate(limits.pairs)
  }

  /** The number of pairs that are remembered for their failures. */
  get pairs(): number {
    return this.#pairs
  }

  /** Whether an attempt of this pair is rejected unchecked. */
  isThrottled(identity: string, address: string): boolean {
    const prefix = networkPrefix(address)
    const now = this.#now()
    const pair = this.#prefixes.get(prefix)?.get(identity)
    if (!pair) return this.#isFull(prefix, now) && !this.#isKnown(prefix, identity, now)
    return now < pair.blockedUntil || recentOf(pair, now) >= MAX_TRIES || this.#isExhausted(pair, prefix, identity, now)
  }

  /** Counts a failure. A failure while the pair is throttled does not prolong the block. */
  failed(identity: string, address: string): void {
    if (this.isThrottled(identity, address)) return
    const now = this.#now()
    const prefix = networkPrefix(address)
    this.#rate.count(identity, now)
    this.#sweep(now)
    const pair = this.#remembered(prefix, identity)
    if (now - pair.blockedUntil >= QUIET_MS) pair.blocks = 0
    pair.recent.push(now)
    pair.series++
    if (!this.#isExhausted(pair, prefix, identity, now)) return
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
    const key = keyOf(prefix, identity)
    this.#successes.delete(key)
    for (const [other, at] of this.#successes) {
      if (this.#successes.size < this.#limits.pairs && this.#now() - at < DAY_MS) break
      this.#successes.delete(other)
    }
    this.#successes.set(key, this.#now())
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

  /** While an identity is attacked from very many prefixes, a pair that never succeeded has one attempt instead of six. */
  #isExhausted(pair: Pair, prefix: string, identity: string, now: number): boolean {
    const series = Math.min(pair.series, recentOf(pair, now))
    if (series === 0 || series >= FAILURES) return series > 0
    return this.#rate.of(identity, now) > CEILING && !this.#isKnown(prefix, identity, now)
  }

  #isKnown(prefix: string, identity: string, now: number): boolean {
    const at = this.#successes.get(keyOf(prefix, identity))
    return at !== undefined && now - at < DAY_MS
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
  const first = pair.recent.findIndex((at) => now - at < MINUTE_MS)
  if (first !== 0) pair.recent = first < 0 ? [] : pair.recent.slice(first)
  return pair.recent.length
}

/** No prefix holds a space, so two pairs never read the same. */
function keyOf(prefix: string, identity: string): string {
  return `${prefix} ${identity}`
}

interface Count {
  readonly minute: number
  readonly failures: number
  /** Failures in the previous minute. */
  readonly before: number
}

/**
 * The failures of each identity within about the last minute, over all prefixes. It counts in whole minutes and adds the
 * share of the previous minute that still lies within the last sixty seconds. The identity with the oldest failure is
 * evicted first: one that is attacked fast enough to matter is never the oldest.
 */
export class FailureRate {
  readonly #maxIdentities: number
  /** Ordered by latest failure, oldest first. */
  readonly #counts = new Map<string, Count>()

  constructor(maxIdentities: number) {
    this.#maxIdentities = maxIdentities
  }

  /** `now` is a monotonic time in milliseconds. */
  count(identity: string, now: number): void {
    const { minute, failures, before } = this.#at(identity, now)
    this.#counts.delete(identity)
    for (const [other, count] of this.#counts) {
      if (this.#counts.size < this.#maxIdentities && minute - count.minute < 2) break
      this.#counts.delete(other)
    }
    this.#counts.set(identity, { minute, failures: failures + 1, before })
  }

  /** Failures within the last minute. */
  of(identity: string, now: number): number {
    const { minute, failures, before } = this.#at(identity, now)
    return failures + before * (1 - (now / MINUTE_MS - minute))
  }

  #at(identity: string, now: number): Count {
    const minute = Math.floor(now / MINUTE_MS)
    const count = this.#counts.get(identity)
    if (count?.minute === minute) return count
    return { minute, failures: 0, before: count?.minute === minute - 1 ? count.failures : 0 }
  }
}
