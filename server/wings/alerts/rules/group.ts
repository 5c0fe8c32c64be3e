/** A group of rules: they are evaluated one after the other at the same time, and each sees what those before it have recorded. */
import { type LabelSet, METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import type { MemoryValue } from '../../../../promql/memory-source.ts'
import { type Alerts, alertsAfter, isActive, samplesOfAlerts } from './alerting-rule.ts'
import { type EvaluatedSample, RuleError, type RuleEvaluation, type RuleSteps } from './evaluation.ts'
import type { RecordingDefinition, RuleDefinition, RuleGroupDefinition } from './rule-file.ts'

/** Series that one rule may record. */
const MOST_RECORDED = 50_000
const NO_SAMPLES: readonly RuleSample[] = []

/** A sample of a rule. A series that the rule has no longer gets a stale marker. */
export interface RuleSample {
  readonly labels: LabelSet
  readonly value: MemoryValue
}

/** What a rule comes to at one time. Nothing of it counts before the rule adopts it. */
export interface RuleOutcome {
  readonly samples: readonly RuleSample[]
  readonly series: ReadonlyMap<string, LabelSet>
  readonly alerts: Alerts
  /** Why the rule could not be evaluated. */
  readonly failure: string | undefined
}

export class GroupRule {
  readonly definition: RuleDefinition
  readonly #limit: number
  /** The series of its last evaluation. */
  #series: ReadonlyMap<string, LabelSet> = new Map()
  #alerts: Alerts = new Map()

  constructor(definition: RuleDefinition, limit: number) {
    this.definition = definition
    this.#limit = limit
  }

  get alerts(): Alerts {
    return this.#alerts
  }

  /** The series that it had at its last evaluation. */
  get series(): Iterable<LabelSet> {
    return this.#series.values()
  }

  /** A rule that fails changes nothing, unless it has more alerts than it may have: then it has none. */
  *evaluate(evaluation: RuleEvaluation): RuleSteps<RuleOutcome> {
    const { definition } = this
    try {
      if (definition.kind === 'record')
        return yield* this.#outcome(yield* this.#recorded(definition, evaluation), this.#alerts)
      const alerts = yield* alertsAfter(definition, this.#alerts, evaluation)
      const active = [...alerts.values()].filter(isActive).length
      if (this.#limit > 0 && active > this.#limit)
        return this.failed(`exceeded limit of ${this.#limit} with ${active} alerts`, new Map())
      return yield* this.alerting(alerts)
    } catch (error) {
      if (error instanceof RuleError) return this.failed(error.message)
      throw error
    }
  }

  failed(failure: string, alerts = this.#alerts): RuleOutcome {
    return { samples: [], series: this.#series, alerts, failure }
  }

  adopt({ series, alerts }: Pick<RuleOutcome, 'series' | 'alerts'>): void {
    this.#series = series
    this.#alerts = alerts
  }

  /** Has alerts that were stored, or that another definition of the same rule had. */
  *restore(alerts: Alerts): RuleSteps<void> {
    this.adopt(yield* this.alerting(alerts))
  }

  /** What it comes to with these alerts. */
  *alerting(alerts: Alerts): RuleSteps<RuleOutcome> {
    return yield* this.#outcome(yield* samplesOfAlerts(alerts), alerts)
  }

  *#outcome(found: readonly EvaluatedSample[], alerts: Alerts): RuleSteps<RuleOutcome> {
    // So it is with most rules, most of the time.
    if (found.length === 0 && this.#series.size === 0)
      return { samples: NO_SAMPLES, series: this.#series, alerts, failure: undefined }
    const series = new Map<string, LabelSet>()
    for (const { labels } of found) {
      series.set(labels.key, labels)
      yield undefined
    }
    const samples: RuleSample[] = [...found]
    for (const [key, labels] of this.#series) {
      if (!series.has(key)) samples.push({ labels, value: 'stale' })
      yield undefined
    }
    return { samples, series, alerts, failure: undefined }
  }

  *#recorded(definition: RecordingDefinition, evaluation: RuleEvaluation): RuleSteps<readonly EvaluatedSample[]> {
    const found = yield* evaluation.vector(definition.query)
    if (found.length > MOST_RECORDED)
      throw new RuleError(`it would record ${found.length} series, and a rule may record ${MOST_RECORDED}`)
    const samples: EvaluatedSample[] = []
    const keys = new Set<string>()
    for (const { labels: from, value } of found) {
      const labels = from.with([...definition.labels, [METRIC_NAME_LABEL, definition.name]])
      keys.add(labels.key)
      samples.push({ labels, value })
      yield undefined
    }
    if (keys.size < samples.length)
      throw new RuleError('vector contains metrics with the same labelset after applying rule labels')
    if (this.#limit > 0 && samples.length > this.#limit)
      throw new RuleError(`exceeded limit of ${this.#limit} with ${samples.length} series`)
    return samples
  }
}

export function rulesOf({ rules, limit }: RuleGroupDefinition): readonly GroupRule[] {
  return rules.map((rule) => new GroupRule(rule, limit))
}
