import { describe, expect, it } from 'vitest'
import { at, minutely, notesAt, over } from '../evaluated.ts'

describe('aggregations', () => {
  const source = minutely(
    ['x{job="a", host="1"} 1 2 _', 'x{job="a", host="2"} 3 stale _', 'x{job="b", host="1"} 5 NaN 7', 'k 1 2 1'].join(
      '\n',
    ),
  )

  it.each([
    ['sum(x)', ['{} 9 NaN 9']],
    ['sum by (job) (x)', ['{job="a"} 4 2 2', '{job="b"} 5 NaN 7']],
    ['sum by (job, missing) (x{host="1"})', ['{job="a"} 1 2 2', '{job="b"} 5 NaN 7']],
    ['avg without (host) (x)', ['{job="a"} 2 2 2', '{job="b"} 5 NaN 7']],
    ['count by (job) (x)', ['{job="a"} 2 1 1', '{job="b"} 1 1 1']],
    ['min(x)', ['{} 1 2 2']],
    ['max(x)', ['{} 5 2 7']],
    ['group by (job) (x)', ['{job="a"} 1 1 1', '{job="b"} 1 1 1']],
    ['stdvar(x)', ['{} 2.66667 NaN 6.25']],
    ['stddev(x{job="a"})', ['{} 1 0 0']],
    ['quantile(0.5, x)', ['{} 3 NaN 4.5']],
    ['quantile by (job) (2, x)', ['{job="a"} Infinity Infinity Infinity', '{job="b"} Infinity Infinity Infinity']],
    [
      'count_values("v", x)',
      ['{v="1"} 1 _ _', '{v="2"} _ 1 1', '{v="3"} 1 _ _', '{v="5"} 1 _ _', '{v="7"} _ _ 1', '{v="NaN"} _ 1 _'],
    ],
    [
      'count_values without (host) ("job", x)',
      [
        '{job="1"} 1 _ _',
        '{job="2"} _ 1 1',
        '{job="3"} 1 _ _',
        '{job="5"} 1 _ _',
        '{job="7"} _ _ 1',
        '{job="NaN"} _ 1 _',
      ],
    ],
    ['topk(1, x)', ['{__name__="x", host="1", job="a"} _ 2 _', '{__name__="x", host="1", job="b"} 5 _ 7']],
    [
      'bottomk by (job) (1, x)',
      ['{__name__="x", host="1", job="a"} 1 2 2', '{__name__="x", host="1", job="b"} 5 NaN 7'],
    ],
    ['count(topk(scalar(k), x))', ['{} 1 2 1']],
    ['topk(0, x)', []],
    ['topk(-5, x)', []],
    ['sum(nothing)', []],
  ])('%s', (text, expected) => {
    expect(over(0, 2, text, source)).toEqual(expected)
  })

  it('order what is best first, NaN last, for one time', () => {
    expect(at(1, 'topk(2, x)', source)).toEqual([
      '{__name__="x", host="1", job="a"} 2',
      '{__name__="x", host="1", job="b"} NaN',
    ])
    expect(at(0, 'bottomk(5, x)', source).map((line) => line.at(-1))).toEqual(['1', '3', '5'])
    expect(at(0, 'sort_desc(x)', source).map((line) => line.at(-1))).toEqual(['5', '3', '1'])
    expect(at(1, 'sort_desc(x)', source).map((line) => line.split(' ').at(-1))).toEqual(['2', 'NaN'])
    expect(at(1, 'sort(x)', source).map((line) => line.split(' ').at(-1))).toEqual(['2', 'NaN'])
  })

  it('find the best of many', () => {
    const many = minutely(Array.from({ length: 300 }, (_, i) => `m{i="${i}"} ${(i * 37) % 300}`).join('\n'))
    expect(at(0, 'topk(4, m)', many).map((line) => line.split(' ').at(-1))).toEqual(['299', '298', '297', '296'])
    expect(at(0, 'bottomk(4, m)', many).map((line) => line.split(' ').at(-1))).toEqual(['0', '1', '2', '3'])
    expect(at(0, 'quantile(0.5, m)', many)).toEqual(['{} 149.5'])
  })

  it('lose nothing to rounding, and no mean to an overflow', () => {
    const extreme = minutely(
      'a{i="1"} 1\na{i="2"} 1e100\na{i="3"} 1\na{i="4"} -1e100\nb{i="1"} 1e308\nb{i="2"} 1e308\nc{i="1"} Inf\nc{i="2"} -Inf',
    )
    expect(at(0, 'sum(a)', extreme)).toEqual(['{} 2'])
    expect(at(0, 'avg(a)', extreme)).toEqual(['{} 0.5'])
    expect(at(0, 'avg(b)', extreme)).toEqual(['{} 1e+308'])
    expect(at(0, 'sum(b)', extreme)).toEqual(['{} Infinity'])
    expect(at(0, 'sum(c)', extreme)).toEqual(['{} NaN'])
  })

  it('refuse or remark parameters', () => {
    expect(() => at(0, 'topk(NaN, x)', source)).toThrow('Parameter value is NaN')
    expect(() => at(0, 'topk(1e30, x)', source)).toThrow('overflows int64')
    expect(() => at(0, 'count_values("\\xff", x)', source)).toThrow('invalid label name "\\xff"')
    expect(notesAt(0, 'quantile(1.5, x)', source)).toEqual([
      'PromQL warning: quantile value should be between 0 and 1, got 1.5 (1:10)',
    ])
  })
})

describe('names of metrics', () => {
  const source = minutely('x{a="1"} 1 2 3\ny{a="1"} 10 20 30')

  it('go at the end, so labels can be made of them before', () => {
    expect(at(2, 'rate(x[5m])', source)[0]).toMatch(/^\{a="1"\}/)
    expect(at(2, 'label_replace(rate(x[5m]), "from", "$1", "__name__", "(.*)")', source)[0]).toMatch(
      /^\{a="1", from="x"\}/,
    )
    expect(at(2, 'last_over_time(x[5m])', source)).toEqual(['{__name__="x", a="1"} 3'])
    expect(at(2, 'sum by (__name__) ({a="1"})', source)).toEqual(['{__name__="x"} 3', '{__name__="y"} 30'])
  })

  it('may not make two series one at one time', () => {
    expect(() => at(2, 'abs({a="1"})', source)).toThrow('vector cannot contain metrics with the same labelset')
    expect(over(0, 2, '-(x > 2) or -(y < 15)', source)).toEqual(['{a="1"} -10 _ -3'])
  })

  it('do not come back by a comparison', () => {
    expect(at(2, 'rate(x[5m]) < on(a) y', source)[0]).toMatch(/^\{a="1"\}/)
    expect(at(2, 'rate(x[5m]) < ignoring(b) y', source)[0]).toMatch(/^\{a="1"\}/)
  })
})
