/**
 * An expression as text, on one line, as Prometheus writes it: what is read again gives the same expression. Whoever sends an
 * expression elsewhere changes the expression, never its text.
 */
import type { Aggregation, AtModifier, Binary, Expression, Selector } from './expression.ts'
import { isPlainLabel, METRIC_NAME_LABEL } from './label-set.ts'
import { durationText, shortNumber } from './parse/numbers.ts'
import { quoted } from './parse/quoting.ts'

export function printExpression(expression: Expression): string {
  switch (expression.kind) {
    case 'number':
      return shortNumber(expression.value)
    case 'text':
      return quoted(expression.text)
    case 'selector':
      return printSelector(expression) + modifiers(expression)
    case 'range':
      return `${printSelector(expression.selector)}[${durationText(expression.rangeMs)}]${modifiers(expression.selector)}`
    case 'subquery': {
      const step = expression.stepMs === undefined ? '' : durationText(expression.stepMs)
      const window = `[${durationText(expression.rangeMs)}:${step}]`
      return printExpression(expression.expression) + window + modifiers(expression)
    }
    case 'call':
      return `${expression.name}(${expression.args.map(printExpression).join(', ')})`
    case 'aggregation':
      return printAggregation(expression)
    case 'binary':
      return printBinary(expression)
    case 'unary':
      return expression.operator + printExpression(expression.operand)
    case 'parentheses':
      return `(${printExpression(expression.inside)})`
  }
}

function printSelector({ metric, matchers }: Selector): string {
  // The name outside of the braces is the last matcher.
  const inside = metric === undefined ? matchers : matchers.slice(0, -1)
  const braces = inside.map((matcher) =>
    matcher.label === METRIC_NAME_LABEL && matcher.operator === '=' ? quoted(matcher.text) : matcher.toString(),
  )
  if (metric === undefined) return `{${braces.join(',')}}`
  return braces.length === 0 ? metric : `${metric}{${braces.join(',')}}`
}

function modifiers({ at, offsetMs }: { readonly at: AtModifier | undefined; readonly offsetMs: number }): string {
  const offset = offsetMs === 0 ? '' : ` offset ${durationText(offsetMs)}`
  if (at === undefined) return offset
  return typeof at === 'string' ? ` @ ${at}()${offset}` : ` @ ${(at.ms / 1000).toFixed(3)}${offset}`
}

function printAggregation({ operator, operand, parameter, labels, isWithout }: Aggregation): string {
  const names = labels.map(labelName).join(', ')
  const grouping = isWithout ? ` without (${names}) ` : labels.length > 0 ? ` by (${names}) ` : ''
  const args = parameter === undefined ? [operand] : [parameter, operand]
  return `${operator}${grouping}(${args.map(printExpression).join(', ')})`
}

function printBinary({ operator, left, right, isBool, matching }: Binary): string {
  const { isOn, labels, cardinality, include } = matching
  const words = [operator as string]
  if (isBool) words.push('bool')
  if (isOn || labels.length > 0) words.push(`${isOn ? 'on' : 'ignoring'} (${labels.map(labelName).join(', ')})`)
  if (cardinality !== 'one-to-one') {
    if (!isOn && labels.length === 0) words.push('ignoring ()')
    const group = cardinality === 'many-to-one' ? 'group_left' : 'group_right'
    words.push(`${group} (${include.map(labelName).join(', ')})`)
  }
  return `${printExpression(left)} ${words.join(' ')} ${printExpression(right)}`
}

function labelName(name: string): string {
  return isPlainLabel(name) ? name : quoted(name)
}
