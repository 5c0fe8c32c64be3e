import { describe, expect, it } from 'vitest'
import { at, minutely, notesAt, over } from '../evaluated.ts'

describe('functions of numbers', () => {
  it.each([
    ['abs', -2.5, 2.5],
    ['ceil', 1.2, 2],
    ['floor', -1.2, -2],
    ['exp', 0, 1],
    ['ln', 0, Number.NEGATIVE_INFINITY],
    ['log2', 8, 3],
    ['log10', -1, Number.NaN],
    ['sqrt', 9, 3],
    ['sgn', -7, -1],
    ['sgn', 0, 0],
    ['deg', Math.PI, 180],
    ['rad', 90, 1.5708],
    ['sin', 0, 0],
    ['cosh', 0, 1],
    ['acosh', 0, Number.NaN],
    ['round', -2.5, -2],
    ['round', 2.5, 3],
    ['hour', 3_600 * 30, 6],
    ['minute', 3_600 + 59, 0],
    ['day_of_week', 0, 4],
    ['day_of_month', 86_400 * 31, 1],
    ['day_of_year', 86_400 * 31, 32],
    ['days_in_month', 86_400 * 31, 28],
    ['month', 86_400 * 31, 2],
    ['year', -1, 1969],
  ])('%s(%s)', (name, value, expected) => {
    expect(at(0, `${name}(vector(${value}))`, minutely(''))).toEqual([`{} ${expected}`])
  })

  it.each([
    ['clamp(vector(5), 1, 3)', '{} 3'],
    ['clamp(vector(5), 3, 1)', ''],
    ['clamp_min(vector(1), 3)', '{} 3'],
    ['clamp_max(vector(5), NaN)', '{} NaN'],
    ['clamp_max(vector(-Inf), NaN)', '{} -Infinity'],
    ['clamp_min(vector(Inf), NaN)', '{} Infinity'],
    ['clamp(vector(5), Inf, NaN)', '{} Infinity'],
    ['clamp(vector(5), NaN, 3)', '{} NaN'],
    ['round(vector(7.7), 0.5)', '{} 7.5'],
    ['vector(scalar(vector(5)))', '{} 5'],
    ['vector(scalar(nothing))', '{} NaN'],
    ['hour()', '{} 2'],
    ['year() + month() + day_of_month()', '{} 1972'],
    ['timestamp(vector(1))', '{} 7500'],
  ])('%s', (text, expected) => {
    expect(at(125, text, minutely('')).join()).toBe(expected)
  })

  it('know the times of samples', () => {
    const source = minutely('x 1 _ 3')
    expect(over(0, 3, 'timestamp(x)', source)).toEqual(['{} 0 0 120 120'])
    expect(over(0, 1, 'timestamp((x @ 60))', source)).toEqual(['{} 0 0'])
    expect(over(0, 1, 'timestamp(x * 2)', source)).toEqual(['{} 0 60'])
  })
})

describe('absent', () => {
  it('has the labels that are asked for', () => {
    const source = minutely('x{a="1"} 1 1')
    expect(at(0, 'absent(x)', source)).toEqual([])
    expect(at(0, 'absent(y{a="1", b!="2", c="3", c="4"})', source)).toEqual(['{a="1"} 1'])
    expect(at(0, 'absent(sum(y))', source)).toEqual(['{} 1'])
    expect(over(0, 7, 'absent(x)', source)).toEqual(['{} _ _ _ _ _ _ 1 1'])
  })
})

describe('functions of labels', () => {
  const source = minutely('x{a="host-1:80", b="2"} 1\nx{a="other", b="3"} 2')

  it('replace by an expression that matches as a whole', () => {
    expect(at(0, `label_replace(x, "host", "\${1}-$2$$", "a", "(.*):(.*)")`, source)).toEqual([
      '{__name__="x", a="host-1:80", b="2", host="host-1-80$"} 1',
      '{__name__="x", a="other", b="3"} 2',
    ])
    expect(at(0, 'label_replace(x, "h", "$host_x", "a", "(?P<host>.*):.*")', source)[0]).not.toContain('h=')
    expect(at(0, `label_replace(x, "h", "\${host}", "a", "(?P<host>.*):.*")`, source)[0]).toContain('h="host-1"')
    expect(at(0, 'label_replace(x, "b", "", "b", ".*")', source)[0]).toBe('{__name__="x", a="host-1:80"} 1')
  })

  it('join', () => {
    expect(at(0, 'label_join(x, "c", "-", "b", "none", "a")', source)[0]).toContain('c="2--host-1:80"')
    expect(at(0, 'label_join(x, "b", "")', source)[0]).toBe('{__name__="x", a="host-1:80"} 1')
  })

  it('may not make series equal, nor names that are none', () => {
    expect(() => at(0, 'label_join(label_replace(x, "a", "", "", ""), "b", "")', source)).toThrow('same labelset')
    expect(() => at(0, 'label_replace(x, "", "", "", "")', source)).toThrow(
      'invalid destination label name in label_replace()',
    )
    expect(() => at(0, 'label_join(x, "c", "", "")', source)).toThrow('invalid source label name in label_join()')
    expect(() => at(0, 'label_replace(x, "c", "", "a", "(")', source)).toThrow(
      'invalid regular expression in label_replace(): (',
    )
  })
})

describe('classic histograms', () => {
  const source = minutely(
    [
      'h_bucket{le="1"} 10 10',
      'h_bucket{le="2"} 20 _',
      'h_bucket{le="4"} 30 5',
      'h_bucket{le="+Inf"} 40 12',
      'h_bucket{le="low"} 1 1',
      'n_bucket{le="-1"} 5',
      'n_bucket{le="+Inf"} 5',
      'open_bucket{le="1"} 5',
    ].join('\n'),
  )

  it.each([
    ['histogram_quantile(0.25, h_bucket)', '{} 1'],
    ['histogram_quantile(0.125, h_bucket)', '{} 0.5'],
    ['histogram_quantile(0.625, h_bucket)', '{} 3'],
    ['histogram_quantile(0.99, h_bucket)', '{} 4'],
    ['histogram_quantile(NaN, h_bucket)', '{} NaN'],
    ['histogram_quantile(-1, h_bucket)', '{} -Infinity'],
    ['histogram_quantile(2, h_bucket)', '{} Infinity'],
    ['histogram_quantile(0.5, n_bucket)', '{} -1'],
    ['histogram_quantile(0.5, open_bucket)', '{} NaN'],
    ['histogram_fraction(0, 1, h_bucket)', '{} 0.25'],
    ['histogram_fraction(1.5, 3, h_bucket)', '{} 0.25'],
    ['histogram_fraction(2, 1, h_bucket)', '{} 0'],
    ['histogram_fraction(-Inf, +Inf, h_bucket)', '{} 1'],
  ])('%s', (text, expected) => {
    expect(at(0, text, source).join()).toBe(expected)
  })

  it('remark what is wrong with them', () => {
    expect(notesAt(1, 'histogram_quantile(0.5, h_bucket{le!="2"})', source)).toEqual([
      'PromQL warning: bucket label "le" is missing or has a malformed value of "low" for metric name "h_bucket" (1:25)',
      'PromQL info: input to histogram_quantile needed to be fixed for monotonicity (see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile) for metric name "h_bucket", from buckets 4 to 4, with a max diff of 5, over 1 samples from 1970-01-01T00:01:00Z to 1970-01-01T00:01:00Z (1:25)',
    ])
  })
})
