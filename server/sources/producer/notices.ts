/** `producer.notices`: things that happen to the producer, as an event-like metric. What concerns one user is that user's. */
import { ADMIN_ROLE, type Identity, type Owner } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../../core/clock.ts'
import type { EventSensor, Measurement, Metric } from '../../metrics/metric.ts'

const { STRING, REC } = BasicType

const metric: Metric = {
  name: 'producer.notices',
  kind: 'event',
  type: REC,
  unit: '',
  description: 'What happened: storage full and well again, a listener that failed, a channel that expired.',
  parameters: [],
}

export interface NoticeEvent {
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

  /** Tells whoever may know: everybody, or, of something that is somebody's, the one user (by id) or the tenant, and the role admin. */
  emit({ severity, subject, detail }: NoticeEvent, whose?: number | { readonly tenant: string }): void {
    const fields: Field[] = [
      { name: 'severity', type: STRING, value: severity },
      { name: 'subject', type: STRING, value: subject },
      { name: 'detail', type: STRING, value: detail },
    ]
    const event: Measurement = { value: { type: REC, value: fields }, time: this.#clock.microseconds() }
    const mayKnow = ({ userId, tenant, role }: Identity): boolean => {
      if (whose === undefined || role === ADMIN_ROLE) return true
      return typeof whose === 'number' ? userId === whose : tenant === whose.tenant
    }
    for (const [listener, identity] of this.#listeners) if (mayKnow(identity)) listener(event)
  }
}
