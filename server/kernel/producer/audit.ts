/**
 * `producer.audit`: the records of the audit log, as they are stored [MON 10]. With `after`, a binding begins in the past: it
 * reads the log in portions until it has caught up, and then follows new records. Its position is stored with the records it
 * sent, so that a restart neither skips nor repeats any. The rules decide who may read the metric at all; this file decides
 * which records a reader sees.
 */
import { ADMIN_ROLE, type Identity, type Owner } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { AuditRow } from '../../../storage/store.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Logger } from '../core/log.ts'
import type { Arguments, EventSensor, Measurement, Metric, ResumePoint } from '../metrics/metric.ts'

const { OPAQUE, REC, STRING, UINT64 } = BasicType

const metric: Metric = {
  name: 'producer.audit',
  kind: 'event',
  type: REC,
  unit: '',
  description:
    'The audit log: who did what, from where, and with what outcome. The role admin sees all records, others those of their tenant since they were added.',
  parameters: [{ name: 'after', type: UINT64, description: 'Starts with the first record above this number.' }],
}

type Source = Pick<AuditLog, 'stored' | 'follow' | 'read' | 'whenStored'>
/** When a user was added, milliseconds since 1970. */
type CreationOf = (userId: number) => number

export class AuditSensor implements EventSensor {
  readonly polled = 'event'
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly #audit: Source
  readonly #log: Pick<Logger, 'error'>
  readonly #createdOf: CreationOf

  constructor(audit: Source, log: Pick<Logger, 'error'>, createdOf: CreationOf) {
    this.#audit = audit
    this.#log = log
    this.#createdOf = createdOf
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  subscribe(
    _metric: Metric,
    identity: Identity,
    listener: (event: Measurement) => void,
    args: Arguments,
    place: ResumePoint,
  ): () => void {
    const after = args.get('after') as bigint | undefined
    const start = after === undefined ? this.#audit.stored : Math.min(Number(after), Number.MAX_SAFE_INTEGER)
    // A restart before the first record must find the position where the binding began.
    if (place.reached === undefined) place.reach(start)
    const reader = new AuditReader(this.#audit, this.#log, place.reached ?? start, (rows, reached) => {
      const created = this.#createdOf(identity.userId) * 1000
      for (const row of rows) if (maySee(identity, created, row)) listener(eventOf(row))
      place.reach(reached)
    })
    return () => reader.end()
  }
}

type Take = (rows: readonly AuditRow[], reached: number) => void

/** A position in the log. Records that are stored while it reads the past are found there in turn. */
class AuditReader {
  readonly #audit: Source
  readonly #log: Pick<Logger, 'error'>
  readonly #take: Take
  readonly #unfollow: () => void
  #reached: number
  #isReading = false
  #ended = false

  constructor(audit: Source, log: Pick<Logger, 'error'>, from: number, take: Take) {
    this.#audit = audit
    this.#log = log
    this.#take = take
    this.#reached = from
    this.#unfollow = audit.follow((rows) => this.#follow(rows))
    if (from < audit.stored) void this.#catchUp()
  }

  end(): void {
    this.#ended = true
    this.#unfollow()
  }

  #follow(rows: readonly AuditRow[]): void {
    if (!this.#isReading) this.#pass(rows.filter(({ number }) => number > this.#reached))
  }

  #pass(rows: readonly AuditRow[]): void {
    const last = rows.at(-1)
    if (last === undefined) return
    this.#reached = last.number
    this.#take(rows, last.number)
  }

  async #catchUp(): Promise<void> {
    this.#isReading = true
    try {
      while (this.#reached < this.#audit.stored) {
        const { stored } = this.#audit
        const rows = await this.#audit.read(this.#reached)
        if (this.#ended) return
        // Records that should exist but do not were removed from the database by somebody.
        if (rows.length === 0) this.#reached = stored
        this.#pass(rows)
        // The past is read no faster than it can be stored in the channel.
        await this.#audit.whenStored()
        if (this.#ended) return
      }
    } catch (error) {
      this.#log.error(
        { err: error, after: this.#reached },
        'the audit log cannot be read: records are missing from producer.audit',
      )
      this.#reached = this.#audit.stored
    }
    this.#isReading = false
  }
}

/** What was recorded before a user was added may be about another tenant, or another user, of the same name. */
function maySee({ role, tenant }: Identity, created: number, row: AuditRow): boolean {
  return role === ADMIN_ROLE || (row.tenant === tenant && row.time >= created)
}

function eventOf({ number, time, hash, ...row }: AuditRow): Measurement {
  const text = (name: keyof typeof row) => ({ name, type: STRING, value: row[name] }) as const
  const value: Value = {
    type: REC,
    value: [
      { name: 'number', type: UINT64, value: BigInt(number) },
      { name: 'time', type: UINT64, value: BigInt(time) },
      ...(['action', 'actor', 'tenant', 'address', 'object', 'args', 'outcome', 'detail'] as const).map(text),
      { name: 'hash', type: OPAQUE, value: hash },
    ],
  }
  return { value, time }
}
