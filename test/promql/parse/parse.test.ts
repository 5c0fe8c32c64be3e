import { describe, expect, it } from 'vitest'
import { PromqlError } from '../../../promql/errors.ts'
import { parseExpression, parseSelector } from '../../../promql/parse/parse.ts'
import { printExpression } from '../../../promql/print.ts'

const printed = (text: string) => printExpression(parseExpression(text))

function problemOf(text: string): string {
  try {
    parseExpression(text)
  } catch (error) {
    if (error instanceof PromqlError && error.type === 'bad_data') return error.message
    throw error
  }
  return 'none'
}

describe('expressions', () => {
  it.each([
    ['up', 'up'],
    ['up{job="a",zone!="",host=~"x|y",path!~"/.*"}', 'up{job="a",zone!="",host=~"x|y",path!~"/.*"}'],
    ['{"host.load.one", "a b"="c"}', '{"host.load.one","a b"="c"}'],
    [`{__name__='x',}`, '{"x"}'],
    ['rate(x_total[5m])', 'rate(x_total[5m])'],
    ['x[1h30m:15s] offset -1w @ end()', 'x[1h30m:15s] @ end() offset -1w'],
    ['x @ 1.5', 'x @ 1.500'],
    ['x offset 90', 'x offset 1m30s'],
    ['SUM BY (a, "b c") (x)', 'sum by (a, "b c") (x)'],
    ['sum(x) WITHOUT (on, bool)', 'sum without (on, bool) (x)'],
    ['topk(3, x)', 'topk(3, x)'],
    ['a == bool on(x) group_left(y) b', 'a == bool on (x) group_left (y) b'],
    ['a * ignoring(x) group_right b', 'a * ignoring (x) group_right () b'],
    ['a and on() b', 'a and on () b'],
    ['2.+2.e3+.5+0X1F+1_000+1h', '2 + 2000 + 0.5 + 31 + 1000 + 3600'],
    ['(((1)))', '(((1)))'],
    ['# before\na + # between\n b # behind', 'a + b'],
    ['label_join(x, "a", `\\`, "b\\n\\"")', 'label_join(x, "a", "\\\\", "b\\n\\"")'],
    ['vector(-Inf)', 'vector(-Inf)'],
    ['start', 'start'],
    ['sum', 'sum'],
  ])('%s', (text, expected) => {
    expect(printed(text)).toBe(expected)
    expect(printed(expected)).toBe(expected)
  })

  it.each([
    // Modifiers belong to what is directly before them.
    ['a + b offset 5m * c', ['+', 'a', ['*', 'b', 'c']]],
    ['a + b @ 5 - c', ['-', ['+', 'a', 'b'], 'c']],
    ['sum(rate(a[5m])) / sum(rate(b[5m]))', ['/', 'sum', 'sum']],
    ['a or b and c unless d', ['or', 'a', ['unless', ['and', 'b', 'c'], 'd']]],
    ['a == b + c * d ^ e', ['==', 'a', ['+', 'b', ['*', 'c', ['^', 'd', 'e']]]]],
    ['a ^ b ^ c', ['^', 'a', ['^', 'b', 'c']]],
    ['a - b - c', ['-', ['-', 'a', 'b'], 'c']],
    ['a atan2 b % c', ['%', ['atan2', 'a', 'b'], 'c']],
    ['-a ^ b', ['neg', ['^', 'a', 'b']]],
    ['-a * b', ['*', ['neg', 'a'], 'b']],
    ['a ^ -b * c', ['*', ['^', 'a', ['neg', 'b']], 'c']],
    ['- - a offset 5m', ['neg', ['neg', 'a']]],
  ])('%s is grouped', (text, expected) => {
    expect(grouped(parseExpression(text))).toEqual(expected)
  })

  it('says where its parts stand in the text', () => {
    const text = 'a +  rate(b_total[5m] offset 1m)'
    const expression = parseExpression(text)
    if (expression.kind !== 'binary' || expression.right.kind !== 'call') throw new Error('not read')
    const [range] = expression.right.args
    expect(text.slice(range?.range.start, range?.range.end)).toBe('b_total[5m] offset 1m')
  })
})

