/** A group of rules: they are evaluated one after the other at the same time, and each sees what those before it have recorded. */
import { type LabelSet, METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import type { MemoryValue } from '../../../../promql/memory-source.ts'
import { AlertingRule } from './alerting-rule.ts'
import { type EvaluatedSample, RuleError, type RuleEvaluation } from './evaluation.ts'
import type { RecordingDefinition, RuleGroupDefinition } from './rule-file.ts'

/** Takes the samples of rules. A series that a rule has no longer gets a stale marker. */
export type Record = (labels: LabelSet, timeMs: number, value: MemoryValue) => void

export interface RuleFailure {
  readonly rule: string
  readonly message: string
}

interface RuleState {
  readonly definition: RecordingDefinition | undefined
  readonly alerting: AlertingRule | undefined
  readonly name: string
  /** The series of its last evaluation. */
  series: Map<string, LabelSet>
}

export class RuleGroup {
  readonly definition: RuleGroupDefinition
  readonly #rules: readonly RuleState[]

  constructor(definition: RuleGroupDefinition) {
    this.definition = definition
    this.#rules = definition.rules.map((rule) => ({
      definition: rule.kind === 'record' ? rule : undefined,
      alerting: rule.kind === 'alert' ? new AlertingRule(rule) : undefined,
      name: rule.name,
      series: new Map(),
    }))
  }

  get alertingRules(): readonly AlertingRule[] {
    return this.#rules.flatMap(({ alerting }) => alerting ?? [])
  }

  /** A rule that fails changes nothing, and the others go on. Returns the rules that failed. */
  evaluate(evaluation: RuleEvaluation, record: Record): readonly RuleFailure[] {
    const failures: RuleFailure[] = []
    for (const rule of this.#rules) {
      try {
        this.#store(rule, this.#samplesOf(rule, evaluation), evaluation.timeMs, record)
      } catch (error) {
        if (!(error instanceof RuleError)) throw error
        failures.push({ rule: rule.name, message: error.message })
      }
    }
    return failures
  }

  #samplesOf({ definition, alerting }: RuleState, evaluation: RuleEvaluation): readonly EvaluatedSample[] {
    const { limit } = this.definition
    if (definition === undefined) return alerting?.evaluate(evaluation, limit) ?? []
    const samples = evaluation.vector(definition.query).map(({ labels, value }) => ({
      labels: labels.with([...definition.labels, [METRIC_NAME_LABEL, definition.name]]),
      value,
    }))
    if (new Set(samples.map(({ labels }) => labels.key)).size < samples.length)
      throw new RuleError('vector contains metrics with the same labelset after applying rule labels')
    if (limit > 0 && samples.length > limit)
      throw new RuleError(`exceeded limit of ${limit} with ${samples.length} series`)
    return samples
  }

  #store(rule: RuleState, samples: readonly EvaluatedSample[], timeMs: number, record: Record): void {
    const before = rule.series
    rule.series = new Map(samples.map(({ labels }) => [labels.key, labels]))
    for (const { labels, value } of samples) record(labels, timeMs, value)
    for (const [key, labels] of before) if (!rule.series.has(key)) record(labels, timeMs, 'stale')
  }
}
