/** Refused requests in the audit log. A user that is refused again and again must not fill it: further refusals are counted in the next record. */
import type { Identity } from '../../../auth/permissions.ts'
import type { AuditEntry, AuditLog } from './log.ts'

/** A refused EXECUTE or DEF_CHANNEL. */
export interface RefusedRequest extends Pick<AuditEntry, 'address' | 'object' | 'args' | 'outcome'> {
  readonly identity: Identity
  readonly detail: string
}

interface Refused {
  readonly since: number
  count: number
}

const MINUTE_MS = 60_000
/** The number of refusals of one user that are recorded in a minute. */
const MAX_REFUSED = 60

export class Refusals {
  readonly #log: Pick<AuditLog, 'record'>
  readonly #now: () => number
  /** By user id. */
  readonly #refused = new Map<number, Refused>()

  /** `now` is monotonic, in milliseconds. */
  constructor(log: Pick<AuditLog, 'record'>, now: () => number) {
    this.#log = log
    this.#now = now
  }

  record(refusal: RefusedRequest): void {
    const unrecorded = this.#count(refusal.identity.userId)
    if (unrecorded === undefined) return
    const more = unrecorded === 0 ? '' : ` (${unrecorded} earlier refusals were only counted)`
    this.#log.record({ action: 'refused', ...refusal, detail: refusal.detail + more })
  }

  /** Counts a refusal. Returns how many before it were not recorded, or undefined if this one is not recorded either. */
  #count(user: number): number | undefined {
    const now = this.#now()
    const refused = this.#refused.get(user)
    if (refused === undefined || now - refused.since >= MINUTE_MS) {
      this.#refused.set(user, { since: now, count: 1 })
      return Math.max(0, (refused?.count ?? 0) - MAX_REFUSED)
    }
    refused.count++
    return refused.count > MAX_REFUSED ? undefined : 0
  }
}
