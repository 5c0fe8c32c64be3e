/**
 * What each tenant has of what it may have. Every path that takes something asks here, and gives it back when it ends;
 * the limits come from the tenant or the configuration. When one is lowered, what is there stays.
 */

import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'

/** What a tenant may have; 0: no limit. */
export interface Quota {
  readonly connections: number
  readonly channels: number
  readonly queuedBytes: number
  readonly instances: number
  readonly valuesPerSecond: number
  readonly controlsPerMinute: number
  readonly dialsPerMinute: number
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

export class Quotas {
  readonly #limits: (tenant: string) => Quota
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #uses = new Map<string, TenantUse>()

  constructor(limits: (tenant: string) => Quota, clock: Pick<Clock, 'monotonicMs'>) {
    this.#limits = limits
    this.#clock = clock
  }

  /** The one account of a tenant, made when it is first asked for. */
  of(tenant: string): TenantUse {
    let use = this.#uses.get(tenant)
    if (use === undefined) {
      use = new TenantUse(tenant, this.#limits(tenant), this.#clock)
      this.#uses.set(tenant, use)
    }
    return use
  }

  /** The limits of a tenant are others now. */
  changed(tenant: string): void {
    const use = this.#uses.get(tenant)
    if (use !== undefined) use.quota = this.#limits(tenant)
  }

  all(): IterableIterator<[string, TenantUse]> {
    return this.#uses.entries()
  }
}

export class TenantUse {
  readonly connections: Count
  /** Those in the store: what was never worth that does not count. */
  readonly channels: Count
  /** Metrics that are bound, each match of a pattern by itself. */
  readonly instances: Count
  readonly controls: Rate
  readonly dials: Rate
  /** Bytes of VALUE frames in all its channels. The limit is looked at for every value. */
  readonly queued: { bytes: number; limit: number }
  readonly values: ValueMeter

  #quota: Quota

  constructor(tenant: string, limits: Quota, clock: Pick<Clock, 'monotonicMs'>) {
    this.#quota = limits
    const quota = (): Quota => this.#quota
    const now = (): number => clock.monotonicMs()
    this.connections = new Count(`tenant ${tenant}: connections`, () => most(quota().connections))
    this.channels = new Count(`tenant ${tenant}: channels`, () => most(quota().channels))
    this.instances = new Count(`tenant ${tenant}: bound metrics`, () => most(quota().instances))
    this.controls = new Rate(`tenant ${tenant}: controls in a minute`, () => most(quota().controlsPerMinute), now)
    this.dials = new Rate(`tenant ${tenant}: dials in a minute`, () => most(quota().dialsPerMinute), now)
    this.queued = { bytes: 0, limit: most(limits.queuedBytes) }
    this.values = new ValueMeter(() => most(quota().valuesPerSecond), now)
  }

  set quota(quota: Quota) {
    this.#quota = quota
    this.queued.limit = most(quota.queuedBytes)
  }
}

/** 0 is no limit. */
function most(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}

/** Things that are there for a while. */
export class Count {
  readonly #what: string
  readonly #limit: () => number
  used = 0
  /** How many did without, where nobody could be told at once. */
  refused = 0

  constructor(what: string, limit: () => number) {
    this.#what = what
    this.#limit = limit
  }

  get limit(): number {
    return this.#limit()
  }

  hasRoom(more = 1): boolean {
    return this.used + more <= this.#limit()
  }

  /** Throws StatusError QUOTA_EXCEEDED. */
  needsRoom(more = 1): void {
    if (!this.hasRoom(more)) throw exceeded(`${this.#what}: ${this.used} are there, ${this.#limit()} are allowed`)
  }

  /** Throws StatusError QUOTA_EXCEEDED, and then nothing is counted. */
  enter(): void {
    this.needsRoom()
    this.used++
  }

  leave(): void {
    this.used--
  }
}

/** Things that happen, at most so many within any minute. */
export class Rate {
  readonly #what: string
  readonly #limit: () => number
  readonly #now: () => number
  /** When those of the last minute happened, oldest first; none are kept while there is no limit. */
  readonly #times: number[] = []

  constructor(what: string, limit: () => number, now: () => number) {
    this.#what = what
    this.#limit = limit
    this.#now = now
  }

  get limit(): number {
    return this.#limit()
  }

  get used(): number {
    this.#forgetOld()
    return this.#times.length
  }

  /** Milliseconds until one more may happen; 0: now. */
  get waitMs(): number {
    this.#forgetOld()
    const limit = this.#limit()
    if (this.#times.length < limit) return 0
    return MINUTE_MS - (this.#now() - (this.#times[this.#times.length - limit] as number))
  }

  /** One happens. Throws StatusError QUOTA_EXCEEDED, and then it must not. */
  take(): void {
    const { waitMs } = this
    if (waitMs > 0) {
      throw exceeded(`${this.#what}: ${this.#limit()} are allowed; again in ${Math.ceil(waitMs / SECOND_MS)} s`)
    }
    if (Number.isFinite(this.#limit())) this.#times.push(this.#now())
  }

  #forgetOld(): void {
    const before = this.#now() - MINUTE_MS
    let old = 0
    while (old < this.#times.length && (this.#times[old] as number) <= before) old++
    if (old > 0) this.#times.splice(0, old)
  }
}

/** So many are taken in before it is looked again whether there is a limit by now. */
const UNLOOKED = 1_000

/** Values that feeds bring in, at most so many within a second that begins with its first. Asked for every value. */
export class ValueMeter {
  readonly #limit: () => number
  readonly #now: () => number
  /** While there is no limit. */
  #free = 0
  #since = Number.NEGATIVE_INFINITY
  #taken = 0
  /** Values that were kept out. */
  refused = 0

  constructor(limit: () => number, now: () => number) {
    this.#limit = limit
    this.#now = now
  }

  get limit(): number {
    return this.#limit()
  }

  /** In the second under way; not counted while there is no limit. */
  get used(): number {
    return this.#now() - this.#since < SECOND_MS ? this.#taken : 0
  }

  /** Milliseconds until more may come in; 0: now. For feeds that can wait. */
  get waitMs(): number {
    const gone = this.#now() - this.#since
    return gone >= SECOND_MS || this.#taken < this.#limit() ? 0 : SECOND_MS - gone
  }

  /** False if the value has to stay out. */
  take(): boolean {
    if (this.#free > 0) {
      this.#free--
      return true
    }
    return this.#measured()
  }

  #measured(): boolean {
    const limit = this.#limit()
    if (!Number.isFinite(limit)) {
      this.#free = UNLOOKED
      return true
    }
    const now = this.#now()
    if (now - this.#since >= SECOND_MS) {
      this.#since = now
      this.#taken = 0
    }
    if (this.#taken >= limit) {
      this.refused++
      return false
    }
    this.#taken++
    return true
  }
}

function exceeded(detail: string): StatusError {
  return new StatusError('QUOTA_EXCEEDED', detail)
}
