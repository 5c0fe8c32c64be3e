/**
 * From a text to a checked expression. The grammar is that of Prometheus' own editor, in `@prometheus-io/lezer-promql`; this file
 * makes expressions of its tree, and chain.ts gives operators their precedences. Texts and their nesting have bounds.
 */
import { parser } from '@prometheus-io/lezer-promql'
import { PromqlError, parseError, type TextRange, type UnsupportedFeature } from '../errors.ts'
import {
  AGGREGATIONS,
  type Aggregation,
  type AggregationOperator,
  type AtModifier,
  type BinaryOperator,
  type Expression,
  type Matching,
  partsOf,
  type Selector,
} from '../expression.ts'
import { LabelMatcher, type MatchOperator, RegexError, RegexMemory } from '../label-matcher.ts'
import { isLabelName, METRIC_NAME_LABEL } from '../label-set.ts'
import { SIGNATURES } from '../signatures.ts'
import { Chain, type OperatorLink } from './chain.ts'
import { checkExpression } from './check.ts'
import { literalNumber, MAX_DURATION_MS } from './numbers.ts'
import { quoted, unquoted } from './quoting.ts'
import { type SyntaxNode, syntaxError } from './syntax-problem.ts'

export interface ParseLimits {
  /** Characters of a text. */
  readonly maxLength: number
  /** How deep expressions may contain each other; a chain of operators counts, as `a + b + c` is `(a + b) + c`. */
  readonly maxDepth: number
}

export const PARSE_LIMITS: ParseLimits = { maxLength: 50_000, maxDepth: 300 }

const SIGNED_BY_MODIFIERS: ReadonlySet<string> = new Set([
  'OffsetExpr',
  'StepInvariantExpr',
  'MatrixSelector',
  'SubqueryExpr',
  'AnchoredExpr',
  'SmoothedExpr',
])

/** It ends at the first error, where the other way may take seconds. */
const strictParser = parser.configure({ strict: true })

/** The expression of a text; throws PromqlError, `bad_data`. */
export function parseExpression(text: string, limits = PARSE_LIMITS, regexes = new RegexMemory()): Expression {
  if (text.length > limits.maxLength)
    throw new PromqlError(
      'bad_data',
      `the expression has ${text.length} characters, at most ${limits.maxLength} are allowed`,
    )
  const expression = new ExpressionReader(text, limits, regexes).read()
  checkExpression(text, expression)
  return expression
}

/** The matchers of a text that is one selector, without modifiers; throws PromqlError. */
export function parseSelector(text: string, limits = PARSE_LIMITS): Selector {
  const expression = parseExpression(text, limits)
  if (expression.kind === 'selector' && expression.at === undefined && expression.offsetMs === 0) return expression
  throw parseError(text, expression.range, 'expected a selector alone')
}

class ExpressionReader {
  /** As the grammar reads it, at the same places. */
  readonly #text: string
  readonly #original: string
  readonly #limits: ParseLimits
  readonly #regexes: RegexMemory
  readonly #depths = new Map<Expression, number>()
  #nested = 0

  constructor(text: string, limits: ParseLimits, regexes: RegexMemory) {
    this.#regexes = regexes
    this.#original = text
    this.#text = asTheGrammarReads(text)
    this.#limits = limits
  }

  read(): Expression {
    const top = this.#tree()
    const [first] = expressionsIn(top)
    if (first === undefined) throw this.#error({ start: 0, end: 0 }, 'no expression found in input')
    return this.#expression(first)
  }

