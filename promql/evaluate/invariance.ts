/**
 * Which expressions have the same value at all times of a query, as their selectors have an `@`: they are evaluated once. Functions
 * of the time of evaluation never do.
 */
import { type Expression, partsOf, withoutParentheses } from '../expression.ts'
import { DATES } from '../functions/numbers-of-steps.ts'

const OF_THE_TIME: ReadonlySet<string> = new Set([...Object.keys(DATES), 'predict_linear', 'time', 'timestamp'])

/** The expressions within one, itself included, that do not change. */
export function invariantExpressions(expression: Expression): ReadonlySet<Expression> {
  const found = new Set<Expression>()
  note(expression, found)
  return found
}

function note(expression: Expression, found: Set<Expression>): void {
  for (const part of partsOf(expression)) note(part, found)
  if (isInvariant(expression, found)) found.add(expression)
}

function isInvariant(expression: Expression, found: ReadonlySet<Expression>): boolean {
  switch (expression.kind) {
    case 'selector':
    case 'subquery':
      return expression.at !== undefined
    case 'call': {
      const [first] = expression.args
      // The time of a sample that `@` names is always the same, while any other value has the time of the evaluation.
      const isOfSample =
        expression.name === 'timestamp' && first !== undefined && withoutParentheses(first).kind === 'selector'
      if (OF_THE_TIME.has(expression.name) && !isOfSample) return false
      return expression.args.every((arg) => found.has(arg))
    }
    default:
      return partsOf(expression).every((part) => found.has(part))
  }
}
