/** Matchers of alerts, as Alertmanager has them: `severity="page"`, `team=~"a|b"`, `host!=web1`. */
import { LabelMatcher, MATCH_OPERATORS, type MatchOperator } from '../../../promql/label-matcher.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'

const SHAPE = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"{},]*?))\s*$/s

/** Undefined for a text that is no matcher, or whose regular expression is none. */
export function alertMatcher(text: string): LabelMatcher | undefined {
  const [, name = '', operator = '', inQuotes, plain = ''] = SHAPE.exec(text) ?? []
  if (name === '' || !isOperator(operator)) return undefined
  try {
    return new LabelMatcher(name, operator, inQuotes === undefined ? plain : unescaped(inQuotes))
  } catch {
    return undefined
  }
}

export function matchesAll(alert: NotifiedAlert, matchers: readonly LabelMatcher[]): boolean {
  return matchers.every((matcher) => matcher.matches(textOfLabel(alert, matcher.label)))
}

function isOperator(text: string): text is MatchOperator {
  return MATCH_OPERATORS.some((operator) => operator === text)
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, character: string) => (character === 'n' ? '\n' : character))
}
