/** What takes the place of rules that may not be evaluated any more: an alert, which tells people that they are not. */
import { PreparedQuery } from '../../../../promql/query.ts'
import { TextTemplate } from '../../../../promql/template/template.ts'
import type { RuleGroupDefinition } from '../rules/rule-file.ts'

/** `file`: its name, which has no braces. */
export function stoppedGroup(file: string, problem: string): RuleGroupDefinition {
  const summary = `The rules of {{ $labels.file }} are not evaluated: ${problem.replaceAll('{', '(').replaceAll('}', ')')}`
  return {
    name: 'stopped',
    ...{ intervalMs: undefined, offsetMs: 0, limit: 0 },
    rules: [
      {
        ...{ kind: 'alert', name: 'CinnabarRulesStopped', query: new PreparedQuery('vector(1)'), line: undefined },
        labels: new Map([
          ['file', new TextTemplate(file)],
          ['severity', new TextTemplate('warning')],
        ]),
        annotations: new Map([['summary', new TextTemplate(summary)]]),
        ...{ forMs: 0, keepFiringForMs: 0 },
        ...{ recover: undefined, noData: 'resolve', noDataForMs: 0, unfiltered: undefined, hasOwnKeys: false },
      },
    ],
  }
}
