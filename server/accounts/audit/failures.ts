/**
 * AUTH failures in the audit log. What gets as far as being judged is a record each; what is refused because there were too
 * many is counted, and is one record a minute for each identity and network prefix: a flood must not fill the log. So is
 * what is judged beyond so many in a minute, since failures that name nobody are never throttled, and everything while
 * records cannot be stored.
 */
import { networkPrefix } from '../../../auth/network.ts'
import type { Clock } from '../../core/clock.ts'
import type { AuditLog } from './log.ts'
import { cut } from './redaction.ts'

export interface AuthFailure {
  /** As the peer named itself; not proven, and "" where it named nobody. */
  readonly identity: string
  readonly address: string
  readonly method: string
  /** Refused without a look: too many before it. */
  readonly throttled: boolean
}

interface Flood {
  readonly failure: AuthFailure
  readonly since: number
  count: number
}

const FLOOD_MS = 60_000
/** Beyond so many at once, whoever comes next is counted under one name: some 30 MB of records a day, at worst. */
const MAX_FLOODS = 64
/** Records of single failures within a minute: of one prefix, and of all together. */
const MAX_OF_PREFIX = 60
const MAX_OF_ALL = 600
/** Records that wait to be stored, from which on failures are counted. */
const MAX_WAITING = 256
const MAX_IDENTITY = 200
const OTHERS: AuthFailure = { identity: '', address: '', method: '', throttled: true }

export class AuthFailures {
  readonly #log: Pick<AuditLog, 'record' | 'waiting'>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #floods = new Map<string, Flood>()
  /** Single records of the minute under way, by prefix. */
  readonly #singles = new Map<string, number>()
  #allSingles = 0
  #minuteBegan = Number.NEGATIVE_INFINITY

  constructor(log: Pick<AuditLog, 'record' | 'waiting'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#log = log
    this.#clock = clock
  }

  failed(given: AuthFailure): void {
    const { address, method, throttled } = given
    const identity = cut(given.identity, MAX_IDENTITY)
    const isFlood = throttled || this.#log.waiting >= MAX_WAITING || !this.#mayStandAlone(address)
    if (isFlood) this.#count({ ...given, identity })
    else this.#log.record({ action: 'auth', actor: identity, address, object: method, outcome: 'failed' })
  }

  /** And counts it. */
  #mayStandAlone(address: string): boolean {
    const now = this.#clock.monotonicMs()
    if (now - this.#minuteBegan >= FLOOD_MS) {
      this.#singles.clear()
      this.#allSingles = 0
      this.#minuteBegan = now
    }
    const prefix = networkPrefix(address)
    const singles = this.#singles.get(prefix) ?? 0
    if (singles >= MAX_OF_PREFIX || this.#allSingles >= MAX_OF_ALL) return false
    this.#singles.set(prefix, singles + 1)
    this.#allSingles++
    return true
  }

  #count(failure: AuthFailure): void {
    const prefix = networkPrefix(failure.address)
    const key = JSON.stringify([failure.identity, prefix, failure.throttled])
    const isKnown = this.#floods.has(key) || this.#floods.size < MAX_FLOODS
    const flood = this.#floods.get(isKnown ? key : '')
    if (flood !== undefined) flood.count++
    else {
      const kept = isKnown ? { ...failure, address: prefix } : OTHERS
      this.#floods.set(isKnown ? key : '', { failure: kept, since: this.#clock.monotonicMs(), count: 1 })
    }
  }

  /** Records what has been counted for a minute; to be called every second or so. */
  sweep(): void {
    if (this.#log.waiting >= MAX_WAITING) return
    const before = this.#clock.monotonicMs() - FLOOD_MS
    // In the order in which they began.
    for (const [key, flood] of this.#floods) {
      if (flood.since > before) return
      this.#floods.delete(key)
      this.#record(flood)
    }
  }

  /** Records whatever has been counted: the server stops. */
  flush(): void {
    for (const flood of this.#floods.values()) this.#record(flood)
    this.#floods.clear()
  }

  #record({ failure, count }: Flood): void {
    const { identity, address, method, throttled } = failure
    const detail = failure === OTHERS ? 'of many identities and addresses' : ''
    this.#log.record({
      action: 'auth',
      actor: identity,
      address,
      object: method,
      args: { count },
      outcome: throttled ? 'throttled' : 'failed',
      detail,
    })
  }
}
