/** `producer.alerts.active`: the alerts that are pending or fire, notifiers that fail among them, who was told, and of which nobody is told. */
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Label } from '../../kit/delivered-values.ts'
import type { AlertRow, EvaluationWatch } from '../../kit/expressions.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import {
  type Arguments,
  fromForeign,
  type Measurement,
  type Metric,
  type Owner,
  type PolledSensor,
  RecordList,
} from '../../kit/metrics.ts'
import type { OwnView, Reader } from '../../kit/peer.ts'
import { type Clock, finish, type Steps } from '../../kit/running.ts'
import type { NotifiedAlert } from './alert.ts'
import { failureOf } from './failures.ts'
import type { InForce } from './in-force.ts'
import { alertMatchers, matcherTexts, matchesAll } from './matchers.ts'
import type { SilencedAlert, Silences } from './silences.ts'

const { ARRAY, DOUBLE, REC, STRING, UINT32, UINT64 } = BasicType
const MICROSECONDS = 1_000
/** Characters that are shown of a text, and texts of an alert: a record has to fit into a frame. */
const MAX_TEXT = 2_000
const MOST_TEXTS = 64
/** In place of the file of a rule. */
const FAILURES_FILE = 'notify'

const metric: Metric = {
  name: 'producer.alerts.active',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description:
    'The alerts of your tenant that are pending or fire: since when, who was told, and whether they are silenced.',
  parameters: [
    { name: 'after', type: UINT32, description: 'Only alerts with a higher number.' },
    { name: 'matchers', type: STRING, description: 'Only alerts that match all of these, each on a line of its own.' },
  ],
  exposition: 'none',
}

interface ActiveAlert {
  readonly row: AlertRow
  /** Tenant, file, group and name of its rule. */
  readonly rule: readonly string[]
  readonly labels: readonly Label[]
}

export interface ActiveAlertsOptions {
  readonly running: readonly (Pick<InForce, 'groups'> & Parameters<typeof failureOf>[0])[]
  readonly silences: Pick<Silences, 'mutingOf'>
  readonly watch: Pick<EvaluationWatch, 'saidOf'>
  /** Those that there are now. */
  readonly alerts: () => Iterable<AlertRow>
  readonly view: Pick<OwnView, 'readRights'>
}

