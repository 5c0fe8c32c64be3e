/** `producer.notifiers`, `producer.notifications` and `producer.silences`: who is told of alerts, what was told, and what nobody is told. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import {
  type Arguments,
  type Measurement,
  type Metric,
  maySee,
  type Owner,
  type PolledSensor,
  type RecordExposition,
  RecordList,
} from '../../kit/metrics.ts'
import type { Clock, Steps } from '../../kit/running.ts'
import type { NotifierTable } from './bodies.ts'
import type { InForce } from './in-force.ts'
import { fieldsOfNotification, hadAlert, type NotificationLog } from './log.ts'
import { notifierPlace } from './names.ts'
import type { Silence, Silences } from './silences.ts'

const { ARRAY, BOOLEAN, STRING, UINT64 } = BasicType
const MICROSECONDS = 1_000

const gauge = (name: string, help: string) => ({ name, help, isCounter: false })
const counter = (name: string, help: string) => ({ name, help, isCounter: true })

const exposition: RecordExposition = {
  labels: { tenant: 'tenant', name: 'notifier' },
  fields: {
    groups: gauge('groups', 'Groups of alerts that a notifier knows.'),
    alerts: gauge('alerts', 'Alerts that a notifier knows.'),
    transitions: counter('transitions', 'Transitions of alerts that a notifier was given.'),
    lost: counter('lost', 'Transitions that its channel has lost.'),
    escalated: counter('escalated', 'Alerts that the next notifier was told of, since nobody acknowledged them.'),
    requests: counter('requests', 'Requests to its receiver.'),
    retries: counter('retries', 'Requests that were sent again.'),
    delivered: counter('delivered', 'Notifications that its receiver has taken.'),
    refused: counter('refused', 'Notifications that its receiver will never take.'),
  },
}

const list = (
  name: string,
  description: string,
  shown: RecordExposition | 'none',
  parameters: Metric['parameters'] = [],
): Metric => ({
  name,
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description,
  parameters,
  exposition: shown,
})

/** Ascending by name. */
const METRICS = [
  list('producer.notifications', 'The last notifications: to whom, when, and with what answer.', 'none', [
    { name: 'notifier', type: STRING, description: 'Only those of this one.' },
    { name: 'alert', type: STRING, description: 'Only those that had an alert with this fingerprint.' },
  ]),
  list('producer.notifiers', 'Who is told of alerts, and how that goes.', exposition),
  list('producer.silences', 'Alerts of which nobody is told for a while.', 'none', [
    { name: 'ended', type: BOOLEAN, description: 'True: those that have ended within the last five days instead.' },
  ]),
] as const

export interface ShownNotifiers {
  readonly running: readonly (Pick<InForce, 'counts' | 'groups' | 'problem' | 'failingSinceMs'> & {
    readonly table: Pick<NotifierTable, 'tenant' | 'name' | 'origin'>
  })[]
  readonly log: Pick<NotificationLog, 'of'>
  readonly silences: Pick<Silences, 'of' | 'endedOf'>
  readonly tenants: () => readonly string[]
}

export class NotifierFigures implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #shown: ShownNotifiers
  readonly #clock: Pick<Clock, 'microseconds' | 'wallMs'>

  constructor(shown: ShownNotifiers, clock: Pick<Clock, 'microseconds' | 'wallMs'>) {
    this.#shown = shown
    this.#clock = clock
  }

  metrics(): Iterable<Metric> {
    return METRICS
  }

  metric(name: string): Metric | undefined {
    return METRICS.find((metric) => metric.name === name)
  }

  labels({ name }: Metric): { readonly name: string } {
    return { name }
  }

  check(): void {}

  *measure({ name }: Metric, args: Arguments, identity: Parameters<PolledSensor['measure']>[2]): Steps<Measurement> {
    const records = new RecordList()
    for (const fields of this.#records(name, args, (tenant) => maySee(identity, { tenant }))) {
      if (fields !== undefined && !records.add(fields)) break
      yield
    }
    return { value: records.value(), time: this.#clock.microseconds() }
  }

  /** Undefined after a step that has given none. */
  *#records(name: string, args: Arguments, isShown: (tenant: string) => boolean): Iterable<Field[] | undefined> {
    const { silences, tenants } = this.#shown
    // They may change between steps.
    const running = [...this.#shown.running]
    if (name === 'producer.notifiers') {
      for (const notifier of running) yield isShown(notifier.table.tenant) ? fieldsOfNotifier(notifier) : undefined
      return
    }
    const notifier = args.get('notifier') as string | undefined
    for (const tenant of tenants()) {
      if (!isShown(tenant)) continue
      if (name === 'producer.silences') {
        const nowMs = this.#clock.wallMs()
        const found = args.get('ended') === true ? silences.endedOf(tenant, nowMs) : silences.of(tenant, nowMs)
        for (const silence of found) yield fieldsOfSilence(silence)
      } else {
        const ofTenant = running.filter(({ table }) => table.tenant === tenant)
        yield* this.#notifications(ofTenant, tenant, notifier, args.get('alert') as string | undefined)
      }
    }
  }

  *#notifications(
    running: ShownNotifiers['running'],
    tenant: string,
    notifier: string | undefined,
    alert: string | undefined,
  ): Iterable<Field[] | undefined> {
    const groups = new Map<string, string | undefined>()
    if (alert !== undefined)
      for (const { table, groups: known } of running) {
        groups.set(notifierPlace(table), known?.groupWith(alert))
        yield undefined
      }
    for (const row of this.#shown.log.of(tenant, notifier)) {
      // Where nobody knows what it had, its group may know the alert.
      const isIn = alert === undefined || (hadAlert(row, alert) ?? groups.get(row.notifier) === row.labels)
      yield isIn ? fieldsOfNotification(row) : undefined
    }
  }
}

const text = (name: string, value: string): Field => ({ name, type: STRING, value })
const count = (name: string, value: number): Field => ({ name, type: UINT64, value: BigInt(value) })

function fieldsOfNotifier({
  table,
  counts,
  groups,
  problem,
  failingSinceMs = 0,
}: ShownNotifiers['running'][number]): Field[] {
  return [
    text('tenant', table.tenant),
    text('name', table.name),
    text('author', table.origin?.author ?? ''),
    text('problem', problem),
    count('failing_since', Math.round(failingSinceMs * MICROSECONDS)),
    count('groups', groups?.groupCount ?? 0),
    count('alerts', groups?.alertCount ?? 0),
    ...Object.entries(counts).map(([name, value]) => count(name, value)),
  ]
}

function fieldsOfSilence({ row }: Silence): Field[] {
  return [
    text('tenant', row.tenant),
    text('id', row.id),
    text('kind', row.kind),
    text('matchers', (JSON.parse(row.matchers) as string[]).join(', ')),
    count('begins', Math.round(row.begins * MICROSECONDS)),
    count('ends', Math.round(row.ends * MICROSECONDS)),
    text('author', row.author),
    text('comment', row.comment),
  ]
}
