/** `producer.notices`: events of the producer. A notice that concerns one user or tenant is shown only to that user or tenant. */
import { ADMIN_ROLE, type Identity, type Owner } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Clock } from '../core/clock.ts'
import type { EventSensor, Measurement, Metric } from '../metrics/metric.ts'

const { STRING, REC } = BasicType

const metric: Metric = {
  name: 'producer.notices',
  kind: 'event',
  type: REC,
  unit: '',
  description: 'Events of the producer: storage is full or works again, a listener failed, a channel expired.',
  parameters: [],
}

export interface ProducerNotice {
  readonly severity: 'info' | 'warning' | 'error'
  readonly subject: string
  readonly detail: string
}

export class Notices implements EventSensor {
  readonly polled = 'event'
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #listeners = new Map<(event: Measurement) => void, Identity>()

  constructor(clock: Pick<Clock, 'microseconds'>) {
    this.#clock = clock
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  subscribe(_metric: Metric, identity: Identity, listener: (event: Measurement) => void): () => void {
    this.#listeners.set(listener, identity)
    return () => this.#listeners.delete(listener)
  }

  /** Reports an event to everybody or, if `about` names a user (by id) or a tenant, to these and to the role admin. */
  emit({ severity, subject, detail }: ProducerNotice, about?: number | { readonly tenant: string }): void {
    const fields: Field[] = [
      { name: 'severity', type: STRING, value: severity },
      { name: 'subject', type: STRING, value: subject },
      { name: 'detail', type: STRING, value: detail },
    ]
    const event: Measurement = { value: { type: REC, value: fields }, time: this.#clock.microseconds() }
    const mayKnow = ({ userId, tenant, role }: Identity): boolean => {
      if (about === undefined || role === ADMIN_ROLE) return true
      return typeof about === 'number' ? userId === about : tenant === about.tenant
    }
    for (const [listener, identity] of this.#listeners) if (mayKnow(identity)) listener(event)
  }
}

const MINUTE_MS = 60_000

/** Reports to a tenant what its quotas refused where no command could be refused: at most once a minute, with the amount. */
export class QuotaNotices {
  readonly #quotas: Quotas
  readonly #notices: Pick<Notices, 'emit'>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #reported = new Map<string, { readonly refused: number; readonly atMs: number }>()

  constructor(quotas: Quotas, notices: Pick<Notices, 'emit'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#quotas = quotas
    this.#notices = notices
    this.#clock = clock
  }

  /** Call this about once a second. */
  report(): void {
    for (const [tenant, { values, instances }] of this.#quotas.all()) {
      this.#report(tenant, 'values', values, (more) => {
        return `the feeds of tenant ${tenant} bring in more than ${values.limit} values a second: ${more} values were discarded`
      })
      this.#report(tenant, 'instances', instances, (more) => {
        return `tenant ${tenant} has reached its limit of ${instances.limit} bound metrics: ${more} matches of patterns were left out`
      })
    }
  }

  #report(
    tenant: string,
    what: string,
    { refused }: { readonly refused: number },
    say: (more: number) => string,
  ): void {
    const now = this.#clock.monotonicMs()
    const key = `${what} ${tenant}`
    const reported = this.#reported.get(key) ?? { refused: 0, atMs: Number.NEGATIVE_INFINITY }
    if (refused === reported.refused || now - reported.atMs < MINUTE_MS) return
    this.#notices.emit({ severity: 'warning', subject: 'quota', detail: say(refused - reported.refused) }, { tenant })
    this.#reported.set(key, { refused, atMs: now })
  }
}
