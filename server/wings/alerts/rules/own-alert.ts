/** Alerting rules of the server's own, which stand in no file. */
import { PreparedQuery } from '../../../../promql/query.ts'
import { TextTemplate } from '../../../../promql/template/template.ts'
import type { AlertingDefinition } from './rule-file.ts'

/** One that holds all the time. Labels and annotations are templates. */
export function ownAlert(
  name: string,
  forMs: number,
  labels: Readonly<Record<string, string>> = {},
  annotations: Readonly<Record<string, string>> = {},
): AlertingDefinition {
  return {
    ...{ kind: 'alert', name, query: new PreparedQuery('vector(1)'), line: undefined },
    labels: templates(labels),
    annotations: templates(annotations),
    ...{ forMs, keepFiringForMs: 0 },
    ...{ recover: undefined, noData: 'resolve', noDataForMs: 0, unfiltered: undefined, hasOwnKeys: false },
  }
}

function templates(texts: Readonly<Record<string, string>>): ReadonlyMap<string, TextTemplate> {
  return new Map(Object.entries(texts).map(([name, text]) => [name, new TextTemplate(text)]))
}
