/** Expressions as the URL has them, the steps of a range, and what is drawn and written of an answer. */
import { describe, expect, it } from 'vitest'
import {
  type AskedExpression,
  chartedSeries,
  expressionArgs,
  expressionsOf,
  gridOf,
  MAX_QUERIES,
  seriesText,
  stepOf,
} from '../../console/expressions.ts'

describe('a URL', () => {
  const throughUrl = (all: readonly AskedExpression[]) =>
    expressionsOf(new URLSearchParams(String(new URLSearchParams(expressionArgs(all)))))

  it('has expressions in their order, each with how it is shown', () => {
    const all: AskedExpression[] = [
      { expr: 'rate(a{b="&=?#%"}[5m])\n+ 1', show: 'chart' },
      { expr: '', show: 'table' },
      { expr: 'up', show: 'table' },
    ]
    expect(throughUrl(all)).toEqual(all)
  })

  it('that has none begins with an empty table', () => {
    expect(throughUrl([])).toEqual([{ expr: '', show: 'table' }])
    expect(expressionArgs([{ expr: '', show: 'table' }])).toEqual([])
    expect(throughUrl([{ expr: '', show: 'chart' }])).toEqual([{ expr: '', show: 'chart' }])
  })

  it('has a bound, and what it says otherwise is a table', () => {
    const many = Array.from({ length: 20 }, () => ['expr', 'up'])
    expect(expressionsOf(new URLSearchParams(many))).toHaveLength(MAX_QUERIES)
    expect(expressionsOf(new URLSearchParams('expr=up&show=cake'))).toEqual([{ expr: 'up', show: 'table' }])
  })
})

describe('a range', () => {
  it('has steps of a round length, about as many as a chart has room for', () => {
    expect([60, 300, 3_600, 86_400, 30 * 86_400, 2 * 365 * 86_400].map(stepOf)).toEqual([
      1, 2, 15, 600, 14_400, 604_800,
    ])
  })

  it('keeps the times of its steps while it moves on, and ends now if it is live', () => {
    const one = gridOf({ from: 1_000, to: 4_600, isLive: false })
    expect(one).toEqual({ since: 990e6, until: 4_600e6, step: 15e6 })
    expect(gridOf({ from: 1_004, to: 4_604, isLive: true })).toEqual({ since: 990e6, step: 15e6 })
  })
})

describe('a series', () => {
  it('is written as Prometheus writes it', () => {
    expect(seriesText({ name: 'up', labels: { job: 'a"b', z: '1' } })).toBe('up{job="a\\"b", z="1"}')
    expect(seriesText({ name: '', labels: { job: 'a' } })).toBe('{job="a"}')
    expect(seriesText({ name: 'up', labels: {} })).toBe('up')
    expect(seriesText({ name: 'a.b', labels: { 'c d': 'e' } })).toBe('{"a.b", "c d"="e"}')
  })

  it('is drawn with all its values', () => {
    const { metric, labels, samples } = chartedSeries({
      name: 'up',
      labels: { job: 'a' },
      times: [1e6, 2e6, 3e6],
      values: [1, Number.NaN, 3],
    })
    expect([metric, labels]).toEqual(['up', { job: 'a' }])
    expect([0, 1, 2].map((at) => [samples.timeAt(at), samples.valueAt(at)])).toEqual([
      [1, 1],
      [2, Number.NaN],
      [3, 3],
    ])
  })
})