describe('what is wrong', () => {
  it.each([
    ['', '1:1: parse error: no expression found in input'],
    ['# nothing', '1:1: parse error: no expression found in input'],
    ['sum(', '1:5: parse error: unclosed left parenthesis'],
    ['a * on(b) group_left (c(d))', '1:24: parse error: unexpected "(" in grouping opts, expected "," or ")"'],
    ['sum by (a,)(', '1:13: parse error: unclosed left parenthesis'],
    ['sum by (', '1:9: parse error: unclosed left parenthesis'],
    ['sum by (=) (x)', '1:9: parse error: unexpected "=" in grouping opts, expected label'],
    ['1 +', '1:4: parse error: unexpected end of input'],
    ['a\n  b', '2:3: parse error: unexpected identifier "b"'],
    ['a{b=1}', '1:5: parse error: unexpected number "1" in label matching, expected string'],
    ['a{b', '1:4: parse error: unexpected end of input inside braces'],
    ['sum by a (x)', '1:8: parse error: unexpected identifier "a" in grouping opts, expected "("'],
    ['a[5m', '1:5: parse error: unexpected end of input in duration expression'],
    ['a )', '1:3: parse error: unexpected ")"'],
    ['a ==== b', '1:5: parse error: unexpected <op:==>'],
    ['"open', '1:1: parse error: unterminated quoted string'],
    ['"\\q"', '1:1: parse error: error unquoting string "\\"\\\\q\\"": invalid syntax'],
    ['nothing(x)', '1:1: parse error: unknown function with name "nothing"'],
    ['1 + max_of(1, 2)', '1:5: parse error: function "max_of" is not enabled'],
    ['a{b=~"("}', '1:3: parse error: error parsing regexp: missing closing ): `(`'],
    ['a{b=~"x)|(y"}', '1:3: parse error: error parsing regexp: unexpected ): `x)|(y`'],
    ['rate(x)', '1:6: parse error: expected type range vector in call to function "rate", got instant vector'],
    ['rate(x[5m], 1)', '1:1: parse error: expected 1 argument(s) in call to "rate", got 2'],
    ['round()', '1:1: parse error: expected at least 1 argument(s) in call to "round", got 0'],
    ['round(x, 1, 2)', '1:1: parse error: expected at most 2 argument(s) in call to "round", got 3'],
    ['1 == 1', '1:3: parse error: comparisons between scalars must use BOOL modifier'],
    ['a + bool b', '1:3: parse error: bool modifier can only be used on comparison operators'],
    ['a and 1', '1:1: parse error: set operator "and" not allowed in binary scalar expression'],
    ['a and on(x) group_left b', '1:1: parse error: no grouping allowed for "and" operation'],
    ['a + on(x) 1', '1:1: parse error: vector matching only allowed between instant vectors'],
    ['a + on(x) group_left(x) b', '1:3: parse error: label "x" must not occur in ON and GROUP clause at once'],
    ['a + "x"', '1:5: parse error: binary expression must contain only scalar and instant vector types'],
    ['{}', '1:1: parse error: vector selector must contain at least one non-empty matcher'],
    ['{a=~".*"}', '1:1: parse error: vector selector must contain at least one non-empty matcher'],
    ['x{__name__="y"}', '1:1: parse error: metric name must not be set twice: "x" or "y"'],
    ['topk(x)', '1:1: parse error: wrong number of arguments for aggregate expression provided, expected 2, got 1'],
    ['sum()', '1:1: parse error: no arguments for aggregate expression provided'],
    ['topk("a", x)', '1:6: parse error: expected type scalar in aggregation parameter, got string'],
    ['sum(x[5m])', '1:5: parse error: expected type instant vector in aggregation expression, got range vector'],
    ['x offset 5m offset 5m', '1:1: parse error: offset may not be set multiple times'],
    ['x @ 1 @ 2', '1:1: parse error: @ <timestamp> may not be set multiple times'],
    ['x @ Inf', '1:1: parse error: timestamp out of bounds for @ modifier: Infinity'],
    ['(x)[5m]', '1:4: parse error: ranges only allowed for vector selectors'],
    ['x offset 1m [5m]', '1:13: parse error: no offset modifiers allowed before range'],
    ['x[0s]', '1:3: parse error: duration must be greater than 0'],
    [
      '-x[5m]',
      '1:1: parse error: unary expression only allowed on expressions of type scalar or instant vector, got "range vector"',
    ],
    ['1[5m:1m]', '1:1: parse error: subquery is only allowed on instant vector, got scalar instead'],
    ['x offset 300000y', '1:10: parse error: duration out of range'],
  ])('%s', (text, expected) => {
    expect(problemOf(text)).toBe(expected)
  })

  it.each([
    ['histogram_avg(x)', 'native histograms'],
    ['a </ 5', 'native histograms'],
    ['mad_over_time(x[5m])', 'promql-experimental-functions'],
    ['limitk(1, x)', 'promql-experimental-functions'],
    ['x[5m + 1m]', 'promql-duration-expr'],
    ['x offset (5m)', 'promql-duration-expr'],
    ['rate(x[5m] anchored)', 'promql-extended-range-selectors'],
    ['x smoothed', 'promql-extended-range-selectors'],
    ['a + fill(0) b', 'promql-binop-fill-modifiers'],
  ])('%s is not supported, and the error names %s', (text, feature) => {
    expect(() => parseExpression(text)).toThrow(expect.objectContaining({ feature, type: 'bad_data' }))
  })

  it('has bounds, within which it is found quickly', () => {
    expect(problemOf(`x{a="${'y'.repeat(50_000)}"}`)).toMatch(/^the expression has 50007 characters, at most 50000/)
    expect(problemOf(`x{a=~"${'y.'.repeat(6_000)}"}`)).toMatch(
      /regular expressions have 12000 characters together, at most 5000/,
    )
    const deep = /expressions are nested more than 300 deep/
    expect(problemOf('('.repeat(3_000))).toMatch(deep)
    expect(problemOf(`${'('.repeat(600)}x${')'.repeat(600)}`)).toMatch(deep)
    expect(problemOf(`${'-'.repeat(3_000)}x`)).toMatch(deep)
    expect(problemOf(`${'-'.repeat(600)}x`)).toMatch(deep)
    expect(problemOf(`x${'+x'.repeat(3_000)}`)).toMatch(deep)
    expect(problemOf(`x${'^x'.repeat(600)}`)).toMatch(deep)
    expect(problemOf(`${'abs('.repeat(600)}x${')'.repeat(600)}`)).toMatch(deep)
    expect(problemOf(`x${'[5m:1m]'.repeat(600)}`)).toMatch(deep)
    expect(problemOf(`x{${'a="b",'.repeat(8_000)}}[`)).toMatch(/unexpected end of input in duration/)
    expect(problemOf(')'.repeat(50_000))).toBe('1:1: parse error: unexpected ")"')
    expect(problemOf('a '.repeat(25_000))).toBe('1:3: parse error: unexpected identifier "a"')
  })

  it('is nothing where many operators follow each other within the bound', () => {
    expect(problemOf(`x${' + x'.repeat(298)}`)).toBe('none')
    expect(problemOf(`x${' + x'.repeat(300)}`)).toMatch(/nested more than 300 deep/)
  })
})

describe('a selector alone', () => {
  it('is read', () => {
    expect(parseSelector('x{a="b"}').matchers.map(String)).toEqual(['a="b"', '__name__="x"'])
  })

  it.each(['x offset 5m', 'x @ 5', 'sum(x)', 'x[5m]'])('is not %s', (text) => {
    expect(() => parseSelector(text)).toThrow(/expected a selector alone/)
  })
})

/** Operators and what they combine; selectors by their names. */
function grouped(expression: ReturnType<typeof parseExpression>): unknown {
  switch (expression.kind) {
    case 'selector':
      return expression.metric
    case 'aggregation':
      return expression.operator
    case 'unary':
      return ['neg', grouped(expression.operand)]
    case 'binary':
      return [expression.operator, grouped(expression.left), grouped(expression.right)]
    default:
      return expression.kind
  }
}
