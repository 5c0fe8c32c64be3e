/** Runs unit tests of rules as `promtool test rules` does: series from 1970 on, and the rules evaluated over them at each interval. */
import { compareLabelSets, type LabelSet } from '../../../../promql/label-set.ts'
import { finished, MemorySource, type MemoryValue } from '../../../../promql/memory-source.ts'
import { PreparedQuery } from '../../../../promql/query.ts'
import { type External, RuleEvaluation } from '../rules/evaluation.ts'
import { type GroupRule, rulesOf } from '../rules/group.ts'
import type { RuleGroupDefinition } from '../rules/rule-file.ts'
import type { AlertCase, ExpectedAlert, ExpressionCase, RuleTest, RuleTestFile } from './test-file.ts'

/** More evaluations than these are refused. */
const MAX_EVALUATIONS = 1_000_000

/** Gives what is wrong, each in one text; nothing if the test passes. */
export function runRuleTest(
  test: RuleTest,
  { evaluationMs, order }: Pick<RuleTestFile, 'evaluationMs' | 'order'>,
  definitions: readonly RuleGroupDefinition[],
): readonly string[] {
  const rank = ({ name }: RuleGroupDefinition): number => (order.includes(name) ? order.indexOf(name) : order.length)
  const groups = definitions
    .toSorted((left, right) => rank(left) - rank(right))
    .map((definition) => ({ definition, rules: rulesOf(definition) }))
  return new TestRun(test, evaluationMs, groups).problems()
}

interface TestedGroup {
  readonly definition: RuleGroupDefinition
  readonly rules: readonly GroupRule[]
}

class TestRun {
  readonly #test: RuleTest
  readonly #evaluationMs: number
  readonly #groups: readonly TestedGroup[]
  readonly #source = new MemorySource()
  readonly #external: External
  readonly #problems: string[] = []

  constructor(test: RuleTest, evaluationMs: number, groups: readonly TestedGroup[]) {
    this.#test = test
    this.#evaluationMs = evaluationMs
    this.#groups = groups
    this.#external = { externalLabels: test.externalLabels, externalUrl: test.externalUrl }
  }

  problems(): readonly string[] {
    const { series, alerts, expressions, intervalMs } = this.#test
    for (const { labels, values } of series) {
      const samples = values.map((value, index) => [index * intervalMs, value] as const)
      this.#source.add(labels, samples.filter(isSample))
    }
    const endMs = Math.max(0, ...[...alerts, ...expressions].map(({ atMs }) => atMs))
    if (endMs / this.#evaluationMs > MAX_EVALUATIONS)
      return [`it takes more than ${MAX_EVALUATIONS} evaluations until ${endMs / 1_000} s`]
    for (let timeMs = 0; timeMs <= endMs; timeMs += this.#evaluationMs) this.#tick(timeMs)
    for (const expected of expressions) this.#expression(expected)
    return this.#problems
  }

  /** An alert that is expected between this time and the next one is the one of now. */
  #tick(timeMs: number): void {
    for (const group of this.#groups) {
      const { offsetMs } = group.definition
      const evaluation = new RuleEvaluation(this.#source, timeMs, this.#external, offsetMs)
      for (const rule of group.rules) {
        const outcome = finished(rule.evaluate(evaluation))
        rule.adopt(outcome)
        const { samples, failure } = outcome
        for (const { labels, value } of samples) this.#source.add(labels, [[timeMs - offsetMs, value]])
        if (failure !== undefined)
          this.#problems.push(`rule ${rule.definition.name}, at ${secondsOf(timeMs)}: ${failure}`)
      }
    }
    for (const expected of this.#test.alerts)
      if (timeMs <= expected.atMs && expected.atMs < timeMs + this.#evaluationMs) this.#alerts(expected)
  }

  #alerts({ atMs, alertName, alerts }: AlertCase): void {
    const rules = this.#groups.flatMap(({ rules }) => rules)
    const found = rules.filter(({ definition }) => definition.name === alertName).flatMap(firingOf)
    const [wanted, got] = [alerts.map(alertText).sort(), found.map(alertText).sort()]
    if (wanted.join('\n') === got.join('\n')) return
    this.#problems.push(`alert ${alertName}, at ${secondsOf(atMs)}: ${differing(wanted, got)}`)
  }

  #expression({ text, atMs, samples }: ExpressionCase): void {
    const where = `expression ${JSON.stringify(text)}, at ${secondsOf(atMs)}`
    try {
      const evaluation = new RuleEvaluation(this.#source, atMs, this.#external)
      const found = finished(evaluation.vector(new PreparedQuery(text)))
      const [wanted, got] = [samples, found].map((all) => all.toSorted(byLabels).map(sampleText))
      if (wanted?.join('\n') !== got?.join('\n')) this.#problems.push(`${where}: ${differing(wanted ?? [], got ?? [])}`)
    } catch (error) {
      this.#problems.push(`${where}: ${(error as Error).message}`)
    }
  }
}

function isSample(sample: readonly [number, unknown]): sample is readonly [number, MemoryValue] {
  const [, value] = sample
  return typeof value === 'number' || value === 'stale'
}

function firingOf(rule: GroupRule): ExpectedAlert[] {
  return [...rule.alerts.values()].filter(({ state }) => state === 'firing')
}

function alertText({ labels, annotations }: ExpectedAlert): string {
  return annotations.size === 0 ? String(labels) : `${labels} with ${annotations}`
}

interface LabelledValue {
  readonly labels: LabelSet
  readonly value: number
}

function sampleText({ labels, value }: LabelledValue): string {
  return `${labels} ${Object.is(value, -0) ? 0 : value}`
}

function byLabels(left: LabelledValue, right: LabelledValue): number {
  return compareLabelSets(left.labels, right.labels)
}

function differing(wanted: readonly string[], got: readonly string[]): string {
  const list = (texts: readonly string[]): string =>
    texts.length === 0 ? ' nothing' : texts.map((text) => `\n    ${text}`).join('')
  return `expected${list(wanted)}\n  got${list(got)}`
}

function secondsOf(ms: number): string {
  return `${ms / 1_000} s`
}
