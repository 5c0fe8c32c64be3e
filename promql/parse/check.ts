/** The checks of an expression that was read: types of operands and arguments, and what operators may be combined with. */
import { type PromqlError, parseError, type TextRange } from '../errors.ts'
import {
  type Aggregation,
  type Binary,
  type Call,
  DOCUMENTED_TYPE,
  type Expression,
  type ExpressionType,
  isComparison,
  isSetOperator,
  partsOf,
  type Selector,
} from '../expression.ts'
import { METRIC_NAME_LABEL } from '../label-set.ts'
import { SIGNATURES } from '../signatures.ts'
import { quoted } from './quoting.ts'

/** The type of what an expression gives. */
export function typeOf(expression: Expression): ExpressionType {
  switch (expression.kind) {
    case 'number':
      return 'scalar'
    case 'text':
      return 'string'
    case 'selector':
    case 'aggregation':
      return 'vector'
    case 'range':
    case 'subquery':
      return 'matrix'
    case 'call':
      return SIGNATURES.get(expression.name)?.returns ?? 'vector'
    case 'binary':
      return typeOf(expression.left) === 'scalar' && typeOf(expression.right) === 'scalar' ? 'scalar' : 'vector'
    case 'unary':
      return typeOf(expression.operand)
    case 'parentheses':
      return typeOf(expression.inside)
  }
}

/** Throws PromqlError for the first thing that is wrong. */
export function checkExpression(text: string, expression: Expression): void {
  new Checker(text).check(expression)
}

class Checker {
  readonly #text: string
  /** A chain asks for the types of its parts again and again. */
  readonly #types = new Map<Expression, ExpressionType>()

  constructor(text: string) {
    this.#text = text
  }

  check(expression: Expression): ExpressionType {
    for (const part of partsOf(expression)) this.check(part)
    const type = this.#type(expression)
    this.#types.set(expression, type)
    this.#checkOne(expression)
    return type
  }

  #type(expression: Expression): ExpressionType {
    if (expression.kind === 'binary')
      return this.#of(expression.left) === 'scalar' && this.#of(expression.right) === 'scalar' ? 'scalar' : 'vector'
    if (expression.kind === 'unary') return this.#of(expression.operand)
    return expression.kind === 'parentheses' ? this.#of(expression.inside) : typeOf(expression)
  }

  #of(expression: Expression): ExpressionType {
    return this.#types.get(expression) ?? typeOf(expression)
  }

  #checkOne(expression: Expression): void {
    switch (expression.kind) {
      case 'selector':
        this.#checkSelector(expression)
        return
      case 'subquery': {
        const type = this.#of(expression.expression)
        const given = type === 'vector' || type === 'matrix' ? DOCUMENTED_TYPE[type] : type
        if (type !== 'vector')
          throw this.#error(expression.range, `subquery is only allowed on instant vector, got ${given} instead`)
        return
      }
      case 'call':
        this.#checkCall(expression)
        return
      case 'aggregation':
        this.#checkAggregation(expression)
        return
      case 'binary':
        this.#checkBinary(expression)
        return
      case 'unary': {
        const type = this.#of(expression.operand)
        if (type !== 'scalar' && type !== 'vector')
          throw this.#error(
            expression.range,
            `unary expression only allowed on expressions of type scalar or instant vector, got ${quoted(DOCUMENTED_TYPE[type])}`,
          )
      }
    }
  }

  #checkSelector({ metric, matchers, range }: Selector): void {
    if (metric !== undefined) {
      const other = matchers.slice(0, -1).find(({ label }) => label === METRIC_NAME_LABEL)
      if (other === undefined) return
      const names = `${quoted(metric)} or ${quoted(other.text)}`
      throw this.#error(range, `metric name must not be set twice: ${names}`)
    }
    if (matchers.every((matcher) => matcher.matches('')))
      throw this.#error(range, 'vector selector must contain at least one non-empty matcher')
  }

  #checkCall({ name, args, range }: Call): void {
    const signature = SIGNATURES.get(name)
    if (signature === undefined) throw this.#error(range, `unknown function with name ${quoted(name)}`)
    const { args: types, variadic } = signature
    const call = `argument(s) in call to ${quoted(name)}, got ${args.length}`
    if (variadic === 0 && args.length !== types.length) throw this.#error(range, `expected ${types.length} ${call}`)
    const least = types.length - 1
    if (variadic !== 0 && args.length < least) throw this.#error(range, `expected at least ${least} ${call}`)
    if (variadic > 0 && args.length > least + variadic)
      throw this.#error(range, `expected at most ${least + variadic} ${call}`)
    for (const [index, arg] of args.entries()) {
      const wanted = types[Math.min(index, types.length - 1)]
      if (wanted !== undefined) this.#expect(arg, wanted, `call to function ${quoted(name)}`)
    }
  }

  #checkAggregation({ operator, operand, parameter }: Aggregation): void {
    this.#expect(operand, 'vector', 'aggregation expression')
    if (parameter !== undefined)
      this.#expect(parameter, operator === 'count_values' ? 'string' : 'scalar', 'aggregation parameter')
  }

  #checkBinary({ operator, left, right, isBool, matching, operatorRange, range }: Binary): void {
    const [leftType, rightType] = [this.#of(left), this.#of(right)]
    if (isBool && !isComparison(operator))
      throw this.#error(operatorRange, 'bool modifier can only be used on comparison operators')
    if (isComparison(operator) && !isBool && leftType === 'scalar' && rightType === 'scalar')
      throw this.#error(operatorRange, 'comparisons between scalars must use BOOL modifier')
    const both = matching.isOn ? matching.labels.find((label) => matching.include.includes(label)) : undefined
    if (both !== undefined)
      throw this.#error(operatorRange, `label ${quoted(both)} must not occur in ON and GROUP clause at once`)
    for (const [type, side] of [[leftType, left] as const, [rightType, right] as const]) {
      if (type !== 'scalar' && type !== 'vector')
        throw this.#error(side.range, 'binary expression must contain only scalar and instant vector types')
    }
    const areVectors = leftType === 'vector' && rightType === 'vector'
    if (!areVectors && matching.labels.length > 0)
      throw this.#error(range, 'vector matching only allowed between instant vectors')
    if (!isSetOperator(operator)) return
    if (!areVectors)
      throw this.#error(range, `set operator ${quoted(operator)} not allowed in binary scalar expression`)
    if (matching.cardinality !== 'one-to-one')
      throw this.#error(range, `no grouping allowed for ${quoted(operator)} operation`)
  }

  #expect(expression: Expression, wanted: ExpressionType, context: string): void {
    const type = this.#of(expression)
    if (type === wanted) return
    const types = `expected type ${DOCUMENTED_TYPE[wanted]} in ${context}, got ${DOCUMENTED_TYPE[type]}`
    throw this.#error(expression.range, types)
  }

  #error(range: TextRange, problem: string): PromqlError {
    return parseError(this.#text, range, problem)
  }
}
