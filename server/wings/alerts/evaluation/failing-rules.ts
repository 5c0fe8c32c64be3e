/**
 * A rule that cannot be evaluated, because it has a mistake or takes more than it may, is an alert of its group: whoever relies on the
 * rule is told that it says nothing.
 */
import { LabelSet } from '../../../../promql/label-set.ts'
import { type Alert, newAlert, transitioned } from '../rules/alerting-rule.ts'
import type { RuleSteps } from '../rules/evaluation.ts'
import { GroupRule, type RuleOutcome } from '../rules/group.ts'
import { ownAlert } from '../rules/own-alert.ts'
import { ALERT_NAME } from '../rules/rule-file.ts'

const NAME = 'CinnabarRuleFails'
/** What passes by itself is not told. */
const FOR_MS = 300_000
/** Alerts of a group: where more rules fail, the first ones say enough. */
const MOST = 20
const MAX_TEXT = 1_000
const definition = ownAlert(NAME, FOR_MS)

export class FailingRules {
  readonly rule = new GroupRule(definition, 0)
  readonly #file: string
  readonly #group: string

  constructor(file: string, group: string) {
    this.#file = file
    this.#group = group
  }

  /** `problems`: by the names of the rules that have failed at a time. Undefined if nothing follows from them. */
  *outcome(problems: ReadonlyMap<string, string>, timeMs: number): RuleSteps<RuleOutcome | undefined> {
    if (problems.size === 0 && this.rule.alerts.size === 0) return undefined
    const holding = new Map<string, Alert>()
    for (const [rule, problem] of [...problems].slice(0, MOST)) {
      const labels = LabelSet.of([
        [ALERT_NAME, NAME],
        ['file', this.#file],
        ['group', this.#group],
        ['rule', rule],
        ['severity', 'warning'],
      ])
      const summary = `The rule ${rule} of the group ${this.#group} cannot be evaluated: ${problem.slice(0, MAX_TEXT)}`
      holding.set(labels.key, newAlert(labels, LabelSet.of([['summary', summary]]), 1, timeMs))
    }
    return yield* this.rule.alerting(yield* transitioned(definition, this.rule.alerts, holding, timeMs))
  }
}
