/** What takes the place of rules that may not be evaluated any more: an alert, which tells people that they are not. */
import { ownAlert } from '../rules/own-alert.ts'
import type { RuleGroupDefinition } from '../rules/rule-file.ts'

/** `file`: its name, which has no braces. */
export function stoppedGroup(file: string, problem: string): RuleGroupDefinition {
  const summary = `The rules of {{ $labels.file }} are not evaluated: ${problem.replaceAll('{', '(').replaceAll('}', ')')}`
  const rule = ownAlert('CinnabarRulesStopped', 0, { file, severity: 'warning' }, { summary })
  return { name: 'stopped', ...{ intervalMs: undefined, offsetMs: 0, limit: 0 }, rules: [rule] }
}
