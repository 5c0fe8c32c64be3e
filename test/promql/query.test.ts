import { describe, expect, it } from 'vitest'
import { finished } from '../../promql/memory-source.ts'
import { PreparedQuery, QUERY_OPTIONS, type QueryOptions } from '../../promql/query.ts'
import { at, minutely, over } from './evaluated.ts'

const source = minutely(Array.from({ length: 20 }, (_, i) => `x{i="${i}"} 0+1x100`).join('\n'))
const limited = (limits: Partial<QueryOptions['limits']>): QueryOptions => ({
  ...QUERY_OPTIONS,
  limits: { ...QUERY_OPTIONS.limits, ...limits },
})

describe('queries', () => {
  it('give texts and numbers at one time', () => {
    expect(at(0, '("a\\tb")', source)).toEqual(['a\tb'])
    expect(finished(new PreparedQuery('1 + 1').instant(source, 5)).data).toEqual({
      type: 'scalar',
      timeMs: 5,
      value: 2,
    })
  })

  it.each([
    ['x < 0.1', 'x', 0.1],
    ['x >= bool 3', 'x', 3],
    ['(sum(x) >= (1e3))', 'sum(x)', 1_000],
    ['0.5 > x / y', 'x / y', 0.5],
    ['x < y', undefined, undefined],
    ['x + 1', undefined, undefined],
    ['x < 1 and y > 2', undefined, undefined],
  ])('the threshold of %s', (text, expr, value) => {
    expect(new PreparedQuery(text).threshold()).toEqual(expr === undefined ? undefined : { expr, value })
  })

  it('over a range give vectors and scalars alone, within their bounds', () => {
    const range = (text: string, from: number, to: number, stepMs: number) => () =>
      finished(new PreparedQuery(text).range(source, from, to, stepMs))
    expect(range('x[5m]', 0, 1, 1)).toThrow('invalid expression type "range vector" for range query')
    expect(range('"x"', 0, 1, 1)).toThrow('invalid expression type "string" for range query')
    expect(range('x', 0, 1, 0)).toThrow('zero or negative query resolution step widths are not accepted')
    expect(range('x', 1, 0, 1)).toThrow('end timestamp must not be before start time')
    expect(range('x', 0, 11_000, 1)).toThrow('exceeded maximum resolution of 11000 points per timeseries')
    expect(range('x', Number.NaN, 1, 1)).toThrow('a time is no number of milliseconds')
    expect(() => at(Number.POSITIVE_INFINITY, 'x', source)).toThrow('a time is no number of milliseconds')
  })

  it('end where a limit is', () => {
    expect(() => at(50, 'x', source, limited({ maxSeries: 19 }))).toThrow(
      'query processing would need more than 19 series',
    )
    expect(() => at(50, 'count_over_time(x[50m])', source, limited({ maxSamples: 999 }))).toThrow(
      'query processing would load too many samples into memory in query execution',
    )
    expect(at(50, 'count(count_over_time(x[50m]))', source, limited({ maxSamples: 1000 }))).toEqual(['{} 20'])
    expect(() => over(0, 50, 'x', source, limited({ maxPoints: 1000 }))).toThrow('more than 1000 points')
    expect(() => over(0, 50, 'x', source, limited({ maxBytes: 10_000 }))).toThrow('more than 10000 bytes')
    expect(over(0, 1, 'sum(x)', source, limited({ maxBytes: 3_000 }))).toEqual(['{} 0 20'])
    expect(() => over(0, 50, 'count(topk(20, x))', source, limited({ maxBytes: 10_000 }))).toThrow('more than 10000')
    expect(over(0, 50, 'count(topk(2, x))', source, limited({ maxBytes: 10_000 }))[0]).toMatch(/^{} 2 2 /)
    expect(() => at(50, 'sum_over_time(vector(1)[1y:1ms])', source)).toThrow('more than 200000000 points')
  })

  it('count marks, times where there are gaps, and samples', () => {
    const most = (maxBytes: number) => limited({ maxBytes })
    expect(() => over(0, 50, 'count(x and x)', source, most(2_500))).toThrow('more than 2500 bytes')
    expect(over(0, 2, 'count(x and x)', source, most(2_500))).toEqual(['{} 20 20 20'])
    expect(() => over(0, 50, 'x > 0', source, most(20_000))).toThrow('more than 20000 bytes')
    expect(over(0, 50, 'x >= 0', source, most(20_000))).toHaveLength(20)
    expect(() => at(50, 'x[50m]', source, most(20_000))).toThrow('more than 20000 bytes')
    expect(at(50, 'x[20m]', source, most(20_000))).toHaveLength(20)
  })

  it('make no label that is too long, and look for none in too many ways', () => {
    const eightfold = (text: string): string => `label_replace(${text}, "a", "${'$1'.repeat(8)}", "a", "(.*)")`
    const eight = eightfold('label_replace(vector(1), "a", "x", "", "")')
    const long = eightfold(eightfold(eightfold(eight)))
    expect(at(0, long, source)).toEqual([`{a="${'x'.repeat(8 ** 4)}"} 1`])
    expect(() => at(0, eightfold(long), source)).toThrow('a label would have 32768 characters, at most 10000')
    const joined = `label_join(${long}, "b", "", "a", "a", "a")`
    expect(() => at(0, joined, source)).toThrow('a label would have 12288 characters, at most 10000')
    const regex = (characters: number) => `label_replace(${long}, "b", "", "a", "${'(.*)'.repeat(characters / 4)}")`
    expect(() => at(0, regex(1_000), source)).toThrow(/would match an expression of \d+ parts with a text of 4096/)
    expect(() => at(0, regex(1_004), source)).toThrow('invalid regular expression in label_replace()')
    expect(() => at(0, long, source, limited({ maxBytes: 15_000 }))).toThrow('more than 15000 bytes')
    const regexes = Array.from({ length: 6 }, (_, i) => `x{i=~"${i}${'y'.repeat(999)}.*"}`).join(' + ')
    expect(() => new PreparedQuery(regexes)).toThrow(
      /parse error: regular expressions have \d+ characters together, at most 5000 are allowed/,
    )
  })

  it.each([
    ['count(x)', 0],
    ['count(x and x)', 0],
    ['count(x or x)', 0],
    ['count(x unless x{i="1"})', 0],
    ['count(x * x)', 0],
    ['count(topk(2, x))', 0],
    ['count(count_values("v", x))', 0],
    ['quantile(0.5, x)', 0],
    ['max_over_time(sum(x)[5m:1m])', 0],
    // Texts that were made stay with what comes of them.
    ['count(label_replace(x, "a", "b", "", ""))', 20],
    ['count(histogram_quantile(0.5, label_replace(x, "le", "$1", "i", "(.*)")))', 30],
  ])('hold in the end what they answer with: %s', (text, characters) => {
    let held = 0
    const onHeld = (bytes: number): void => {
      held += bytes
    }
    expect(over(0, 50, text, source, { ...QUERY_OPTIONS, onHeld })).toHaveLength(1)
    expect(held).toBe(51 * 8 + 500 + 4 * characters)
  })

  it('that are comparisons say where they hold, where they do not, and by silence where there is nothing', () => {
    const source = minutely('a{i="1"} 1x9\na{i="2"} 3x9\na{i="3"} 3x9\nb{i="1",j="x"} 2x9\nb{i="2",j="y"} 2x9')
    const unfiltered = (text: string): string[] => at(1, new PreparedQuery(text).unfiltered()?.text ?? '', source)
    expect(unfiltered('(a > 2)')).toEqual(['{i="1"} 0', '{i="2"} 1', '{i="3"} 1'])
    expect(unfiltered('2 < a')).toEqual(['{i="1"} 0', '{i="2"} 1', '{i="3"} 1'])
    expect(unfiltered('a > on(i) group_left(j) b')).toEqual(['{i="1", j="x"} 0', '{i="2", j="y"} 1'])
    expect(unfiltered('missing > 2')).toEqual([])
    for (const text of ['a', 'a > bool 2', 'a > 2 and b', '-(a > 2)', '1 > bool 2'])
      expect(new PreparedQuery(text).unfiltered()).toBeUndefined()
  })

  it('stop for a moment often, and at any of these places for good', () => {
    const steps = new PreparedQuery('sum by (i) (rate(x[30m])) / on(i) quantile by (i) (0.5, x)').range(
      source,
      0,
      6_000_000,
      1000,
    )
    let count = 0
    while (steps.next().done !== true) count++
    expect(count).toBeGreaterThan(20)
    const ended = new PreparedQuery('x').instant(source, 0)
    ended.next()
    expect(ended.return(undefined as never)).toMatchObject({ done: true })
    expect(ended.next()).toEqual({ done: true, value: undefined })
  })

  it.each(['clamp(x, 1, 3)', 'round(x, 5)', 'minute(x)', 'ln(x)'])('count what a call costs: %s', (text) => {
    const count = 200
    const many = minutely(Array.from({ length: count }, (_, i) => `x{i="${i}"} ${i}`).join('\n'))
    const stepsOf = (counted: string): number => {
      const steps = new PreparedQuery(`sum(${counted})`).range(many, 0, 300_000, 300)
      // The source stops after each series.
      let further = -count
      while (steps.next().done !== true) further++
      return further
    }
    expect(stepsOf(text)).toBeGreaterThan(2 * stepsOf('x'))
  })

  it('are evaluated as deep as they may be written', () => {
    expect(at(1, `sum(${'x{i="0"} + '.repeat(290)}1)`, source)).toEqual(['{} 291'])
    expect(at(1, `${'abs('.repeat(290)}vector(-1)${')'.repeat(290)}`, source)).toEqual(['{} 1'])
  })

  it('say what they are, on one line', () => {
    expect(new PreparedQuery('sum(\n  x\n)').printed).toBe('sum(x)')
  })
})
