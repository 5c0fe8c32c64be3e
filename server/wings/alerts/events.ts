/**
 * `alert`: each transition of an alert is a value of this event metric, with the labels of the alert. Whoever binds it gets every
 * transition once, in order.
 */

import type { LabelSet } from '../../../promql/label-set.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Feed } from '../../kit/feed.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import type { HeldValues } from '../../kit/held-values.ts'
import {
  fromForeign,
  type Labels,
  type ListeningSensor,
  labelsFrom,
  type Metric,
  type Owner,
  openLabelsProblem,
  type Series,
  type Subscription,
  type TenantFamily,
} from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { storedLabels } from './evaluation/state.ts'
import type { Alert } from './rules/alerting-rule.ts'

const { DOUBLE, REC, STRING, UINT64 } = BasicType
const MICROSECONDS = 1_000

const metric: Metric = {
  name: 'alert',
  kind: 'event',
  type: REC,
  unit: '',
  description: 'The transitions of alerts: pending, firing, inactive.',
  parameters: [],
  exposition: 'none',
}

/** Where an alert comes from, and the number of the transition. */
export interface Transition {
  readonly alert: Alert
  readonly group: string
  readonly rule: string
  readonly sequence: number
  /** Of the evaluation, milliseconds since 1970. */
  readonly timeMs: number
}

/** A sensor for each tenant. */
export class AlertSensors implements TenantFamily {
  readonly family = metric.name
  readonly #feed: Pick<Feed, 'add' | 'born' | 'died' | 'emit'>
  readonly #held: Pick<HeldValues, 'holdSeries'>
  readonly #ended: (tenant: string) => void
  readonly #sensors = new Map<string, AlertSensor>()

  /**
   * `held`: what keeps transitions from being sent before they are stored, since they follow again from what is. `ended` is called with
   * a tenant that was removed, whose alerts are to end.
   */
  constructor(
    feed: Pick<Feed, 'add' | 'born' | 'died' | 'emit'>,
    held: Pick<HeldValues, 'holdSeries'>,
    ended: (tenant: string) => void,
  ) {
    this.#feed = feed
    this.#held = held
    this.#ended = ended
  }

  of(tenant: string): AlertSensor {
    let sensor = this.#sensors.get(tenant)
    if (sensor === undefined) {
      sensor = new AlertSensor(tenant, this.#feed, this.#held)
      this.#sensors.set(tenant, sensor)
      this.#feed.add(sensor)
    }
    return sensor
  }

  open(tenant: string): void {
    this.of(tenant)
  }

  // biome-ignore lint/correctness/useYield: what ends is as little as the quota of the tenant allows
  *endSeries(tenant: string): Steps<void> {
    this.#ended(tenant)
  }
}

class AlertSensor implements ListeningSensor {
  readonly polled = false
  readonly family = metric.name
  readonly hasOpenLabels = true
  readonly owner: Owner
  readonly #feed: Pick<Feed, 'born' | 'died' | 'emit'>
  readonly #series = new Map<string, AlertSeries>()

  readonly #held: Pick<HeldValues, 'holdSeries'>
  #whenAsked: (() => Promise<void> | undefined) | undefined

  constructor(tenant: string, feed: Pick<Feed, 'born' | 'died' | 'emit'>, held: Pick<HeldValues, 'holdSeries'>) {
    this.owner = { tenant }
    this.#feed = feed
    this.#held = held
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  *series(name: string = metric.name): Iterable<Series> {
    if (name === metric.name) yield* this.#series.values()
  }

  /** Nothing is current of what has happened. */
  last(): undefined {
    return undefined
  }

  /** Makes known that something will become of an alert: whoever may want to hear of it is asked from now on. */
  announce(labels: LabelSet): void {
    this.#seriesOf(labels)
  }

  /** Settles when everybody was asked about what was announced: what is emitted then is with all of them in one turn; undefined if it is now. */
  asked(): Promise<void> | undefined {
    return this.#whenAsked?.()
  }

  emit(transition: Transition): void {
    const { alert, timeMs } = transition
    const series = this.#seriesOf(alert.labels)
    this.#held.holdSeries(series)
    this.#feed.emit(series, { type: REC, value: fieldsOf(transition) }, timeMs * MICROSECONDS)
  }

  #seriesOf(labels: LabelSet): AlertSeries {
    const key = storedLabels(labels)
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const series = new AlertSeries(ownLabelsOf(labels))
    this.#series.set(key, series)
    this.#whenAsked = this.#feed.born(this, series) ?? this.#whenAsked
    return series
  }

  /** Nothing more will become of an alert for now. */
  forget(labels: LabelSet): void {
    const key = storedLabels(labels)
    const series = this.#series.get(key)
    if (series === undefined) return
    this.#series.delete(key)
    this.#feed.died(series)
  }
}

class AlertSeries implements Series {
  readonly name = metric.name
  readonly isEvent = true
  readonly labels: Labels
  readonly subscriptions: Subscription[] = []

  constructor(labels: Labels) {
    this.labels = labels
  }

  matches(label: string, matcher: (text: string) => boolean): boolean {
    return matcher((Object.hasOwn(this.labels, label) ? this.labels[label] : undefined) ?? '')
  }
}

/** Why an alert with these labels has no place in a value; undefined if it has. */
export function alertLabelsProblem(labels: LabelSet): string | undefined {
  return openLabelsProblem(metric.name, ownLabelsOf(labels))
}

function ownLabelsOf(labels: LabelSet): Labels {
  const renamed = [...labels].map(([name, text]) => [fromForeign(name), text] as const)
  return labelsFrom([...renamed, ['name', metric.name]])
}

function fieldsOf({ alert, group, rule, sequence }: Transition): Field[] {
  const { labels, annotations, state, value, activeMs, firedMs = 0, resolvedMs = 0 } = alert
  const time = (name: string, ms: number): Field => ({
    name,
    type: UINT64,
    value: BigInt(Math.round(ms * MICROSECONDS)),
  })
  return [
    { name: 'state', type: STRING, value: state },
    { name: 'value', type: DOUBLE, value },
    time('since', activeMs),
    time('fired', firedMs),
    time('ended', resolvedMs),
    { name: 'group', type: STRING, value: group },
    { name: 'rule', type: STRING, value: rule },
    {
      name: 'annotations',
      type: REC,
      value: [...annotations].map(([name, text]): Field => ({ name, type: STRING, value: text })),
    },
    { name: 'fingerprint', type: STRING, value: fingerprintOf(labels) },
    { name: 'sequence', type: UINT64, value: BigInt(sequence) },
  ]
}
