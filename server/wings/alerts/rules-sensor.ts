/** `producer.rules`: the rules of a tenant, what they ask, and how their last evaluation went. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import {
  type Arguments,
  type Measurement,
  type Metric,
  type Owner,
  type PolledSensor,
  RecordList,
} from '../../kit/metrics.ts'
import type { ShownGroup, ShownRule, ShownRules, ShownTexts } from '../../kit/rules.ts'
import type { Clock, Steps } from '../../kit/running.ts'

const { ARRAY, DOUBLE, REC, STRING, UINT32, UINT64 } = BasicType
const MICROSECONDS = 1_000
/** Characters that are shown of an expression and of a text, and texts of a rule: a record has to fit into a frame. */
const MAX_EXPRESSION = 10_000
const MAX_TEXT = 2_000
const MOST_TEXTS = 64
/** Rules of one answer: they are written in about two milliseconds. */
const MOST_RULES = 200

const metric: Metric = {
  name: 'producer.rules',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description:
    'The rules of your tenant in the order of their files, what they ask, and how their last evaluation went.',
  parameters: [
    { name: 'after', type: UINT32, description: 'Only rules with a higher number.' },
    { name: 'group', type: STRING, description: 'Only rules of groups with this name.' },
  ],
  exposition: 'none',
}

export class RulesSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #rules: ShownRules
  readonly #clock: Pick<Clock, 'microseconds'>

  constructor(rules: ShownRules, clock: Pick<Clock, 'microseconds'>) {
    this.#rules = rules
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

  *measure(_metric: unknown, args: Arguments, reader: Parameters<PolledSensor['measure']>[2]): Steps<Measurement> {
    const after = (args.get('after') as number | undefined) ?? 0
    const group = args.get('group') as string | undefined
    const list = new RecordList()
    let count = 0
    yield* this.#rules.rulesFor(reader, { after, group }, (rule, of, number) => {
      if (count++ < MOST_RULES) return list.add(fieldsOf(number, reader.tenant, of, rule))
      list.more()
      return false
    })
    return { value: list.value(), time: this.#clock.microseconds() }
  }
}

function fieldsOf(number: number, tenant: string, group: ShownGroup, rule: ShownRule): Field[] {
  const text = (name: string, value: string): Field => ({ name, type: STRING, value })
  const count = (name: string, value: number): Field => ({ name, type: UINT64, value: BigInt(Math.round(value)) })
  const time = (name: string, ms: number | undefined): Field => count(name, (ms ?? 0) * MICROSECONDS)
  const texts = (name: string, all: ShownTexts): Field => ({
    name,
    type: REC,
    value: Object.entries(all)
      .slice(0, MOST_TEXTS)
      .map(([of, value]) => text(of, value.slice(0, MAX_TEXT))),
  })
  const firing = rule.alerts.filter(({ state }) => state === 'firing').length
  return [
    { name: 'rule', type: UINT32, value: number },
    text('tenant', tenant),
    text('file', group.file),
    text('group', group.name),
    text('name', rule.name),
    text('kind', rule.kind),
    text('expr', rule.query.slice(0, MAX_EXPRESSION)),
    ...(rule.threshold === undefined
      ? []
      : ([
          text('drawn', rule.threshold.expr.slice(0, MAX_EXPRESSION)),
          { name: 'threshold', type: DOUBLE, value: rule.threshold.value },
        ] as const)),
    time('for', rule.forMs),
    time('keep_firing_for', rule.keepFiringForMs),
    texts('labels', rule.labels),
    texts('annotations', rule.annotations),
    text('health', rule.health),
    text('problem', rule.problem.slice(0, MAX_TEXT)),
    time('evaluated', rule.evaluatedMs),
    time('took', rule.tookMs),
    time('interval', group.intervalMs),
    time('group_took', group.tookMs),
    count('pending', rule.alerts.length - firing),
    count('firing', firing),
  ]
}
