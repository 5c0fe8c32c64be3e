/** What is wrong with a text that the grammar does not accept, in the words of Prometheus. */
import { parser } from '@prometheus-io/lezer-promql'
import { type PromqlError, parseError, type TextRange } from '../errors.ts'
import { SIGNATURES } from '../signatures.ts'
import { quoted } from './quoting.ts'

/** A node of the tree that the grammar gives. */
export type SyntaxNode = ReturnType<typeof parser.parse>['topNode']

const TOKEN =
  /^(?:(?<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)|(?<open>["'`])|(?<number>(?:\d|\.\d)[\w.]*)|(?<word>[a-zA-Z_:][\w:]*)|(?<operator>[=!<>]=|=~|!~|<\/|>\/|[-+*/%^<>@])|(?<mark>[(){}[\],:;=])|(?<other>[\s\S]))/u

const KEYWORDS =
  /^(?:offset|smoothed|anchored|by|without|on|ignoring|group_left|group_right|fill|fill_left|fill_right|bool|start|end|step|range)$/i
const AGGREGATORS =
  /^(?:sum|avg|count|min|max|group|stddev|stdvar|topk|bottomk|count_values|quantile|limitk|limit_ratio)$/i
const WORD_OPERATORS = /^(?:and|or|unless|atan2)$/i

/**
 * The error at the place where the grammar could not go on. What is before it is read again by itself, which shows where the parser
 * was; the whole text is not, since recovering from errors takes long.
 */
export function syntaxError(text: string, at: number): PromqlError {
  const start = at + (/^(?:\s|#[^\n]*(?:\n|$))*/.exec(text.slice(at))?.[0].length ?? 0)
  const before = text.slice(0, start)
  if (start >= text.length && before.replace(/#[^\n]*/g, '').trim() === '')
    return parseError(text, { start: 0, end: 0 }, 'no expression found in input')
  const { context, open } = beforeError(before)
  const called = text[start] === '(' && context === '' ? /[a-zA-Z_:][\w:]*$/.exec(before.trimEnd()) : null
  if (called !== null) return unknownFunction(text, called)
  const { described, length } = describedToken(text, start)
  if (open === undefined && length === 0) return parseError(text, { start, end: start }, atTheEnd(before, context))
  const range = open ?? { start, end: start + length }
  if (open !== undefined || described === undefined) return parseError(text, range, 'unterminated quoted string')
  const isCharacter = described.startsWith('unexpected character')
  return parseError(text, range, isCharacter ? described : `unexpected ${described}${context}`)
}

/** Where the parser was at the end of a text, as far as Prometheus says it, and a text in quotes that has no end. */
function beforeError(text: string): { readonly context: string; readonly open: TextRange | undefined } {
  const cursor = parser.parse(text).cursor()
  do {
    const { from, to } = cursor
    if (cursor.name === 'StringLiteral' && (to - from < 2 || text[from] !== text[to - 1]))
      return { context: '', open: { start: from, end: to } }
    if (cursor.type.isError) return { context: contextOf(text, cursor.node), open: undefined }
  } while (cursor.next())
  return { context: '', open: undefined }
}

/** What is missing where a text ends. */
function atTheEnd(text: string, context: string): string {
  const marks = text.replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`|#[^\n]*/g, '').replace(/[^(){}[\]]/g, '')
  if (marks.lastIndexOf('{') > marks.lastIndexOf('}')) return 'unexpected end of input inside braces'
  if (marks.lastIndexOf('[') > marks.lastIndexOf(']')) return 'unexpected end of input in duration expression'
  const open = [...marks].reduce((depth, mark) => depth + Number(mark === '(') - Number(mark === ')'), 0)
  return open > 0 ? 'unclosed left parenthesis' : `unexpected end of input${context}`
}

function unknownFunction(text: string, { 0: name, index }: RegExpExecArray): PromqlError {
  const range = { start: index, end: index + name.length }
  const known = SIGNATURES.get(name)
  if (known?.feature === undefined) return parseError(text, range, `unknown function with name ${quoted(name)}`)
  return parseError(text, range, `function ${quoted(name)} is not enabled`, known.feature)
}

/** Undefined if it is a text without an end. */
function describedToken(text: string, at: number): { described: string | undefined; length: number } {
  if (at >= text.length) return { described: 'end of input', length: 0 }
  const { 0: token = '', groups = {} } = TOKEN.exec(text.slice(at, at + 1000)) ?? {}
  const { length } = token
  const short = length > 10 ? `${quoted(token.slice(0, 10))}...` : quoted(token)
  if (groups['text'] !== undefined) return { described: `string ${short}`, length }
  if (groups['open'] !== undefined) return { described: undefined, length }
  if (groups['number'] !== undefined)
    return { described: `${/[a-z]/i.test(token) && !/^0x|e/i.test(token) ? 'duration' : 'number'} ${short}`, length }
  if (groups['operator'] !== undefined || WORD_OPERATORS.test(token)) return { described: `<op:${token}>`, length }
  if (groups['word'] !== undefined) {
    if (KEYWORDS.test(token)) return { described: `<${token}>`, length }
    if (AGGREGATORS.test(token)) return { described: `<aggr:${token}>`, length }
    return { described: `${token.includes(':') ? 'metric identifier' : 'identifier'} ${quoted(token)}`, length }
  }
  if (groups['mark'] !== undefined) return { described: short, length }
  return { described: `unexpected character: '${token}'`, length }
}

/** Where the parser was, as far as Prometheus says it. */
function contextOf(text: string, node: SyntaxNode): string {
  switch (node.parent?.name) {
    case 'LabelMatchers':
      return node.prevSibling === null || node.prevSibling.name === '{'
        ? ' in label matching, expected identifier or "}"'
        : ' in label matching, expected "," or "}"'
    case 'UnquotedLabelMatcher':
    case 'QuotedLabelMatcher':
      return node.prevSibling?.name === 'MatchOp'
        ? ' in label matching, expected string'
        : ' in label matching, expected label matching operator'
    case 'GroupingLabels':
      if (text[node.parent.from] !== '(') return ' in grouping opts, expected "("'
      return ` in grouping opts, expected ${/[(,]\s*$/.test(text) ? 'label' : '"," or ")"'}`
    case 'MatchingModifierClause':
    case 'AggregateModifier':
      return ' in grouping opts, expected "("'
    case 'AggregateExpr':
      return ' in aggregation'
    case 'OffsetExpr':
    case 'OffsetDurationExpr':
      return ' in offset, expected number, duration, step(), or range()'
    case 'StepInvariantExpr':
      return ' in @, expected timestamp'
    case 'MatrixSelector':
      return ' in subquery or range, expected ":" or "]"'
    case 'SubqueryExpr':
      return ' in subquery selector, expected "]"'
    default:
      return ''
  }
}
