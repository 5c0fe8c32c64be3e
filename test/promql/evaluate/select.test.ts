import { describe, expect, it } from 'vitest'
import { LabelSet } from '../../../promql/label-set.ts'
import { finished, MemorySource } from '../../../promql/memory-source.ts'
import { PreparedQuery, QUERY_OPTIONS } from '../../../promql/query.ts'
import { at, minutely, over } from '../evaluated.ts'

describe('selectors', () => {
  const source = minutely('x{a="1"} 0 1 2 3 4 5 6 7 8 9\nx{a="2"} 10 _ _ _ _ _ stale 17\ny{a="1"} NaN 1')

  it('take the latest sample, up to five minutes old; the range is open on the left', () => {
    expect(at(4, 'x{a="2"}', source)).toEqual(['{__name__="x", a="2"} 10'])
    expect(at(5, 'x{a="2"}', source)).toEqual([])
    expect(over(0, 14, 'x', source)).toEqual([
      '{__name__="x", a="1"} 0 1 2 3 4 5 6 7 8 9 9 9 9 9 _',
      '{__name__="x", a="2"} 10 10 10 10 10 _ _ 17 17 17 17 17 _ _ _',
    ])
  })

  it('end at a stale marker, and a NaN is a value', () => {
    expect(at(6, 'x{a="2"}', source)).toEqual([])
    expect(at(0, 'y', source)).toEqual(['{__name__="y", a="1"} NaN'])
  })

  it('look back by the option', () => {
    expect(at(2, 'x{a="2"}', source, { ...QUERY_OPTIONS, lookbackMs: 60_000 })).toEqual([])
  })

  it('match by all matchers, with texts that are missing as empty ones', () => {
    expect(at(1, '{__name__=~"x|y", a="1", b="", c!="z"}', source)).toEqual([
      '{__name__="x", a="1"} 1',
      '{__name__="y", a="1"} 1',
    ])
    expect(at(1, '{"x", a!~"2|3"}', source)).toEqual(['{__name__="x", a="1"} 1'])
  })

  it('look elsewhere with offset and @', () => {
    expect(at(9, 'x{a="1"} offset 3m', source)).toEqual(['{__name__="x", a="1"} 6'])
    expect(at(2, 'x{a="1"} offset -3m', source)).toEqual(['{__name__="x", a="1"} 5'])
    expect(at(2, 'x{a="1"} @ 240 offset 1m', source)).toEqual(['{__name__="x", a="1"} 3'])
    expect(over(1, 3, 'x{a="1"} @ start() + x{a="1"} @ end()', source)).toEqual(['{a="1"} 4 4 4'])
  })

  it('give the samples of a range, without stale markers', () => {
    expect(at(8, 'x{a="2"}[8m1s]', source)).toEqual(['{__name__="x", a="2"} 10@0 17@420'])
    expect(at(3, '(x{a="1"}[2m])', source)).toEqual(['{__name__="x", a="1"} 2@120 3@180'])
    expect(at(9, 'x{a="1"}[2m] offset 5m', source)).toEqual(['{__name__="x", a="1"} 3@180 4@240'])
  })

  it('recognise a stale marker by its bits, in a part of a larger column', () => {
    const values = new Float64Array(new BigUint64Array([0n, 0x7ff0000000000002n, 0x7ff8000000000000n]).buffer)
    const times = Float64Array.of(0, 1000, 2000)
    const columns = { labels: LabelSet.of([['__name__', 'z']]), times: times.subarray(1), values: values.subarray(1) }
    const marked = {
      *select() {
        yield columns
      },
    }
    const query = new PreparedQuery('z[1h]')
    const { data } = finished(query.instant(marked, 60_000))
    expect(data).toMatchObject({ type: 'matrix', series: [{ times: Float64Array.of(2000) }] })
  })
})

describe('subqueries', () => {
  const source = minutely('x{a="1"} 0 1 2 3 4 5 6 7 8 9')

  it('are evaluated at multiples of their step', () => {
    expect(at(7, 'x[3m:90s]', source)).toEqual(['{__name__="x", a="1"} 4@270 6@360'])
    expect(at(7, 'sum_over_time(x[3m:1m] offset 1m)', source)).toEqual(['{a="1"} 15'])
    expect(at(9, 'max_over_time((x * 2)[5m:])', source)).toEqual(['{a="1"} 18'])
    expect(at(1, 'sum_over_time(x[3m:1m] @ 300)', source)).toEqual(['{a="1"} 12'])
    expect(over(3, 5, 'avg_over_time(rate(x[2m])[2m:1m]) * 60', source)).toEqual(['{a="1"} 1 1 1'])
  })

  it('know times before 1970', () => {
    expect(at(0, 'count_over_time(vector(1)[5m:1m])', source)).toEqual(['{} 5'])
  })
})

describe('what a source gives', () => {
  it('is counted', () => {
    const source = minutely('x{a="1"} 0 1 2\nx{a="2"} 0')
    expect(finished(new PreparedQuery('x').instant(source, 120_000))).toMatchObject({ samples: 4, series: 2 })
  })

  it('may be nothing', () => {
    expect(at(0, 'sum(x) + 1', new MemorySource())).toEqual([])
  })
})
