/**
 * Operands and operators in the order of the text, put together by the precedences of Prometheus. The grammar gives modifiers
 * behind an operand (`offset`, `@`, `[5m]`) the lowest precedence and signs of numbers the highest; Prometheus has both the
 * other way round. So a chain is taken apart, where modifiers belong to the operand before them, and put together here.
 */
import type { TextRange } from '../errors.ts'
import type { Binary, BinaryOperator, Expression, Matching, Unary } from '../expression.ts'

export interface Operand {
  readonly signs: readonly { readonly operator: '+' | '-'; readonly at: number }[]
  expression: Expression
}

export interface OperatorLink {
  readonly operator: BinaryOperator
  readonly range: TextRange
  readonly isBool: boolean
  readonly matching: Matching
}

const PRECEDENCE: Readonly<Record<BinaryOperator, number>> = {
  or: 1,
  and: 2,
  unless: 2,
  '==': 3,
  '!=': 3,
  '>': 3,
  '<': 3,
  '>=': 3,
  '<=': 3,
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
  '%': 5,
  atan2: 5,
  '^': 6,
}
/** A sign binds what binds more tightly than a product: `-2^2` is -4. */
const OF_SIGNS = PRECEDENCE['^']

export class Chain {
  readonly operands: Operand[] = []
  readonly links: OperatorLink[] = []
  /** Called with each expression that is made; throws if that is too much. */
  readonly #made: (expression: Expression) => void
  /** How deep powers and signs may go, which are put together from right to left; `tooDeep` throws. */
  readonly #maxDepth: number
  readonly #tooDeep: () => never
  #depth = 0
  #next = 0

  constructor(made: (expression: Expression) => void, maxDepth: number, tooDeep: () => never) {
    this.#made = made
    this.#maxDepth = maxDepth
    this.#tooDeep = tooDeep
  }

  /** The whole; there is one operand more than links. */
  assembled(): Expression {
    return this.#expression(0)
  }

  #expression(lowest: number): Expression {
    if (++this.#depth > this.#maxDepth) this.#tooDeep()
    const expression = this.#operated(lowest)
    this.#depth--
    return expression
  }

  #operated(lowest: number): Expression {
    let left = this.#signed()
    for (;;) {
      const link = this.links[this.#next]
      const precedence = link === undefined ? -1 : PRECEDENCE[link.operator]
      if (link === undefined || precedence < lowest) return left
      this.#next++
      const right = this.#expression(link.operator === '^' ? precedence : precedence + 1)
      left = this.#binary(link, left, right)
    }
  }

  #signed(): Expression {
    const operand = this.operands[this.#next]
    if (operand === undefined) throw new Error('a chain has an operand before and after each operator')
    if (operand.signs.length === 0) return operand.expression
    // What is signed goes on with the operators that bind more tightly, as if it stood there without its signs.
    this.operands[this.#next] = { signs: [], expression: operand.expression }
    let signed = this.#expression(OF_SIGNS)
    for (const { operator, at } of operand.signs.toReversed()) signed = this.#unary(operator, at, signed)
    return signed
  }

  #binary({ operator, range, isBool, matching }: OperatorLink, left: Expression, right: Expression): Expression {
    const binary: Binary = {
      kind: 'binary',
      operator,
      left,
      right,
      isBool,
      matching,
      operatorRange: range,
      range: { start: left.range.start, end: right.range.end },
    }
    this.#made(binary)
    return binary
  }

  #unary(operator: '+' | '-', at: number, operand: Expression): Expression {
    const range = { start: at, end: operand.range.end }
    if (operand.kind === 'number')
      return { ...operand, value: operator === '-' ? -operand.value : operand.value, range }
    const unary: Unary = { kind: 'unary', operator, operand, range }
    this.#made(unary)
    return unary
  }
}
