/** `producer.history`: what the history has of each tenant, and how it is about it. A tenant sees its own, an admin all. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import {
  type Measurement,
  type Metric,
  maySee,
  type Owner,
  type PolledSensor,
  type RecordExposition,
  RecordList,
} from '../../kit/metrics.ts'
import type { Clock } from '../../kit/running.ts'
import { type Figures, SERVER, type TenantFigures } from './messages.ts'

const { ARRAY, STRING, UINT64 } = BasicType
const MICROSECONDS = 1_000

const gauge = (name: string, help: string) => ({ name, help, isCounter: false })
const counter = (name: string, help: string) => ({ name, help, isCounter: true })

const exposition: RecordExposition = {
  labels: { tenant: 'tenant' },
  fields: {
    samples: counter('samples', 'Samples that were recorded since the history began to run.'),
    stored: gauge('stored_samples', 'Samples that are stored.'),
    series: gauge('series', 'Series that are stored.'),
    bytes: gauge('bytes', 'Bytes that they take.'),
    waiting: gauge('waiting', 'Values that wait to be recorded.'),
    oldest: { ...gauge('oldest_seconds', 'Age of the oldest day that is stored.'), convert: 'age' },
    refused: counter('refused', 'Samples of series over the quota.'),
    lost: counter('lost', 'Values that were lost before they could be recorded.'),
    ahead: counter('ahead', 'Values with a time more than a minute ahead of the clock, which are not recorded.'),
    unsupported: counter('unsupported', 'Values that are no samples, such as texts.'),
    repeated: counter('repeated', 'Values that came again, and were stored already.'),
    merges: counter('merges', 'Merges of pages.'),
    late: counter('late', 'Samples that came for a day whose file was made already.'),
    too_old: counter('too_old', 'Samples that were older than they may be kept, or of a day whose samples have gone.'),
    days_over_bytes: counter('days_over_bytes', 'Days that went over the limits of bytes before their time.'),
    damaged_pages: counter('damaged_pages', 'Pages that could not be read.'),
  },
}

const metric: Metric = {
  name: 'producer.history',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description: 'The history by tenant: what was recorded, what is stored, and what was not.',
  parameters: [],
  exposition,
}

export interface ShownHistory {
  /** undefined while nothing is recorded. */
  readonly figures: Figures | undefined
  /** Values of a tenant that wait in its channel. */
  waiting(tenant: string): number
}

export class HistorySensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #history: ShownHistory
  readonly #clock: Pick<Clock, 'microseconds'>

  constructor(history: ShownHistory, clock: Pick<Clock, 'microseconds'>) {
    this.#history = history
    this.#clock = clock
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  labels(): { readonly name: string } {
    return { name: metric.name }
  }

  check(): void {}

  measure(...[, , identity]: Parameters<PolledSensor['measure']>): Measurement {
    const { figures } = this.#history
    const list = new RecordList()
    for (const [tenant, of] of figures?.tenants ?? []) {
      const owner: Owner = tenant === SERVER ? 'producer' : { tenant }
      if (figures === undefined || !maySee(identity, owner)) continue
      const whole = tenant === SERVER ? figures : undefined
      if (!list.add(describe(tenant, of, this.#history.waiting(tenant), whole))) break
    }
    return { value: list.value(), time: this.#clock.microseconds() }
  }
}

/** What concerns no tenant alone stands with what belongs to none. */
function describe(tenant: string, of: TenantFigures, waiting: number, whole: Figures | undefined): Field[] {
  const { samples, stored, series, bytes, oldestMs = 0, refused, lost, ahead, unsupported, repeated } = of
  const counts = { samples, stored, series, bytes, waiting, oldest: oldestMs * MICROSECONDS }
  const more = { refused, lost, ahead, unsupported, repeated }
  const ofAll = whole && {
    merges: whole.merges,
    late: whole.late,
    too_old: whole.tooOld,
    days_over_bytes: whole.daysOverBytes,
    damaged_pages: whole.damagedPages,
  }
  const numbers = Object.entries({ ...counts, ...more, ...ofAll })
  return [
    { name: 'tenant', type: STRING, value: tenant },
    ...numbers.map(([name, value]): Field => ({ name, type: UINT64, value: BigInt(Math.max(0, Math.round(value))) })),
  ]
}
