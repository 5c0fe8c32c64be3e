/** A checked expression as the tree that Prometheus answers to `parse_query`, by the names that it has there (`translate_ast.go`). */
import {
  type AtModifier,
  type Binary,
  type Expression,
  isSetOperator,
  type Selector,
} from '../../../../promql/expression.ts'
import { typeOf } from '../../../../promql/parse/check.ts'
import { plainNumber } from '../../../../promql/parse/numbers.ts'
import { SIGNATURES } from '../../../../promql/signatures.ts'

/** For JSON. It is as deep as the expression, whose depth is bounded. */
export function syntaxTree(expression: Expression): object {
  switch (expression.kind) {
    case 'number':
      return { type: 'numberLiteral', val: plainNumber(expression.value) }
    case 'text':
      return { type: 'stringLiteral', val: expression.text }
    case 'selector':
      return { type: 'vectorSelector', ...selectorFields(expression) }
    case 'range':
      return { type: 'matrixSelector', range: expression.rangeMs, ...selectorFields(expression.selector) }
    case 'subquery': {
      const { rangeMs, stepMs = 0 } = expression
      const expr = syntaxTree(expression.expression)
      return { type: 'subquery', expr, range: rangeMs, step: stepMs, ...placeFields(expression) }
    }
    case 'call': {
      const { name, args } = expression
      const { args: argTypes = [], variadic = 0, returns } = SIGNATURES.get(name) ?? {}
      return { type: 'call', func: { name, argTypes, variadic, returnType: returns }, args: args.map(syntaxTree) }
    }
    case 'aggregation': {
      const { operator, operand, parameter, labels, isWithout } = expression
      const param = parameter === undefined ? null : syntaxTree(parameter)
      return {
        type: 'aggregation',
        op: operator,
        expr: syntaxTree(operand),
        param,
        grouping: labels,
        without: isWithout,
      }
    }
    case 'binary': {
      const { operator, left, right, isBool } = expression
      const sides = { lhs: syntaxTree(left), rhs: syntaxTree(right) }
      return { type: 'binaryExpr', op: operator, ...sides, matching: matchingFields(expression), bool: isBool }
    }
    case 'unary':
      return { type: 'unaryExpr', op: expression.operator, expr: syntaxTree(expression.operand) }
    case 'parentheses':
      return { type: 'parenExpr', expr: syntaxTree(expression.inside) }
  }
}

function selectorFields(selector: Selector): object {
  const matchers = selector.matchers.map(({ label, operator, text }) => ({ name: label, value: text, type: operator }))
  // What is behind a flag there, and refused here.
  const refused = { anchored: false, smoothed: false }
  return { name: selector.metric ?? '', matchers, ...placeFields(selector), ...refused }
}

function placeFields({ at, offsetMs }: { readonly at: AtModifier | undefined; readonly offsetMs: number }): object {
  const isBorder = typeof at === 'string'
  return { offset: offsetMs, timestamp: isBorder ? null : (at?.ms ?? null), startOrEnd: isBorder ? at : null }
}

function matchingFields({ operator, left, right, matching }: Binary): object | null {
  if (typeOf(left) !== 'vector' || typeOf(right) !== 'vector') return null
  const { cardinality, labels, isOn, include } = matching
  const card = isSetOperator(operator) ? 'many-to-many' : cardinality
  return { card, labels, on: isOn, include, fillValues: { lhs: null, rhs: null } }
}
