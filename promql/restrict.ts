/** An expression with further matchers in every selector: whoever evaluates it elsewhere sees no series beyond them. */
import type { Expression, Selector } from './expression.ts'
import type { LabelMatcher } from './label-matcher.ts'
import { METRIC_NAME_LABEL } from './label-set.ts'

const PLAIN_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/

export function restrictExpression(expression: Expression, matcher: LabelMatcher): Expression {
  const within = (part: Expression): Expression => restrictExpression(part, matcher)
  switch (expression.kind) {
    case 'number':
    case 'text':
      return expression
    case 'selector':
      return restrictSelector(expression, matcher)
    case 'range':
      return { ...expression, selector: restrictSelector(expression.selector, matcher) }
    case 'subquery':
      return { ...expression, expression: within(expression.expression) }
    case 'call':
      return { ...expression, args: expression.args.map(within) }
    case 'aggregation': {
      const { operand, parameter } = expression
      return { ...expression, operand: within(operand), parameter: parameter && within(parameter) }
    }
    case 'binary':
      return { ...expression, left: within(expression.left), right: within(expression.right) }
    case 'unary':
      return { ...expression, operand: within(expression.operand) }
    case 'parentheses':
      return { ...expression, inside: within(expression.inside) }
  }
}

/**
 * In front: a name outside of the braces is the last matcher. A name that can stand there does, since not every server knows one in
 * quotes.
 */
function restrictSelector(selector: Selector, matcher: LabelMatcher): Selector {
  const { metric, matchers } = selector
  const others = matchers.filter(({ label }) => label !== METRIC_NAME_LABEL)
  const [named, another] = matchers.filter(({ label }) => label === METRIC_NAME_LABEL)
  const canStand = named?.operator === '=' && another === undefined && PLAIN_NAME.test(named.text)
  if (metric !== undefined || !canStand) return { ...selector, matchers: [matcher, ...matchers] }
  return { ...selector, metric: named.text, matchers: [matcher, ...others, named] }
}
