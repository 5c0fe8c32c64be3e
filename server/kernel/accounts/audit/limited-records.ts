/**
 * Records of requests that run nothing: refusals, dry runs, and repetitions of an idempotency key. They cost a user little, so
 * they must not fill the audit log: of each kind some are recorded in a minute, and one more record counts the rest.
 */
import type { Identity } from '../../../../auth/permissions.ts'
import type { AuditEntry, AuditLog } from './log.ts'

/** A request of EXECUTE or DEF_CHANNEL that runs nothing. */
export interface LimitedEntry extends Omit<AuditEntry, 'actor'> {
  readonly action: 'refused' | 'dry-run' | 'repeat'
  readonly identity: Identity
}

interface Minute {
  readonly since: number
  recorded: number
  /** The last entry that was not recorded, and how many there were. */
  last: LimitedEntry | undefined
  counted: number
}

export interface LimitedRecordsOptions {
  readonly log: Pick<AuditLog, 'record'>
  /** Monotonic, milliseconds. */
  readonly now: () => number
  /** Whether the audit log may grow by more records of the tenant. */
  readonly hasRoom: (identity: Identity) => boolean
}

const MINUTE_MS = 60_000
/** The number of records of one kind and user in a minute. */
const MAX_RECORDED = 60

export class LimitedRecords {
  readonly #options: LimitedRecordsOptions
  /** By kind and user id. */
  readonly #minutes = new Map<string, Minute>()

  constructor(options: LimitedRecordsOptions) {
    this.#options = options
  }

  record(entry: LimitedEntry): void {
    const minute = this.#minuteOf(`${entry.action} ${entry.identity.userId}`)
    if (minute.recorded < MAX_RECORDED && this.#options.hasRoom(entry.identity)) {
      minute.recorded++
      this.#options.log.record(entry)
    } else {
      minute.counted++
      minute.last = entry
    }
  }

  #minuteOf(key: string): Minute {
    const now = this.#options.now()
    let minute = this.#minutes.get(key)
    if (minute === undefined || now - minute.since >= MINUTE_MS) {
      if (minute !== undefined) this.#end(key, minute)
      minute = { since: now, recorded: 0, last: undefined, counted: 0 }
      this.#minutes.set(key, minute)
    }
    return minute
  }

  /** Records what was counted in minutes that are over; must be called about every second. */
  sweep(): void {
    const before = this.#options.now() - MINUTE_MS
    for (const [key, minute] of this.#minutes) if (minute.since <= before) this.#end(key, minute)
  }

  /** Records everything that was counted, when the server stops. */
  flush(): void {
    for (const [key, minute] of this.#minutes) this.#end(key, minute)
  }

  #end(key: string, { last, counted }: Minute): void {
    this.#minutes.delete(key)
    if (last === undefined) return
    const detail = 'these requests were only counted; this is the last of them'
    this.#options.log.record({ ...last, args: { count: counted }, detail })
  }
}
