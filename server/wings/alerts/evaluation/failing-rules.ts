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
/** Bytes of a label that names something: the names of a file, a group and a rule have room in one alert then. */
const MAX_NAME_BYTES = 1_000
const definition = ownAlert(NAME, FOR_MS)
const encoder = new TextEncoder()

export class FailingRules {
  readonly rule = new GroupRule(definition, 0)
  readonly #file: string
  readonly #group: string

  constructor(file: string, group: string) {
    this.#file = nameFrom(file)
    this.#group = nameFrom(group)
  }

  /** Whether something follows from rules that have failed, or that have not any more. */
  isConcernedBy(problems: ReadonlyMap<string, string>): boolean {
    return problems.size > 0 || this.rule.alerts.size > 0
  }

  /** `problems`: by the names of the rules that have failed at a time. Undefined if nothing follows from them. */
  *outcome(problems: ReadonlyMap<string, string>, timeMs: number): RuleSteps<RuleOutcome | undefined> {
    if (!this.isConcernedBy(problems)) return undefined
    const holding = new Map<string, Alert>()
    for (const [name, problem] of [...problems].slice(0, MOST)) {
      const rule = nameFrom(name)
      const labels = LabelSet.of([
        [ALERT_NAME, NAME],
        ['file', this.#file],
        ['group', this.#group],
        ['rule', rule],
        ['severity', 'warning'],
      ])
      const detail = problem.slice(0, MAX_TEXT).toWellFormed()
      const summary = `The rule ${rule} of the group ${this.#group} cannot be evaluated: ${detail}`
      holding.set(labels.key, newAlert(labels, LabelSet.of([['summary', summary]]), 1, timeMs))
    }
    return yield* this.rule.alerting(yield* transitioned(definition, this.rule.alerts, holding, timeMs))
  }
}

/** A name as the text of a label: names in files may be longer, and any text. */
function nameFrom(text: string): string {
  const wellFormed = text.toWellFormed()
  const { read } = encoder.encodeInto(wellFormed, new Uint8Array(MAX_NAME_BYTES))
  return wellFormed.slice(0, read)
}
