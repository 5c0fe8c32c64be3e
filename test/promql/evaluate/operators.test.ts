import { describe, expect, it } from 'vitest'
import { at, minutely, over } from '../evaluated.ts'

describe('operators between numbers', () => {
  it.each([
    ['1 + 2 * 3', 7],
    ['-2 ^ 2', -4],
    ['2 ^ 3 ^ 2', 512],
    ['7 % 3', 1],
    ['-7 % 3', -1],
    ['1 / 0', Number.POSITIVE_INFINITY],
    ['0 / 0', Number.NaN],
    ['1 ^ NaN', 1],
    ['(-1) ^ Inf', 1],
    ['1 atan2 1', 0.785398],
    ['3 == bool 3', 1],
    ['3 != bool 3', 0],
    ['NaN == bool NaN', 0],
    ['2 >= bool 3', 0],
    ['- - 3', 3],
    ['1h', 3600],
    ['pi() > bool 3', 1],
    ['time()', 120],
  ])('%s', (text, expected) => {
    expect(at(2, text, minutely(''))).toEqual([String(expected)])
  })

  it('have a value at each step', () => {
    expect(over(0, 2, 'time() * 2', minutely(''))).toEqual(['{} 0 120 240'])
  })
})

describe('operators between a vector and a scalar', () => {
  const source = minutely('x{a="1"} 1 2 3\nx{a="2"} 4 5 NaN')

  it.each([
    ['x + 1', ['{a="1"} 2 3 4', '{a="2"} 5 6 NaN']],
    ['10 - x', ['{a="1"} 9 8 7', '{a="2"} 6 5 NaN']],
    ['x > 2', ['{__name__="x", a="1"} _ _ 3', '{__name__="x", a="2"} 4 5 _']],
    ['2 < x', ['{__name__="x", a="1"} _ _ 3', '{__name__="x", a="2"} 4 5 _']],
    ['x > bool 2', ['{a="1"} 0 0 1', '{a="2"} 1 1 0']],
    ['x != x{a="1"}', []],
    ['-x', ['{a="1"} -1 -2 -3', '{a="2"} -4 -5 NaN']],
    ['+x{a="1"}', ['{__name__="x", a="1"} 1 2 3']],
    ['x{a="1"} * scalar(x{a="2"})', ['{a="1"} 4 10 NaN']],
  ])('%s', (text, expected) => {
    expect(over(0, 2, text, source)).toEqual(expected)
  })
})

describe('operators between vectors', () => {
  const source = minutely(
    [
      'errors{method="get", code="500"} 24 24',
      'errors{method="get", code="404"} 30 _',
      'errors{method="put", code="501"} 3 3',
      'requests{method="get"} 600 600',
      'requests{method="del"} 34 34',
      'limit{} 25 25',
      'info{method="get", version="1"} 1 1',
    ].join('\n'),
  )

  it.each([
    ['errors{code="500"} / ignoring(code) requests', ['{method="get"} 0.04 0.04']],
    ['errors{code="500"} / on(method) requests', ['{method="get"} 0.04 0.04']],
    [
      'errors / ignoring(code) group_left requests',
      ['{code="404", method="get"} 0.05 0.05', '{code="500", method="get"} 0.04 0.04'],
    ],
    [
      'requests / on(method) group_right errors',
      ['{code="404", method="get"} 20 20', '{code="500", method="get"} 25 25'],
    ],
    ['errors > on() group_left limit', ['{__name__="errors", code="404", method="get"} 30 30']],
    [
      'errors > bool on() group_left limit',
      ['{code="404", method="get"} 1 1', '{code="500", method="get"} 0 0', '{code="501", method="put"} 0 0'],
    ],
    ['requests * on(method) group_left(version) info', ['{method="get", version="1"} 600 600']],
    ['requests + requests', ['{method="del"} 68 68', '{method="get"} 1200 1200']],
    [
      'errors and on(method) requests',
      ['{__name__="errors", code="404", method="get"} 30 30', '{__name__="errors", code="500", method="get"} 24 24'],
    ],
    ['errors unless on(method) requests', ['{__name__="errors", code="501", method="put"} 3 3']],
    [
      'requests{method="get"} or requests',
      ['{__name__="requests", method="del"} 34 34', '{__name__="requests", method="get"} 600 600'],
    ],
    ['limit or on() requests', ['{__name__="limit"} 25 25']],
    ['requests + nothing', []],
  ])('%s', (text, expected) => {
    expect(over(0, 1, text, source)).toEqual(expected)
  })

  it.each([
    [
      'errors + ignoring(code) requests',
      'multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)',
    ],
    [
      'requests + on() limit',
      'multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)',
    ],
    [
      'limit + on() requests',
      'found duplicate series for the match group {} on the right hand-side of the operation: [{__name__="requests", method="del"}, {__name__="requests", method="get"}];many-to-many matching not allowed: matching labels must be unique on one side',
    ],
    [
      'errors * on(method) group_left(code) requests + on(method) group_left errors',
      'multiple matches for labels: grouping labels must ensure unique matches',
    ],
    ['requests * on() group_right limit * on() group_left requests', 'found duplicate series'],
  ])('%s is ambiguous', (text, message) => {
    expect(() => over(0, 1, text, source)).toThrow(message)
  })

  it('match step by step: series that follow each other are no conflict', () => {
    const changing = minutely('a{x="1"} 1 1 stale\na{x="2"} _ _ 2\nb 10 10 10')
    expect(over(0, 2, 'b + ignoring(x) a', changing)).toEqual(['{} 11 11 12'])
    expect(over(0, 2, 'a + ignoring(x) b', changing)).toEqual(['{} 11 11 12'])
    expect(over(0, 2, 'a + on() group_left b', changing)).toEqual(['{x="1"} 11 11 _', '{x="2"} _ _ 12'])
    expect(over(0, 2, 'a > 1 or b', changing)).toEqual(['{__name__="a", x="2"} _ _ 2', '{__name__="b"} 10 10 10'])
    expect(over(0, 2, 'b > 10 or b', changing)).toEqual(['{__name__="b"} 10 10 10'])
    expect(over(0, 2, '(a and on() (b > 20)) + 1', changing)).toEqual([])
  })
})
