/** Operators between numbers, and between a series and a scalar. */
import { type Binary, type BinaryOperator, isComparison } from '../expression.ts'
import type { StepSeries } from './grid.ts'

/** The result of an operator; a comparison gives 1 or 0. */
export function operated(operator: BinaryOperator, left: number, right: number): number {
  switch (operator) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      return left * right
    case '/':
      return left / right
    case '%':
      return left % right
    case '^':
      return power(left, right)
    case 'atan2':
      return Math.atan2(left, right)
    case '==':
      return Number(left === right)
    case '!=':
      return Number(left !== right)
    case '>':
      return Number(left > right)
    case '<':
      return Number(left < right)
    case '>=':
      return Number(left >= right)
    case '<=':
      return Number(left <= right)
    default:
      return Number.NaN
  }
}

/** IEEE's: 1 to any power is 1, where JavaScript has NaN for what is no finite number. */
function power(base: number, exponent: number): number {
  if (base === 1) return 1
  if (base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY) return 1
  return base ** exponent
}

/** Applies an operator with a scalar to a series. A comparison without `bool` leaves the values for which it is true. */
export function operateWithScalar(
  { operator, isBool }: Binary,
  series: StepSeries,
  scalars: Float64Array,
  isScalarLeft: boolean,
): void {
  const { values, present } = series
  const isFilter = isComparison(operator) && !isBool
  for (let step = 0; step < present.length; step++) {
    if (present[step] !== 1) continue
    const value = values[step] ?? 0
    const scalar = scalars[step] ?? 0
    const result = isScalarLeft ? operated(operator, scalar, value) : operated(operator, value, scalar)
    if (!isFilter) values[step] = result
    else if (result === 0) present[step] = 0
  }
  if (!isFilter) series.dropsName = true
}

export function operateOnScalars(operator: BinaryOperator, left: Float64Array, right: Float64Array): Float64Array {
  return left.map((value, step) => operated(operator, value, right[step] ?? 0))
}

export function negate(series: StepSeries): void {
  const { values } = series
  for (let step = 0; step < values.length; step++) values[step] = -(values[step] ?? 0)
  series.dropsName = true
}
