/** Matchers of alerts, as Alertmanager has them: `severity="page"`, `team=~"a|b"`, `host!=web1`. */
import { LabelMatcher, MATCH_OPERATORS, type MatchOperator } from '../../../promql/label-matcher.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import { commonOf } from './notification.ts'

const FINGERPRINT = '__fingerprint__'
/** Characters of a matcher that is there for people, and how many of them. */
const MAX_SHOWN = 256
const MOST_SHOWN = 16

/** Of a text without spaces around it. Nothing of it can match in two ways, so it takes time in proportion to the text. */
const SHAPE = /^([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"{},][^"{},]*)?)$/s

/** Undefined for a text that is no matcher, or whose regular expression is none. */
export function alertMatcher(text: string): LabelMatcher | undefined {
  const [, name = '', operator = '', inQuotes, plain = ''] = SHAPE.exec(text.trim()) ?? []
  if (name === '' || !isOperator(operator)) return undefined
  try {
    return new LabelMatcher(name, operator, inQuotes === undefined ? plain : unescaped(inQuotes))
  } catch {
    return undefined
  }
}

/** What matchers ask of an alert: its labels, and its fingerprint as if that were one, since other labels may come in addition. */
export type MatchedAlert = Pick<NotifiedAlert, 'labels' | 'fingerprint'>

export function matchesAll(alert: MatchedAlert, matchers: readonly LabelMatcher[]): boolean {
  return matchers.every((matcher) => {
    const { label } = matcher
    return matcher.matches(label === FINGERPRINT ? alert.fingerprint : textOfLabel(alert, label))
  })
}

/** Matchers of these alerts and no others: what their labels have in common, for people, and their fingerprints. */
export function exactMatchers(alerts: readonly MatchedAlert[]): readonly string[] {
  const common = commonOf(alerts.map(({ labels }) => labels))
    .map(([name, text]) => `${name}="${escaped(text)}"`)
    .filter((text) => text.length <= MAX_SHOWN && alertMatcher(text) !== undefined)
    .slice(0, MOST_SHOWN)
  const fingerprints = alerts.map(({ fingerprint }) => fingerprint)
  return [...common, `${FINGERPRINT}${fingerprints.length === 1 ? '=' : '=~'}"${fingerprints.join('|')}"`]
}

function isOperator(text: string): text is MatchOperator {
  return MATCH_OPERATORS.some((operator) => operator === text)
}

function escaped(text: string): string {
  return text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')
}

/** Any other backslash is one of the regular expression, as in `"web\\d"`. */
function unescaped(text: string): string {
  return text.replace(/\\([n"\\])/g, (_, character: string) => (character === 'n' ? '\n' : character))
}
