import { expect, test } from 'vitest'
import { formatAge, formatBytes, formatCount, formatDuration } from '../../../cli/output/quantity.ts'

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.00 KiB'],
  [10_234, '9.99 KiB'],
  [10_240, '10.0 KiB'],
  [1_023_500, '0.98 MiB'],
  [1_048_576, '1.00 MiB'],
  [2 ** 40 * 1.5, '1.50 TiB'],
  [2 ** 64, '16.0 EiB'],
  [2 ** 74, '16384 EiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test.each([
  [0, '0'],
  [99_999, '99999'],
  [100_000, '100k'],
  [999_499, '999k'],
  [999_500, '1.00M'],
  [1_234_567, '1.23M'],
  [12_345_678_901, '12.3G'],
])('%d is %s', (count, text) => {
  expect(formatCount(count)).toBe(text)
})

test.each([
  [-5, '0 ms', '0 ms'],
  [999, '999 ms', '999 ms'],
  [999.7, '999 ms', '999 ms'],
  [1_000, '1 s', '1 s'],
  [59_999, '59 s', '59 s'],
  [60_000, '1 min', '1 min'],
  [3_600_000, '1 h', '1 h'],
  [7_500_000, '2 h 5 min', '2 h'],
  [86_400_000, '1 d', '1 d'],
  [97_200_000, '1 d 3 h', '1 d'],
])('%d ms are %s', (ms, duration, age) => {
  expect({ duration: formatDuration(ms), age: formatAge(ms) }).toEqual({ duration, age })
})
