/**
 * Protection against guessing [MON 11], by pairs of (identity, network prefix): six failures within a minute block a pair,
 * for a minute, then two, four, up to fifteen. Others, and the owner of the account from elsewhere, still get in.
 * Nothing here depends on whether the identity exists. All is in memory: a restart forgives.
 *
 * Flooding does not free a blocked pair: within a prefix nothing that counts gives way, and prefixes give way as wholes, the
 * one that has been quiet for longest first, so it would take failures of 32,768 other pairs from 64 prefixes or more. What it
 * does cost: where 512 identities of one prefix are blocked or failed within the last minute, no further one is looked at from
 * there, unless it succeeded there before.
 */
import { networkPrefix } from './network.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** So many failures within a minute, without a success in between, block a pair. */
const FAILURES = 6
/** An identity that fails more often than this in a minute, from everywhere together, is being guessed at by many. */
const CEILING = 100
/** So many guesses of a pair are looked at within a minute, however often it succeeds in between. */
const MAX_TRIES = 20
const MAX_BLOCK_MS = 15 * MINUTE_MS
/** So long after its last block has ended a pair begins anew with the shortest. */
const QUIET_MS = 15 * MINUTE_MS

export interface ThrottleLimits {
  /** Pairs that are remembered, as many identities, and as many pairs that succeeded: 32 MB at worst. */
  readonly pairs: number
  readonly pairsOfPrefix: number
}

const LIMITS: ThrottleLimits = { pairs: 32_768, pairsOfPrefix: 512 }

interface Pair {
  /** Times of the failures within the last minute, oldest first. */
  recent: number[]
  /** How many of the last of them had no success behind them. */
  series: number
  /** How often it was blocked already. */
  blocks: number
  blockedUntil: number
}

export class Throttle {
  readonly #now: () => number
  readonly #limits: ThrottleLimits
  /** By prefix, in the order of each prefix's latest failure, then by identity. */
  readonly #prefixes = new Map<string, Map<string, Pair>>()
  readonly #rate: FailureRate
  /** When which pair last succeeded, in that order. */
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

  /** Pairs that are remembered at this moment for their failures. */
  get pairs(): number {
    return this.#pairs
  }

  /** Whether a guess of this pair is not to be looked at. */
  isThrottled(identity: string, address: string): boolean {
    const prefix = networkPrefix(address)
    const now = this.#now()
    const pair = this.#prefixes.get(prefix)?.get(identity)
    if (!pair) return this.#isFull(prefix, now) && !this.#isKnown(prefix, identity, now)
    return now < pair.blockedUntil || recentOf(pair, now) >= MAX_TRIES || this.#isExhausted(pair, prefix, identity, now)
  }

  /** Counts a failure. One that comes out while the pair is throttled does not prolong that. */
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
   * A place for a guess whose check takes its time, given back by calling it. Undefined if the pair has as many under way
   * as could bring it beyond what may be looked at: guesses made side by side are no more than those made in a row.
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

  /** Where an identity is guessed at from very many prefixes, one that never succeeded has one try instead of six. */
  #isExhausted(pair: Pair, prefix: string, identity: string, now: number): boolean {
    const series = Math.min(pair.series, recentOf(pair, now))
    if (series === 0 || series >= FAILURES) return series > 0
    return this.#rate.of(identity, now) > CEILING && !this.#isKnown(prefix, identity, now)
  }

  #isKnown(prefix: string, identity: string, now: number): boolean {
    const at = this.#successes.get(keyOf(prefix, identity))
    return at !== undefined && now - at < DAY_MS
  }

  /** Whether there is no room for a further identity of this prefix. Its growth of blocks is given up before that. */
  #isFull(prefix: string, now: number): boolean {
    const pairs = this.#prefixes.get(prefix)
    if (!pairs || pairs.size < this.#limits.pairsOfPrefix) return false
    this.#forget(prefix, pairs, (pair) => recentOf(pair, now) === 0 && now >= pair.blockedUntil)
    return pairs.size >= this.#limits.pairsOfPrefix
  }

  /** The pair as it is remembered from now on, its prefix behind all others. */
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

  /** Once a minute: what no longer matters is let go of. */
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

/** How many failures the last minute has seen; older ones are dropped. */
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
  /** In the minute before. */
  readonly before: number
}

/**
 * How often each identity failed within about a minute, from wherever. It is counted in whole minutes, and of the one before
 * as much as still lies within the last sixty seconds. What failed least recently is forgotten first: whoever is guessed
 * at fast enough to matter is never at that end.
 */
export class FailureRate {
  readonly #maxIdentities: number
  /** In the order of the latest failure. */
  readonly #counts = new Map<string, Count>()

  constructor(maxIdentities: number) {
    this.#maxIdentities = maxIdentities
  }

  /** `now` in milliseconds, monotonic. */
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
