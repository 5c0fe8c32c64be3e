/** `producer.alerts`: the rules of each tenant, how they are evaluated, and how many alerts there are. */
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
import type { RuleGroups } from './evaluation/groups.ts'

const { ARRAY, STRING, UINT64 } = BasicType

const gauge = (name: string, help: string) => ({ name, help, isCounter: false })
const counter = (name: string, help: string) => ({ name, help, isCounter: true })

const exposition: RecordExposition = {
  labels: { tenant: 'tenant' },
  fields: {
    groups: gauge('groups', 'Groups of rules.'),
    rules: gauge('rules', 'Rules.'),
    failing: gauge('failing_rules', 'Rules whose last evaluation has failed.'),
    pending: gauge('pending', 'Alerts that are pending.'),
    firing: gauge('firing', 'Alerts that fire.'),
    lag_ms: {
      ...gauge('lag_seconds', 'How long the group has been due that has waited longest.'),
      convert: 'milliseconds',
    },
    evaluations: counter('evaluations', 'Evaluations of rules.'),
    failures: counter('failures', 'Those that have failed.'),
    missed: counter('missed', 'Evaluations of groups that were left out, because they were due too long ago.'),
    worked_ms: {
      ...counter('worked_seconds', 'How long rules were worked on.'),
      convert: 'milliseconds',
    },
    transitions: counter('transitions', 'Transitions of alerts.'),
    set_back: counter('set_back', 'How often a group found that the clock had been set back.'),
    files: gauge('files', 'Rule files that users have put.'),
    stopped: gauge(
      'stopped_files',
      'Those that are not evaluated, because their author is no user any more or they take too long.',
    ),
    used_up: counter('used_up_files', 'Rule files that were stopped because their tenant had used up its time.'),
    refused: counter('refused_files', 'Rule files that were not taken.'),
  },
}

const metric: Metric = {
  name: 'producer.alerts',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description: 'The rules of each tenant: how they are evaluated, and how many alerts there are.',
  parameters: [],
  exposition,
}

/** What a tenant has of files that users put. */
type FileCounts = (tenant: string) => {
  readonly files: readonly { readonly problem: string | undefined }[]
  readonly refused: number
  readonly usedUp: number
}

/** The rules of a tenant, as far as they are shown. */
type ShownGroups = Pick<RuleGroups, 'tenant' | 'groups' | 'lagMs' | 'counts'>

export class AlertFigures implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #tenants: readonly ShownGroups[]
  readonly #countsOf: FileCounts
  readonly #clock: Pick<Clock, 'microseconds'>

  constructor(tenants: readonly ShownGroups[], countsOf: FileCounts, clock: Pick<Clock, 'microseconds'>) {
    this.#tenants = tenants
    this.#countsOf = countsOf
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

  measure(_metric: unknown, _args: unknown, identity: Parameters<PolledSensor['measure']>[2]): Measurement {
    const list = new RecordList()
    for (const groups of this.#tenants) {
      if (!maySee(identity, { tenant: groups.tenant })) continue
      if (!list.add(describe(groups, this.#countsOf(groups.tenant)))) break
    }
    return { value: list.value(), time: this.#clock.microseconds() }
  }
}

function describe({ tenant, groups, lagMs, counts }: ShownGroups, put: ReturnType<FileCounts>): Field[] {
  const all = [...groups]
  const rules = all.flatMap(({ rules }) => rules)
  const alerts = all.flatMap(({ alerting }) => alerting).flatMap(({ rule }) => [...rule.alerts.values()])
  const numbers = {
    groups: all.length,
    rules: rules.length,
    failing: rules.filter(({ health }) => health?.problem !== undefined).length,
    pending: alerts.filter(({ state }) => state === 'pending').length,
    firing: alerts.filter(({ state }) => state === 'firing').length,
    lag_ms: lagMs,
    evaluations: counts.evaluations,
    failures: counts.failures,
    missed: counts.missed,
    worked_ms: counts.workedMs,
    transitions: counts.transitions,
    set_back: counts.setBack,
    files: put.files.length,
    stopped: put.files.filter(({ problem }) => problem !== undefined).length,
    used_up: put.usedUp,
    refused: put.refused,
  }
  return [
    { name: 'tenant', type: STRING, value: tenant },
    ...Object.entries(numbers).map(
      ([name, value]): Field => ({ name, type: UINT64, value: BigInt(Math.round(value)) }),
    ),
  ]
}
