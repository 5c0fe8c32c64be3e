/** Numbers, durations and times of any size and sign, and in any language of the browser. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  formatBytes,
  formatDay,
  formatDuration,
  formatMeasured,
  formatMinute,
  formatMoment,
  formatNumber,
  formatTime,
} from '../../console/units.ts'

describe('numbers', () => {
  it.each([
    [0, '0'],
    [0.03, '0.03'],
    [1801, '1,801'],
    [-48_200, '-48.2 k'],
    [2.5e15, '2.50 P'],
    [3.370_907e21, '3,371 E'],
    [1.7e308, '1.70e+308'],
    [-Number.MAX_VALUE, '-1.80e+308'],
    [5e-324, '5e-324'],
  ])('%d is %s', (number, text) => expect(formatNumber(number)).toBe(text))

  it.each([
    [0, '0 B'],
    [1023, '1,023 B'],
    [2 ** 62, '4.00 EiB'],
    [-(2 ** 70), '-1,024 EiB'],
    [1e300, '1.00e+300 B'],
  ])('%d bytes are %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text))

  it('has a unit that no size makes longer than its place', () => {
    for (const unit of ['', 'B', 'KB', 'B/s', 's', '%', 'ms']) {
      for (const size of [1e-300, 1, 1e21, 1e300, Number.MAX_VALUE]) {
        for (const number of [size, -size]) {
          const text = formatMeasured(number, unit)
          expect(text.length, text).toBeLessThan(16)
        }
      }
    }
  })
})

describe('durations', () => {
  it.each([
    [-3_761_867 / 1000, '-63 min'],
    [-0.25, '-250 ms'],
    [0.24, '240 ms'],
    [2.4, '2.40 s'],
    [14, '14 s'],
    [360, '6 min'],
    [1e12, '11.6 M d'],
  ])('%d s are %s', (seconds, text) => expect(formatDuration(seconds)).toBe(text))
})

describe('times of day', () => {
  afterEach(() => vi.restoreAllMocks())

  it('have two digits each, from 00 to 23, and ask no language', () => {
    const localised = vi.spyOn(Date.prototype, 'toLocaleTimeString')
    const at = new Date(2026, 0, 2, 0, 5, 9).getTime() * 1000
    expect([formatTime(at), formatMinute(at)]).toEqual(['00:05:09', '00:05'])
    expect(formatTime(new Date(2026, 0, 2, 23, 59, 59).getTime() * 1000)).toBe('23:59:59')
    expect(localised).not.toHaveBeenCalled()
  })

  it('have their day, month or year where these are others, in no language', () => {
    const of = (...parts: [number, number, number, number?]) => new Date(...parts).getTime() * 1000
    expect([formatDay(of(2026, 10, 29)), formatDay(of(2026, 10, 29), true)]).toEqual(['29 Nov', 'Nov 2026'])
    const now = of(2026, 10, 29, 14)
    expect(formatMoment(of(2026, 10, 29, 9), now)).toBe('09:00:00')
    expect(formatMoment(of(2026, 0, 2, 9), now)).toBe('2 Jan 09:00:00')
    expect(formatMoment(of(2025, 10, 29, 9), now)).toBe('29 Nov 2025 09:00:00')
  })
})