  #tree(): SyntaxNode {
    try {
      return strictParser.parse(this.#text).topNode
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      const at = Number(/\d+$/.exec(error.message)?.[0] ?? 0)
      // The parser itself ends where expressions are nested too deeply, and says the same.
      if (mayBeTooDeep(this.#text.slice(0, at), this.#limits.maxDepth)) throw this.#tooDeep({ start: at, end: at })
      throw syntaxError(this.#original, at)
    }
  }

  /** One expression with everything in its chain of operators. */
  #expression(node: SyntaxNode): Expression {
    if (++this.#nested > this.#limits.maxDepth) throw this.#tooDeep(rangeOf(node))
    const chain = new Chain(
      (made) => this.#measure(made),
      this.#limits.maxDepth,
      () => {
        throw this.#tooDeep(rangeOf(node))
      },
    )
    this.#takeApart(node, chain)
    const expression = chain.assembled()
    this.#nested--
    return expression
  }

  /** Puts the operands and operators below a node into the chain, from left to right; without recursion, as chains are long. */
  #takeApart(top: SyntaxNode, chain: Chain): void {
    const todo: (SyntaxNode | (() => void))[] = [top]
    let signs: { operator: '+' | '-'; at: number }[] = []
    const add = (expression: Expression): void => {
      this.#measure(expression)
      chain.operands.push({ signs, expression })
      signs = []
    }
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      if (typeof next === 'function') {
        next()
        continue
      }
      const node = next
      const [first, last] = [node.firstChild, node.lastChild]
      if (node.name === 'BinaryExpr' && first !== null && last !== null) {
        todo.push(last, () => chain.links.push(this.#link(node)), first)
      } else if (node.name === 'UnaryExpr' && first !== null && last !== null) {
        signs.push({ operator: this.#slice(first) === '-' ? '-' : '+', at: node.from })
        todo.push(last)
      } else if (SIGNED_BY_MODIFIERS.has(node.name) && first !== null) {
        todo.push(() => {
          const operand = chain.operands.at(-1)
          if (operand === undefined) return
          operand.expression = this.#modified(operand.expression, node)
          this.#measure(operand.expression)
        }, first)
      } else if (node.name === 'NumberDurationLiteral') {
        const sign = this.#text[node.from]
        if (sign === '-' || sign === '+') signs.push({ operator: sign, at: node.from })
        add({ kind: 'number', value: this.#number(node), range: rangeOf(node) })
      } else {
        add(this.#operand(node))
      }
    }
  }

  #operand(node: SyntaxNode): Expression {
    const range = rangeOf(node)
    switch (node.name) {
      case 'ParenExpr': {
        const inside = expressionsIn(node)[0]
        if (inside === undefined) break
        return { kind: 'parentheses', inside: this.#expression(inside), range }
      }
      case 'StringLiteral':
        return { kind: 'text', text: this.#stringOf(node), range }
      case 'VectorSelector':
        return this.#selector(node)
      case 'FunctionCall':
        return this.#call(node)
      case 'AggregateExpr':
        return this.#aggregation(node)
    }
    throw this.#error(range, `unexpected ${node.name}`)
  }

  #selector(node: SyntaxNode): Selector {
    const name = node.getChild('Identifier')
    const metric = name === null ? undefined : this.#slice(name)
    const matchers = childrenOf(node.getChild('LabelMatchers')).flatMap((child) => this.#matcher(child) ?? [])
    if (metric !== undefined) matchers.push(new LabelMatcher(METRIC_NAME_LABEL, '=', metric))
    return { kind: 'selector', metric, matchers, offsetMs: 0, at: undefined, range: rangeOf(node) }
  }

  #matcher(node: SyntaxNode): LabelMatcher | undefined {
    if (node.name === 'QuotedLabelName') return new LabelMatcher(METRIC_NAME_LABEL, '=', this.#quotedName(node))
    if (node.name !== 'UnquotedLabelMatcher' && node.name !== 'QuotedLabelMatcher') return undefined
    const [label, operator, text] = childrenOf(node)
    if (label === undefined || operator === undefined || text === undefined) return undefined
    const name = label.name === 'QuotedLabelName' ? this.#quotedName(label) : this.#slice(label)
    try {
      return new LabelMatcher(name, this.#slice(operator) as MatchOperator, this.#stringOf(text), this.#regexes)
    } catch (error) {
      if (!(error instanceof RegexError)) throw error
      throw this.#error(rangeOf(node), error.message)
    }
  }

  #call(node: SyntaxNode): Expression {
    const [identifier, body] = childrenOf(node)
    const name = identifier === undefined ? '' : this.#slice(identifier)
    const signature = SIGNATURES.get(name)
    const range = rangeOf(identifier ?? node)
    if (signature === undefined) throw this.#error(range, `unknown function with name ${quoted(name)}`)
    if (signature.feature === 'native histograms')
      throw this.#error(
        range,
        `function ${quoted(name)} is for native histograms, which are not supported`,
        signature.feature,
      )
    if (signature.feature !== undefined)
      throw this.#error(range, `function ${quoted(name)} is not enabled`, signature.feature)
    const args = expressionsIn(body ?? node).map((arg) => this.#expression(arg))
    return { kind: 'call', name, args, range: rangeOf(node) }
  }

  #aggregation(node: SyntaxNode): Expression {
    const [head] = childrenOf(node)
    const operator = this.#slice(head ?? node).toLowerCase()
    const range = rangeOf(node)
    if (!isAggregation(operator)) {
      const problem = `${operator}() is experimental and must be enabled with --enable-feature=promql-experimental-functions`
      throw this.#error(range, problem, 'promql-experimental-functions')
    }
    const modifier = node.getChild('AggregateModifier')
    const args = expressionsIn(node.getChild('FunctionCallBody') ?? node)
    if (args.length === 0) throw this.#error(range, 'no arguments for aggregate expression provided')
    const wanted = takesParameter(operator) ? 2 : 1
    if (args.length !== wanted)
      throw this.#error(
        range,
        `wrong number of arguments for aggregate expression provided, expected ${wanted}, got ${args.length}`,
      )
    const [first, second] = args.map((arg) => this.#expression(arg))
    const operand = second ?? first
    if (operand === undefined) throw this.#error(range, 'no arguments for aggregate expression provided')
    const aggregation: Aggregation = {
      kind: 'aggregation',
      operator,
      operand,
      parameter: second === undefined ? undefined : first,
      labels: this.#groupingLabels(modifier?.getChild('GroupingLabels') ?? null),
      isWithout: modifier?.getChild('Without') != null,
      range,
    }
    return aggregation
  }

  #groupingLabels(node: SyntaxNode | null): string[] {
    return childrenOf(node).flatMap((child) => {
      if (child.name === 'LabelName') return [this.#slice(child)]
      return child.name === 'QuotedLabelName' ? [this.#quotedName(child, 'invalid label name for grouping')] : []
    })
  }

  #link(node: SyntaxNode): OperatorLink {
    const children = childrenOf(node)
    const [left, token] = children
    const right = children.at(-1)
    if (left === undefined || token === undefined || right === undefined)
      throw this.#error(rangeOf(node), 'no operator')
    const operator = this.#slice(token).toLowerCase()
    const range = { start: token.from, end: (children.at(-2) ?? token).to }
    if (operator === '</' || operator === '>/')
      throw this.#error(
        range,
        `operator ${operator} is for native histograms, which are not supported`,
        'native histograms',
      )
    if (node.getChild('FillModifier') !== null) {
      const problem = 'binop fill modifiers are experimental and not enabled'
      throw this.#error(rangeOf(node), problem, 'promql-binop-fill-modifiers')
    }
    return {
      operator: operator as BinaryOperator,
      range,
      isBool: node.getChild('BoolModifier') !== null,
      matching: this.#matching(node.getChild('MatchingModifierClause')),
    }
  }

  #matching(clause: SyntaxNode | null): Matching {
    if (clause === null) return { isOn: false, labels: [], cardinality: 'one-to-one', include: [], isWritten: false }
    const [labels, include] = clause.getChildren('GroupingLabels').map((list) => this.#groupingLabels(list))
    const isLeft = clause.getChild('GroupLeft') !== null
    const isRight = clause.getChild('GroupRight') !== null
    return {
      isOn: clause.getChild('On') !== null,
      labels: labels ?? [],
      cardinality: isLeft ? 'many-to-one' : isRight ? 'one-to-many' : 'one-to-one',
      include: include ?? [],
      isWritten: true,
    }
  }

  /** An operand with the modifier that the node puts behind it. */
  #modified(operand: Expression, node: SyntaxNode): Expression {
    const [, ...modifier] = childrenOf(node)
    const range = { start: operand.range.start, end: node.to }
    switch (node.name) {
      case 'MatrixSelector':
        return this.#ranged(operand, modifier, range)
      case 'SubqueryExpr': {
        const [rangeMs = 0, stepMs] = modifier
          .filter(({ name }) => name === 'DurationExpr')
          .map((d) => this.#positive(d))
        return { kind: 'subquery', expression: operand, rangeMs, stepMs, offsetMs: 0, at: undefined, range }
      }
      case 'OffsetExpr': {
        const duration = modifier.find(({ name }) => name === 'OffsetDurationExpr')
        const offsetMs = duration === undefined ? 0 : this.#duration(duration)
        return this.#withOffset(operand, offsetMs, range)
      }
      case 'StepInvariantExpr':
        return this.#withAt(operand, this.#atModifier(operand, modifier), range)
      default: {
        const word = node.name === 'AnchoredExpr' ? 'anchored' : 'smoothed'
        const problem = `${word} modifier is experimental and not enabled`
        throw this.#error(operand.range, problem, 'promql-extended-range-selectors')
      }
    }
  }

  #ranged(operand: Expression, modifier: readonly SyntaxNode[], range: TextRange): Expression {
    const brackets = { start: this.#text.lastIndexOf('[', modifier[0]?.from ?? range.end), end: range.end }
    if (operand.kind !== 'selector') throw this.#error(brackets, 'ranges only allowed for vector selectors')
    if (operand.offsetMs !== 0) throw this.#error(brackets, 'no offset modifiers allowed before range')
    if (operand.at !== undefined) throw this.#error(brackets, 'no @ modifiers allowed before range')
    const duration = modifier.find(({ name }) => name === 'DurationExpr')
    return { kind: 'range', selector: operand, rangeMs: duration === undefined ? 0 : this.#positive(duration), range }
  }

  #withOffset(operand: Expression, offsetMs: number, range: TextRange): Expression {
    const target = operand.kind === 'range' ? operand.selector : operand
    if (target.kind !== 'selector' && target.kind !== 'subquery') {
      const before = 'an instant vector selector or range vector selector or a subquery'
      throw this.#error(operand.range, `offset modifier must be preceded by ${before}`)
    }
    if (target.offsetMs !== 0) throw this.#error(operand.range, 'offset may not be set multiple times')
    if (operand.kind === 'range') return { ...operand, selector: { ...operand.selector, offsetMs }, range }
    return { ...target, offsetMs, range }
  }

  #withAt(operand: Expression, at: AtModifier, range: TextRange): Expression {
    const target = operand.kind === 'range' ? operand.selector : operand
    if (target.kind !== 'selector' && target.kind !== 'subquery') {
      const before = 'an instant vector selector or range vector selector or a subquery'
      throw this.#error(operand.range, `@ modifier must be preceded by ${before}`)
    }
    if (target.at !== undefined) throw this.#error(operand.range, '@ <timestamp> may not be set multiple times')
    if (operand.kind === 'range') return { ...operand, selector: { ...operand.selector, at }, range }
    return { ...target, at, range }
  }

  #atModifier(operand: Expression, modifier: readonly SyntaxNode[]): AtModifier {
    const edge = modifier.find(({ name }) => name === 'AtModifierPreprocessors')
    if (edge !== undefined) return this.#slice(edge).toLowerCase() === 'start' ? 'start' : 'end'
    const node = modifier.find(({ name }) => name === 'NumberDurationLiteral')
    const seconds = node === undefined ? Number.NaN : this.#number(node)
    const signed = node !== undefined && this.#text[node.from] === '-' ? -seconds : seconds
    // Go keeps milliseconds in 64 bits; JavaScript counts them exactly up to 2^53.
    if (!Number.isSafeInteger(Math.trunc(signed * 1000)))
      throw this.#error(operand.range, `timestamp out of bounds for @ modifier: ${signed.toFixed(6)}`)
    return { ms: Math.round(signed * 1000) }
  }

  #positive(node: SyntaxNode): number {
    const ms = this.#duration(node)
    if (ms <= 0) throw this.#error(rangeOf(node), 'duration must be greater than 0')
    return ms
  }

  /** Signed milliseconds. Only Prometheus' feature flag allows more than a number there. */
  #duration(node: SyntaxNode): number {
    let sign = 1
    let inner = node
    while (inner.firstChild?.name === 'UnaryOp' && inner.lastChild !== null) {
      if (this.#slice(inner.firstChild) === '-') sign = -sign
      inner = inner.lastChild
    }
    const literal = inner.firstChild
    if (literal === null || literal.name !== 'NumberDurationLiteralInDurationContext' || literal.nextSibling !== null) {
      const problem = 'experimental duration expression is not enabled'
      throw this.#error(rangeOf(node), problem, 'promql-duration-expr')
    }
    const ms = sign * this.#number(literal) * 1000
    if (!(Math.abs(ms) <= MAX_DURATION_MS)) throw this.#error(rangeOf(node), 'duration out of range')
    return Math.trunc(Math.round(ms * 1e6) / 1e6)
  }

  /** The number of a literal, without its sign. */
  #number(node: SyntaxNode): number {
    const written = this.#slice(node).replace(/^[-+]\s*/, '')
    const value = literalNumber(written)
    if (value === undefined) throw this.#error(rangeOf(node), `bad number or duration syntax: ${quoted(written)}`)
    return value
  }

  #quotedName(node: SyntaxNode, problem = 'invalid label name'): string {
    const name = this.#stringOf(node.firstChild ?? node)
    if (!isLabelName(name)) throw this.#error(rangeOf(node), `${problem}: ${quoted(name)}`)
    return name
  }

  #stringOf(node: { readonly from: number; readonly to: number }): string {
    const literal = this.#slice(node)
    const text = unquoted(literal)
    if (text !== undefined) return text
    const isOpen = literal.length < 2 || literal.at(-1) !== literal[0]
    const problem = isOpen ? 'unterminated quoted string' : `error unquoting string ${quoted(literal)}: invalid syntax`
    throw this.#error(rangeOf(node), problem)
  }

  /** Notes how deep an expression is, so that nothing that follows it down runs out of stack. */
  #measure(expression: Expression): void {
    const depth = 1 + Math.max(0, ...partsOf(expression).map((part) => this.#depths.get(part) ?? 0))
    if (depth > this.#limits.maxDepth) throw this.#tooDeep(expression.range)
    this.#depths.set(expression, depth)
  }

  #tooDeep(range: TextRange): PromqlError {
    return this.#error(range, `expressions are nested more than ${this.#limits.maxDepth} deep`)
  }

  #slice({ from, to }: { readonly from: number; readonly to: number }): string {
    return this.#text.slice(from, to)
  }

  #error(range: TextRange, problem: string, feature?: UnsupportedFeature): PromqlError {
    return parseError(this.#original, range, problem, feature)
  }
}

/** The grammar does not know `2.`, `2.e3` and `0X1F`; what stands in their place has the same length. */
function asTheGrammarReads(text: string): string {
  const token =
    /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`|#[^\n]*|[a-zA-Z_:][\w:]*|0X[\da-fA-F]+|(\d[\d_]*)\.(?![\d.])|\d[\w.]*/g
  return text.replace(token, (found: string, digits: string | undefined, at: number) => {
    if (found.startsWith('0X')) return `0x${found.slice(2)}`
    if (digits === undefined) return found
    return /^[eE][+-]?\d/.test(text.slice(at + found.length)) ? ` ${digits}` : `${digits} `
  })
}

/** Whether there are so many operators and brackets that one of them may be too deep. */
function mayBeTooDeep(text: string, maxDepth: number): boolean {
  const withoutTexts = text.replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`|#[^\n]*/g, '')
  return (withoutTexts.match(/[-+*/%^([<>]|[=!]=|\b(?:and|or|unless|atan2)\b/gi)?.length ?? 0) > maxDepth
}

function takesParameter(operator: AggregationOperator): boolean {
  return operator === 'topk' || operator === 'bottomk' || operator === 'quantile' || operator === 'count_values'
}

function isAggregation(operator: string): operator is AggregationOperator {
  return (AGGREGATIONS as readonly string[]).includes(operator)
}

/** The children that are expressions. */
function expressionsIn(node: SyntaxNode): SyntaxNode[] {
  return childrenOf(node).filter(({ type }) => type.isAnonymous === false && type.is('Expr'))
}

function childrenOf(node: SyntaxNode | null): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = node?.firstChild ?? null; child !== null; child = child.nextSibling) {
    if (child.name !== 'LineComment') children.push(child)
  }
  return children
}

function rangeOf({ from, to }: { readonly from: number; readonly to: number }): TextRange {
  return { start: from, end: to }
}
