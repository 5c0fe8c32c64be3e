/**
 * Quotas: how much each tenant uses, and how much it may use. Every path that takes a resource asks here first and returns
 * it in the end. Limits come from the tenant or from the configuration; lowering one ends nothing that exists.
 */

import { type BytesOrShare, inBytes } from '../config/value-types.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'

/** The size of the file system with the data directory, and what is free on it. */
export interface FileSystemSpace {
  readonly sizeBytes: number
  readonly freeBytes: number
}

/** The disk is low when less than this share of it is free, and very low with less than the second. */
const LOW_SHARE = 0.1
const VERY_LOW_SHARE = 0.05

/** What each tenant may hold while the disk is low. */
interface DiskAllowance {
  readonly equalShare: number
  /** The part that a tenant keeps of what it held before. */
  readonly kept: number
}

const UNLIMITED: DiskAllowance = { equalShare: Number.POSITIVE_INFINITY, kept: 1 }

/** What a tenant may have; 0: no limit. */
export interface Quota {
  readonly connections: number
  readonly channels: number
  readonly queuedBytes: number
  readonly instances: number
  readonly valuesPerSecond: number
  readonly controlsPerMinute: number
  readonly auditBytesPerDay: number
  readonly dialsPerMinute: number
  readonly series: number
  readonly historyBytes: number
  readonly historySeries: number
  readonly rules: number
  readonly notifiers: number
  readonly ruleSecondsPerHour: number
}

/** The quota as the configuration has it, which may give shares of the file system. */
export type ConfiguredQuota = { readonly [K in keyof Quota]: K extends `${string}Bytes` ? BytesOrShare : Quota[K] }

