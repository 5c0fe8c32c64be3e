/**
 * Expressions, as the parser gives them: checked, and never changed after that. What Prometheus calls a matrix is a range here,
 * and its vector is a selector where it selects, as the documentation of the language has it.
 */
import type { TextRange } from './errors.ts'
import type { LabelMatcher } from './label-matcher.ts'

export type ExpressionType = 'scalar' | 'string' | 'vector' | 'matrix'

/** How Prometheus names types in messages. */
export const DOCUMENTED_TYPE: Readonly<Record<ExpressionType, string>> = {
  scalar: 'scalar',
  string: 'string',
  vector: 'instant vector',
  matrix: 'range vector',
}

export const ARITHMETIC = ['+', '-', '*', '/', '%', '^', 'atan2'] as const
export const COMPARISONS = ['==', '!=', '>', '<', '>=', '<='] as const
export const SET_OPERATORS = ['and', 'or', 'unless'] as const
export type ArithmeticOperator = (typeof ARITHMETIC)[number]
export type ComparisonOperator = (typeof COMPARISONS)[number]
export type SetOperator = (typeof SET_OPERATORS)[number]
export type BinaryOperator = ArithmeticOperator | ComparisonOperator | SetOperator

export const AGGREGATIONS = [
  'sum',
  'avg',
  'count',
  'min',
  'max',
  'group',
  'stddev',
  'stdvar',
  'topk',
  'bottomk',
  'count_values',
  'quantile',
] as const
export type AggregationOperator = (typeof AGGREGATIONS)[number]

/** `@ 1700000000`, or the start or end of the query. */
export type AtModifier = { readonly ms: number } | 'start' | 'end'

interface Modified {
  /** Positive into the past. */
  readonly offsetMs: number
  readonly at: AtModifier | undefined
}

interface Placed {
  /** Where it stands in the text. */
  readonly range: TextRange
}

export interface NumberLiteral extends Placed {
  readonly kind: 'number'
  readonly value: number
}

export interface TextLiteral extends Placed {
  readonly kind: 'text'
  readonly text: string
}

export interface Selector extends Placed, Modified {
  readonly kind: 'selector'
  /** The name before the braces. Then it is among the matchers as well. */
  readonly metric: string | undefined
  readonly matchers: readonly LabelMatcher[]
}

export interface RangeSelector extends Placed {
  readonly kind: 'range'
  readonly selector: Selector
  readonly rangeMs: number
}

export interface Subquery extends Placed, Modified {
  readonly kind: 'subquery'
  readonly expression: Expression
  readonly rangeMs: number
  /** Undefined if the text leaves it to the server. */
  readonly stepMs: number | undefined
}

export interface Call extends Placed {
  readonly kind: 'call'
  readonly name: string
  readonly args: readonly Expression[]
}

export interface Aggregation extends Placed {
  readonly kind: 'aggregation'
  readonly operator: AggregationOperator
  readonly operand: Expression
  readonly parameter: Expression | undefined
  readonly labels: readonly string[]
  readonly isWithout: boolean
}

export interface Matching {
  readonly isOn: boolean
  readonly labels: readonly string[]
  readonly cardinality: 'one-to-one' | 'many-to-one' | 'one-to-many'
  /** Labels that the side of one gives to results. */
  readonly include: readonly string[]
  /** Whether the text says anything of it. */
  readonly isWritten: boolean
}

export interface Binary extends Placed {
  readonly kind: 'binary'
  readonly operator: BinaryOperator
  readonly left: Expression
  readonly right: Expression
  readonly isBool: boolean
  readonly matching: Matching
  /** Where the operator and its modifiers stand. */
  readonly operatorRange: TextRange
}

export interface Unary extends Placed {
  readonly kind: 'unary'
  readonly operator: '+' | '-'
  readonly operand: Expression
}

export interface Parentheses extends Placed {
  readonly kind: 'parentheses'
  readonly inside: Expression
}

export type Expression =
  | NumberLiteral
  | TextLiteral
  | Selector
  | RangeSelector
  | Subquery
  | Call
  | Aggregation
  | Binary
  | Unary
  | Parentheses

export function isArithmetic(operator: BinaryOperator): operator is ArithmeticOperator {
  return (ARITHMETIC as readonly string[]).includes(operator)
}

export function isComparison(operator: BinaryOperator): operator is ComparisonOperator {
  return (COMPARISONS as readonly string[]).includes(operator)
}

export function isSetOperator(operator: BinaryOperator): operator is SetOperator {
  return (SET_OPERATORS as readonly string[]).includes(operator)
}

/** What is inside of parentheses, however many. */
export function withoutParentheses(expression: Expression): Expression {
  let inside = expression
  while (inside.kind === 'parentheses') inside = inside.inside
  return inside
}

/** Whatever an expression selects. */
export function* selectorsOf(expression: Expression): Generator<Selector, void, void> {
  if (expression.kind === 'selector') yield expression
  for (const part of partsOf(expression)) yield* selectorsOf(part)
}

/** The expressions of which one consists. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'number':
    case 'text':
    case 'selector':
      return []
    case 'range':
      return [expression.selector]
    case 'subquery':
      return [expression.expression]
    case 'call':
      return expression.args
    case 'aggregation':
      return expression.parameter === undefined ? [expression.operand] : [expression.parameter, expression.operand]
    case 'binary':
      return [expression.left, expression.right]
    case 'unary':
      return [expression.operand]
    case 'parentheses':
      return [expression.inside]
  }
}
