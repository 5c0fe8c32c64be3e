/** Matchers of alerts, as Alertmanager has them: `severity="page"`, `team=~"a|b"`, `host!=web1`. */
import {
  LabelMatcher,
  MATCH_OPERATORS,
  type MatchOperator,
  RegexMemory,
  RegexSizeError,
} from '../../../promql/label-matcher.ts'
import { StatusError, type Steps } from '../../kit/running.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import { commonOf } from './notification.ts'

const FINGERPRINT = '__fingerprint__'
/** Characters of a matcher that is there for people, and how many of them. */
const MAX_SHOWN = 256
const MOST_SHOWN = 16
const MAX_MATCHERS = 32
/** As in the configuration. */
const MAX_MATCHER = 1_024
/** Of all regular expressions together that a user gives: they are looked at in one step, which takes a few milliseconds. */
export const MAX_PARTS = 500
export const MAX_MATCHERS_TEXT = 2 * MAX_MATCHERS * MAX_MATCHER

/** Of a text without spaces around it. Nothing of it can match in two ways, so it takes time in proportion to the text. */
const SHAPE = /^([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"{},][^"{},]*)?)$/s

/** Undefined for a text that is no matcher, or whose regular expression is none. */
export function alertMatcher(text: string): LabelMatcher | undefined {
  try {
    return matcherOf(text, new RegexMemory())
  } catch {
    return undefined
  }
}

/** The matchers of texts, compiled in a step for each; what is none is left out. */
export function* alertMatchers(texts: readonly string[]): Steps<readonly LabelMatcher[]> {
  const found: LabelMatcher[] = []
  for (const text of texts) {
    const matcher = alertMatcher(text)
    if (matcher !== undefined) found.push(matcher)
    yield
  }
  return found
}

export function explainNoMatcher(text: string): string {
  return `${JSON.stringify(text)} is no matcher; write one like severity="page" or team=~"a|b"`
}

/** The matcher of a text whose regular expression may have `mostParts`. One that is written with more is not even compiled. Undefined for what is none. */
export function boundedMatcher(text: string, mostParts: number): LabelMatcher | 'too large' | undefined {
  try {
    const matcher = matcherOf(text, new RegexMemory(mostParts))
    return matcher !== undefined && matcher.size > mostParts ? 'too large' : matcher
  } catch (error) {
    return error instanceof RegexSizeError ? 'too large' : undefined
  }
}

/** Throws RegexError. */
function matcherOf(text: string, regexes: RegexMemory): LabelMatcher | undefined {
  const [, name = '', operator = '', inQuotes, plain = ''] = SHAPE.exec(text.trim()) ?? []
  if (name === '' || !isOperator(operator)) return undefined
  return new LabelMatcher(name, operator, inQuotes === undefined ? plain : unescaped(inQuotes), regexes)
}

/** The matchers of an argument `matchers`, which has each on a line of its own. Throws StatusError INVALID_ARGUMENT. */
export function matcherTexts(argument: string): readonly string[] {
  const texts = argument.split('\n').filter((text) => text.trim() !== '')
  if (texts.length === 0 || texts.length > MAX_MATCHERS)
    throw new StatusError('INVALID_ARGUMENT', `\`matchers\` has to have from 1 to ${MAX_MATCHERS} of them`)
  let left = MAX_PARTS
  for (const text of texts) {
    const matcher = text.length > MAX_MATCHER ? undefined : boundedMatcher(text, left)
    if (matcher === undefined)
      throw new StatusError(
        'INVALID_ARGUMENT',
        `\`matchers\`: ${JSON.stringify(text.slice(0, MAX_MATCHER))} is none; write one like severity="page"`,
      )
    if (matcher === 'too large')
      throw new StatusError(
        'INVALID_ARGUMENT',
        `\`matchers\`: the regular expressions have more than ${MAX_PARTS} parts together: ask several times with fewer`,
      )
    left -= matcher.size
  }
  return texts
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