/** The quota on a file system of that size. */
export function quotaOn(sizeBytes: number, quota: ConfiguredQuota): Quota {
  const { queuedBytes, historyBytes } = quota
  return { ...quota, queuedBytes: inBytes(queuedBytes, sizeBytes), historyBytes: inBytes(historyBytes, sizeBytes) }
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

export class Quotas {
  readonly #limits: (tenant: string) => Quota
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #uses = new Map<string, TenantUse>()
  #allowance = UNLIMITED

  constructor(limits: (tenant: string) => Quota, clock: Pick<Clock, 'monotonicMs'>) {
    this.#limits = limits
    this.#clock = clock
  }

  /**
   * Follows the free space. While it is low, a tenant may hold an equal share of what all of them hold and of what is free, or
   * what it held when it became low; of that it keeps less and less when it is very low. So whoever fills the disk meets its
   * limit before the others find no room. A tenant that is alone may fill it.
   */
  apportion({ sizeBytes, freeBytes }: FileSystemSpace, tenants: number): void {
    const isLow = tenants > 1 && freeBytes < sizeBytes * LOW_SHARE
    if (!isLow && this.#allowance === UNLIMITED) return
    let held = 0
    for (const { queued } of this.#uses.values()) held += queued.bytes
    const kept = Math.min(1, freeBytes / (sizeBytes * VERY_LOW_SHARE))
    this.#allowance = isLow ? { equalShare: (held + freeBytes) / tenants, kept } : UNLIMITED
    for (const use of this.#uses.values()) use.allowance = this.#allowance
  }

  /** The usage of a tenant; there is one object for each, made on first use. */
  of(tenant: string): TenantUse {
    let use = this.#uses.get(tenant)
    if (use === undefined) {
      use = new TenantUse(tenant, this.#limits(tenant), this.#clock)
      use.allowance = this.#allowance
      this.#uses.set(tenant, use)
    }
    return use
  }

  /** Reports that the limits of a tenant have changed. */
  changed(tenant: string): void {
    const use = this.#uses.get(tenant)
    if (use !== undefined) use.quota = this.#limits(tenant)
  }

  /** Reports that the limits of the configuration have changed. */
  allChanged(): void {
    for (const [tenant, use] of this.#uses) use.quota = this.#limits(tenant)
  }

  all(): IterableIterator<[string, TenantUse]> {
    return this.#uses.entries()
  }
}

export class TenantUse {
  readonly connections: Count
  /** Channels in the store; those that were never stored do not count. */
  readonly channels: Count
  /** Bound metrics; each match of a pattern counts separately. */
  readonly instances: Count
  /** Live series of families with open labels. */
  readonly series: Count
  /** Rules that its users have put. */
  readonly rules: Count
  /** Notifiers that its users have put. */
  readonly notifiers: Count
  readonly controls: Rate
  readonly dials: Rate
  /** Bytes of the audit log. */
  readonly audited: Allowance
  /** Seconds in which its rules were worked out. */
  readonly ruleSeconds: Allowance
  /** Bytes of VALUE frames in all its channels. The limit is read for every value. */
  readonly queued: { bytes: number; limit: number }
  readonly values: ValueMeter
  /** What its history has, which sees to it itself that it is not more than `historyLimits`. */
  readonly history = { bytes: 0, series: 0 }

  #quota: Quota
  #allowance = UNLIMITED
  /** What it held when the disk became low. */
  #heldBefore = 0

  constructor(tenant: string, limits: Quota, clock: Pick<Clock, 'monotonicMs'>) {
    this.#quota = limits
    const quota = (): Quota => this.#quota
    const now = (): number => clock.monotonicMs()
    this.connections = new Count(`tenant ${tenant}: connections`, () => most(quota().connections))
    this.channels = new Count(`tenant ${tenant}: channels`, () => most(quota().channels))
    this.instances = new Count(`tenant ${tenant}: bound metrics`, () => most(quota().instances))
    this.series = new Count(`tenant ${tenant}: series`, () => most(quota().series))
    this.rules = new Count(`tenant ${tenant}: rules`, () => most(quota().rules))
    this.notifiers = new Count(`tenant ${tenant}: notifiers`, () => most(quota().notifiers))
    this.controls = new Rate(`tenant ${tenant}: controls in a minute`, () => most(quota().controlsPerMinute), now)
    this.dials = new Rate(`tenant ${tenant}: dials in a minute`, () => most(quota().dialsPerMinute), now)
    this.audited = new Allowance(
      `tenant ${tenant}: bytes of the audit log in a day`,
      () => most(quota().auditBytesPerDay),
      now,
    )
    const ruleSeconds = `tenant ${tenant}: seconds for its rules in an hour`
    this.ruleSeconds = new Allowance(ruleSeconds, () => most(quota().ruleSecondsPerHour), now, HOUR_MS)
    this.queued = { bytes: 0, limit: most(limits.queuedBytes) }
    this.values = new ValueMeter(() => most(quota().valuesPerSecond), now)
  }

  /** Infinite where there is no limit. */
  get historyLimits(): { readonly bytes: number; readonly series: number } {
    const { historyBytes, historySeries } = this.#quota
    return { bytes: most(historyBytes), series: most(historySeries) }
  }

  set quota(quota: Quota) {
    this.#quota = quota
    this.#limitQueued()
  }

  set allowance(allowance: DiskAllowance) {
    if (this.#allowance === UNLIMITED) this.#heldBefore = this.queued.bytes
    this.#allowance = allowance
    this.#limitQueued()
  }

  #limitQueued(): void {
    const { equalShare, kept } = this.#allowance
    this.queued.limit = Math.min(most(this.#quota.queuedBytes), Math.max(equalShare, this.#heldBefore * kept))
  }
}

/** In the configuration, 0 means no limit. */
function most(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}

/** A limited number of things that exist for a while. */
export class Count {
  readonly #what: string
  readonly #limit: () => number
  used = 0
  /** The number of refusals that could not be reported at once. */
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
    if (!this.hasRoom(more)) throw exceeded(`${this.#what}: ${this.used} exist and ${this.#limit()} are allowed`)
  }

  /** Counts one more, or throws StatusError QUOTA_EXCEEDED and counts nothing. */
  enter(): void {
    this.needsRoom()
    this.used++
  }

  leave(): void {
    this.used--
  }
}

/** A limited number of events within any minute. */
export class Rate {
  readonly #what: string
  readonly #limit: () => number
  readonly #now: () => number
  /** The times of the events of the last minute, oldest first; empty while there is no limit. */
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

  /** Milliseconds until the next event is allowed; 0 if it is allowed now. */
  get waitMs(): number {
    this.#forgetOld()
    const limit = this.#limit()
    if (this.#times.length < limit) return 0
    return MINUTE_MS - (this.#now() - (this.#times[this.#times.length - limit] as number))
  }

  /** Counts an event, or throws StatusError QUOTA_EXCEEDED if it is not allowed. */
  take(): void {
    const { waitMs } = this
    if (waitMs > 0) {
      throw exceeded(`${this.#what}: ${this.#limit()} are allowed; try again in ${Math.ceil(waitMs / SECOND_MS)} s`)
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

/** An amount that may be used within a day, or another time. What was used is forgotten evenly, as much in that time as the limit. */
export class Allowance {
  readonly #what: string
  readonly #limit: () => number
  readonly #now: () => number
  readonly #withinMs: number
  #used = 0
  #at: number

  constructor(what: string, limit: () => number, now: () => number, withinMs = DAY_MS) {
    this.#what = what
    this.#limit = limit
    this.#now = now
    this.#withinMs = withinMs
    this.#at = now()
  }

  get limit(): number {
    return this.#limit()
  }

  /** Not counted while there is no limit. */
  get used(): number {
    const [now, limit] = [this.#now(), this.#limit()]
    const forgotten = Number.isFinite(limit) ? ((now - this.#at) / this.#withinMs) * limit : this.#used
    this.#used = Math.max(0, this.#used - forgotten)
    this.#at = now
    return this.#used
  }

  get hasRoom(): boolean {
    return this.used < this.#limit()
  }

  /** Throws StatusError QUOTA_EXCEEDED. */
  needsRoom(): void {
    if (!this.hasRoom) throw exceeded(`${this.#what}: ${this.#limit()} are allowed; try again later`)
  }

  /** Counts what was used; the last use may exceed the limit. */
  take(amount: number): void {
    if (Number.isFinite(this.#limit())) this.#used = this.used + amount
  }

  /** Forgets some of what was used. */
  giveBack(amount: number): void {
    this.#used = Math.max(0, this.used - amount)
  }
}

/** While there is no limit, the number of values after which the limit is read again. */
const UNLOOKED = 1_000

/** With a limit, values are counted in portions of this share of it. */
const PORTION = 1 / 1_000

/** A limit on the values of feeds in each second, which begins with its first value. Called for every value. */
export class ValueMeter {
  readonly #limit: () => number
  readonly #now: () => number
  /** Values that may pass before the limit is read again. */
  #free = 0
  #since = Number.NEGATIVE_INFINITY
  #taken = 0
  /** Values that were refused. */
  refused = 0

  constructor(limit: () => number, now: () => number) {
    this.#limit = limit
    this.#now = now
  }

  get limit(): number {
    return this.#limit()
  }

  /** Values in the current second; not counted while there is no limit. */
  get used(): number {
    return this.#now() - this.#since < SECOND_MS ? this.#taken : 0
  }

  /** Milliseconds until the next value is allowed, for feeds that can wait; 0 if it is allowed now. */
  get waitMs(): number {
    const gone = this.#now() - this.#since
    return gone >= SECOND_MS || this.#taken < this.#limit() ? 0 : SECOND_MS - gone
  }

  /** Counts a value; returns false if it is refused. */
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
    const portion = Math.max(1, Math.floor(limit * PORTION))
    this.#taken += portion
    this.#free = portion - 1
    return true
  }
}

function exceeded(detail: string): StatusError {
  return new StatusError('QUOTA_EXCEEDED', detail)
}

/** The quota where nothing is limited. `what` is counted. */
export function unlimited(what: string): () => Count {
  const count = new Count(what, () => Number.POSITIVE_INFINITY)
  return () => count
}
