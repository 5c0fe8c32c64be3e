/**
 * AUTH failures in the audit log. A failure that was judged is one record. Failures that were throttled are counted, with one
 * record a minute for each identity and network prefix, because a flood must not fill the log. Judged failures are counted
 * too beyond a number per minute, since failures without a name are never throttled, and while records cannot be stored.
 */
import { networkPrefix } from '../../../../auth/network.ts'
import type { Clock } from '../../core/clock.ts'
import type { AuditLog } from './log.ts'
import { cut } from './redaction.ts'

export interface AuthFailure {
  /** The name that the peer gave, unproven; "" if it gave none. */
  readonly identity: string
  readonly address: string
  readonly method: string
  /** True if it was refused unseen after too many failures. */
  readonly throttled: boolean
}

interface Flood {
  readonly failure: AuthFailure
  readonly since: number
  count: number
}

const FLOOD_MS = 60_000
/** Beyond this number of floods at once, all others are counted as one: at most some 30 MB of records a day. */
const MAX_FLOODS = 64
/** The largest number of single records in a minute, for one prefix and for all together. */
const MAX_OF_PREFIX = 60
const MAX_OF_ALL = 600
/** If this many records wait to be stored, failures are only counted. */
const MAX_WAITING = 256
const MAX_IDENTITY = 200
const OTHERS: AuthFailure = { identity: '', address: '', method: '', throttled: true }

export class AuthFailures {
  readonly #log: Pick<AuditLog, 'record' | 'waiting'>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #floods = new Map<string, Flood>()
  /** Single records of the current minute, by prefix. */
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
    const isFlood = throttled || this.#log.waiting >= MAX_WAITING || !this.#takesRecord(address)
    if (isFlood) this.#count({ ...given, identity })
    else this.#log.record({ action: 'auth', actor: identity, address, object: method, outcome: 'failed' })
  }

  /** Whether a failure gets a record of its own; counts it if so. */
  #takesRecord(address: string): boolean {
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

  /** Records floods that were counted for a minute. To be called about every second. */
  sweep(): void {
    if (this.#log.waiting >= MAX_WAITING) return
    const before = this.#clock.monotonicMs() - FLOOD_MS
    // Floods are kept in the order in which they began.
    for (const [key, flood] of this.#floods) {
      if (flood.since > before) return
      this.#floods.delete(key)
      this.#record(flood)
    }
  }

  /** Records everything that was counted, when the server stops. */
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