export class ActiveAlerts implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #options: ActiveAlertsOptions
  readonly #clock: Pick<Clock, 'microseconds' | 'wallMs'>

  constructor(options: ActiveAlertsOptions, clock: Pick<Clock, 'microseconds' | 'wallMs'>) {
    this.#options = options
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

  check(_metric: unknown, args: Arguments): void {
    matchersIn(args)
  }

  *measure(_metric: unknown, args: Arguments, reader: Parameters<PolledSensor['measure']>[2]): Steps<Measurement> {
    const after = (args.get('after') as number | undefined) ?? 0
    const list = new RecordList()
    let number = 0
    for (const one of this.#matching(reader, matchersIn(args))) {
      yield
      if (one !== undefined && ++number > after && !list.add(yield* this.#fieldsOf(number, one))) break
    }
    return { value: list.value(), time: this.#clock.microseconds() }
  }

  /** How many alerts fire that somebody may read and that match. */
  *firingCount(reader: Reader, matchers: readonly LabelMatcher[]): Steps<number> {
    let count = 0
    for (const one of this.#matching(reader, matchers)) {
      if (one?.row.state === 'firing') count++
      yield
    }
    return count
  }

  /** Those that somebody may read and that match; undefined for each other one. An alert is judged like a value of the metric `alert` with its labels. */
  *#matching(reader: Reader, matchers: readonly LabelMatcher[]): Generator<ActiveAlert | undefined> {
    const { tenant } = reader
    const rights = this.#options.view.readRights(reader)
    const isShown = (labels: readonly Label[]): boolean => {
      const texts = new Map(labels.map(([name, text]) => [fromForeign(name), text]))
      if (!rights.mayReadRemembered({ tenant }, 'alert', (name) => texts.get(name))) return false
      return matchers.length === 0 || matchesAll({ labels, fingerprint: fingerprintOf(labels) }, matchers)
    }
    for (const row of this.#rows(tenant)) {
      const rule = JSON.parse(row.rule) as string[]
      const isActive = row.state !== 'inactive' && rule[0] === tenant
      const labels = isActive ? (JSON.parse(row.labels) as Label[]) : []
      yield isActive && isShown(labels) ? { row, rule, labels } : undefined
    }
  }

  /** Alerts of rules, and of the notifiers of a tenant that fail. */
  *#rows(tenant: string): Iterable<AlertRow> {
    const { running, alerts } = this.#options
    yield* alerts()
    const nowMs = this.#clock.wallMs()
    for (const one of running) {
      const failure = one.table.tenant === tenant ? failureOf(one, nowMs) : undefined
      if (failure !== undefined) yield rowOf(failure, tenant)
    }
  }

  *#fieldsOf(number: number, { row, rule, labels }: ActiveAlert): Steps<Field[]> {
    const [tenant = '', file = '', group = '', name = ''] = rule
    const { state, value, annotations, active, fired, kept, missing } = row
    const alert: SilencedAlert = { labels, fingerprint: fingerprintOf(labels), firedMs: fired ?? 0 }
    const nowMs = this.#clock.wallMs()
    const said = this.#options.watch.saidOf(tenant, group, name, labels)
    const silence = state === 'firing' ? yield* this.#options.silences.mutingOf(tenant, alert, nowMs) : undefined
    return [
      { name: 'alert', type: UINT32, value: number },
      text('tenant', tenant),
      text('fingerprint', alert.fingerprint),
      text('state', state),
      texts('labels', labels),
      texts('annotations', said?.annotations ?? (JSON.parse(annotations) as Label[])),
      { name: 'value', type: DOUBLE, value: Number(said?.value ?? value) },
      time('since', active),
      time('fired', fired),
      time('kept_since', kept),
      time('missing_since', missing),
      text('file', file),
      text('group', group),
      text('rule', name),
      text('silence', silence?.id ?? ''),
      text('told', this.#toldOf(tenant, alert.fingerprint, labels).join(', ')),
    ]
  }

  #toldOf(tenant: string, fingerprint: string, labels: readonly Label[]): readonly string[] {
    return this.#options.running
      .filter(({ table, groups }) => table.tenant === tenant && groups?.isTold({ fingerprint, labels }) === true)
      .map(({ table }) => table.name)
  }
}

/** As if it were of a rule. */
function rowOf({ labels, annotations, value, sinceMs, firedMs, group, rule }: NotifiedAlert, tenant: string): AlertRow {
  return {
    rule: JSON.stringify([tenant, FAILURES_FILE, group, rule, 0]),
    labels: JSON.stringify(labels),
    annotations: JSON.stringify(annotations),
    state: 'firing',
    value,
    active: sinceMs,
    fired: firedMs,
    kept: undefined,
    resolved: undefined,
    missing: undefined,
  }
}

/** Throws StatusError INVALID_ARGUMENT. */
function matchersIn(args: Arguments): readonly LabelMatcher[] {
  const texts = args.get('matchers')
  return texts === undefined ? [] : finish(alertMatchers(matcherTexts(String(texts))))
}

const text = (name: string, value: string): Field => ({ name, type: STRING, value })

/** 0: not. */
function time(name: string, ms: number | undefined): Field {
  return { name, type: UINT64, value: BigInt(Math.round((ms ?? 0) * MICROSECONDS)) }
}

function texts(name: string, all: readonly Label[]): Field {
  const value = all.slice(0, MOST_TEXTS).map(([of, said]) => text(of, said.slice(0, MAX_TEXT)))
  return { name, type: REC, value }
}
