/**
 * An expression with an `@` on each selector, as Prometheus' own tests repeat instant queries: then the result is the same at
 * whatever time it is evaluated.
 */
import type { Expression } from '../../../promql/expression.ts'
import { DATES } from '../../../promql/functions/numbers-of-steps.ts'

const OF_THE_TIME = new Set([...Object.keys(DATES), 'predict_linear', 'time', 'timestamp'])

/** Undefined if the expression has a function of the time of evaluation. */
export function withAt(expression: Expression, ms: number): Expression | undefined {
  const at = { ms }
  switch (expression.kind) {
    case 'number':
    case 'text':
      return expression
    case 'selector':
      return { ...expression, at: expression.at ?? at }
    case 'range':
      return { ...expression, selector: { ...expression.selector, at: expression.selector.at ?? at } }
    // What is inside of a subquery stays as it is.
    case 'subquery':
      return { ...expression, at: expression.at ?? at }
    case 'call': {
      if (OF_THE_TIME.has(expression.name)) return undefined
      const args = expression.args.map((arg) => withAt(arg, ms))
      return args.includes(undefined) ? undefined : { ...expression, args: args.filter((arg) => arg !== undefined) }
    }
    case 'aggregation': {
      const operand = withAt(expression.operand, ms)
      const parameter = expression.parameter === undefined ? undefined : withAt(expression.parameter, ms)
      if (operand === undefined || (expression.parameter !== undefined && parameter === undefined)) return undefined
      return { ...expression, operand, parameter }
    }
    case 'binary': {
      const [left, right] = [withAt(expression.left, ms), withAt(expression.right, ms)]
      return left === undefined || right === undefined ? undefined : { ...expression, left, right }
    }
    case 'unary': {
      const operand = withAt(expression.operand, ms)
      return operand === undefined ? undefined : { ...expression, operand }
    }
    case 'parentheses': {
      const inside = withAt(expression.inside, ms)
      return inside === undefined ? undefined : { ...expression, inside }
    }
  }
}

/** The times at which the expression with `@` is evaluated. */
export function timesFor(ms: number): number[] {
  return ms === 0 ? [-1000, 0, 1000] : [-10 * ms, 0, Math.trunc(ms / 5), ms, 10 * ms]
}
