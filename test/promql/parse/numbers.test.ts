import { describe, expect, it } from 'vitest'
import {
  boundedDurationMs,
  durationMs,
  durationText,
  floatOf,
  literalNumber,
  plainNumber,
  shortNumber,
  twoDigits,
} from '../../../promql/parse/numbers.ts'

describe('durations', () => {
  it.each([
    ['1ms', 1],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['1y2w3d4h5m6s7ms', 31_536_000_000 + 1_209_600_000 + 259_200_000 + 14_400_000 + 300_000 + 6_000 + 7],
  ])('%s', (text, ms) => {
    expect(durationMs(text)).toBe(ms)
    expect(durationMs(durationText(ms))).toBe(ms)
  })

  it.each(['', '5', '5m1h', 'm', '1.5h', '-5m'])('%s is none', (text) => {
    expect(durationMs(text)).toBeUndefined()
  })

  it('are printed as Prometheus does: years and weeks where nothing is left over', () => {
    expect([0, 90_000, 86_400_000, 90_000_000, -604_800_000, 7_776_000_000].map(durationText)).toEqual([
      '0s',
      '1m30s',
      '1d',
      '1d1h',
      '-1w',
      '90d',
    ])
  })
})

describe('bounded durations', () => {
  it.each([
    ['0', 0],
    ['1m30s', 90_000],
    ['292y', 292 * 31_536_000_000],
    ['293y', undefined],
    ['999999999999y', undefined],
    ['', undefined],
    ['5', undefined],
  ])('%s', (text, ms) => {
    expect(boundedDurationMs(text)).toBe(ms)
  })
})

describe('numbers', () => {
  it.each([
    ['1', 1],
    ['.5', 0.5],
    ['1e-3', 0.001],
    ['0x1F', 31],
    ['017', 15],
    ['1_000', 1000],
    ['Inf', Number.POSITIVE_INFINITY],
    ['5m', 300],
  ])('%s in an expression', (text, value) => {
    expect(literalNumber(text)).toBe(value)
  })

  it('of labels are those of Go', () => {
    expect(['0.5', '+Inf', '-inf', '1e3', '', 'x', '1 '].map(floatOf)).toEqual([
      0.5,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      1000,
      undefined,
      undefined,
      undefined,
    ])
    expect(floatOf('NaN')).toBeNaN()
  })
})

describe('numbers as Go prints them', () => {
  it.each([
    [0.1, '0.1', '0.1', '0.1'],
    [1e21, '1000000000000000000000', '1e+21', '1e+21'],
    [123456, '123456', '123456', '1.2e+05'],
    [1.5e-7, '0.00000015', '1.5e-07', '1.5e-07'],
    [-2.26, '-2.26', '-2.26', '-2.3'],
    [-0, '-0', '-0', '-0'],
    [Number.NaN, 'NaN', 'NaN', 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Inf', '-Inf', '-Inf'],
    [Number.POSITIVE_INFINITY, '+Inf', '+Inf', '+Inf'],
    [5e-324, `0.${'0'.repeat(323)}5`, '5e-324', '4.9e-324'],
  ])('%s', (value, plain, short, two) => {
    expect(plainNumber(value)).toBe(plain)
    expect(shortNumber(value)).toBe(short)
    expect(twoDigits(value)).toBe(two)
  })
})
