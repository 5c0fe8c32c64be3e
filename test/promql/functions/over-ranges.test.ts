import { describe, expect, it } from 'vitest'
import { at, minutely, notesAt, over } from '../evaluated.ts'

describe('functions over ranges', () => {
  const source = minutely(
    [
      'x_total 0 60 120 30 90 150',
      'gauge 4 2 NaN 8 stale 6',
      'flat 7 7 7 7 7 7',
      'big 1e100 1 -1e100 1 1 1',
      'huge 1e308 1e308 1e308 1e308',
    ].join('\n'),
  )

  it.each([
    // Between the samples of 1 and 5 minutes, with what the counter had when it began again: 90 + 120.
    ['increase(x_total[5m])', 5, '{} 262.5'],
    ['rate(x_total[5m]) * 300', 5, '{} 262.5'],
    ['rate(x_total[1m])', 5, ''],
    ['delta(gauge[3m30s])', 1, '{} -3'],
    ['irate(x_total[5m])', 3, '{} 0.5'],
    ['idelta(x_total[5m])', 3, '{} -90'],
    ['deriv(x_total[2m30s])', 2, '{} 1'],
    ['predict_linear(x_total[2m30s], 120)', 2, '{} 240'],
    ['deriv(flat[5m])', 5, '{} 0'],
    ['changes(gauge[6m])', 5, '{} 4'],
    ['resets(x_total[6m])', 5, '{} 1'],
    ['sum_over_time(x_total[3m])', 5, '{} 270'],
    ['sum_over_time(big[3m])', 2, '{} 1'],
    ['avg_over_time(x_total[3m])', 5, '{} 90'],
    ['avg_over_time(huge[5m])', 3, '{} 1e+308'],
    ['sum_over_time(huge[5m])', 3, '{} Infinity'],
    ['min_over_time(gauge[6m])', 5, '{} 2'],
    ['max_over_time(gauge[6m])', 5, '{} 8'],
    ['count_over_time(gauge[6m])', 5, '{} 5'],
    ['first_over_time(x_total[2m])', 5, '{__name__="x_total"} 90'],
    ['last_over_time(gauge[6m])', 4, '{__name__="gauge"} 8'],
    ['present_over_time(gauge[6m])', 5, '{} 1'],
    ['stdvar_over_time(x_total[3m])', 5, '{} 2400'],
    ['stddev_over_time(flat[6m])', 5, '{} 0'],
    ['quantile_over_time(0.5, x_total[3m])', 5, '{} 90'],
    ['absent_over_time(x_total[3m])', 5, ''],
    ['absent_over_time(none{a="1", b=~"x"}[3m])', 5, '{a="1"} 1'],
  ])('%s', (text, minute, expected) => {
    expect(at(minute, text, source).join()).toBe(expected)
  })

  it('extrapolate a counter to zero at most, and to the end of the range where it is near', () => {
    const young = minutely('c_total _ _ _ _ 10 20 30')
    // From 4 to 6 minutes it grows by 20. The range begins at 1 minute, which is too far: half a minute before the first
    // sample; zero is farther away than that.
    expect(at(6, 'increase(c_total[5m])', young)).toEqual(['{} 25'])
    const fresh = minutely('c_total _ _ _ _ 1 11 21')
    expect(at(6, 'increase(c_total[5m])', fresh)).toEqual(['{} 21'])
    const full = minutely('c_total 0 10 20 30 40 50 60')
    expect(at(6, 'increase(c_total[4m])', full)).toEqual(['{} 40'])
    expect(at(6, 'delta(c_total[4m])', full)).toEqual(['{} 40'])
  })

  it('move on from step to step', () => {
    expect(over(1, 5, 'increase(x_total[2m])', source)).toEqual(['{} 60 120 60 90 120'])
    expect(over(0, 5, 'absent_over_time(gauge[1m])', source)).toEqual(['{} _ _ _ _ 1 _'])
    expect(over(0, 5, 'count_over_time(gauge[2m])', source)).toEqual(['{} 1 2 2 2 1 1'])
  })

  it('find the extremes of windows that move on, as of each window by itself', () => {
    const numbers = Array.from({ length: 60 }, (_, i) => (i % 11 === 3 ? 'NaN' : i % 13 === 5 ? '_' : (i * 29) % 17))
    const random = minutely(`r ${numbers.join(' ')}\nn NaN NaN NaN`)
    for (const minutes of [1, 3, 10]) {
      for (const name of ['max', 'min']) {
        const [, moving = ''] =
          /^\{\} (.*)$/.exec(over(0, 59, `${name}_over_time(r[${minutes}m])`, random).join()) ?? []
        const single = Array.from(
          { length: 60 },
          (_, at_) => at(at_, `${name}_over_time(r[${minutes}m])`, random)[0]?.slice(3) ?? '_',
        )
        expect(moving.split(' ')).toEqual(single)
      }
    }
    expect(at(2, 'max_over_time(n[5m])', random)).toEqual(['{} NaN'])
  })

  it('go over the same samples at each step with an @', () => {
    expect(over(0, 2, 'sum_over_time(x_total[3m] @ 120)', source)).toEqual(['{} 180 180 180'])
    expect(over(0, 2, 'quantile_over_time(scalar(flat) / 7, x_total[3m] @ 120)', source)).toEqual(['{} 120 120 120'])
    expect(over(2, 4, 'predict_linear(x_total[2m30s] @ 120, 0)', source)).toEqual(['{} 120 180 240'])
  })

  it('remark what looks wrong', () => {
    expect(notesAt(5, 'rate(flat[5m])', source)).toEqual([
      'PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "flat" (1:6)',
    ])
    expect(notesAt(5, 'rate(x_total[5m])', source)).toEqual([])
    const names = minutely(Array.from({ length: 120 }, (_, i) => `n${i}{job="a",i="${i}"} 1 2`).join('\n'))
    const infos = notesAt(1, 'rate({job="a"}[5m])', names)
    expect(infos).toHaveLength(101)
    expect(infos.at(-1)).toBe('20 more info annotations omitted')
    expect(notesAt(5, 'quantile_over_time(-1, flat[5m])', source)).toEqual([
      'PromQL warning: quantile value should be between 0 and 1, got -1 (1:20)',
    ])
  })
})
