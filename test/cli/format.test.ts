import { expect, test } from 'vitest'
import {
  formatAge,
  formatBytes,
  formatCount,
  formatDuration,
  formatTime,
  formatValue,
  jsonText,
  printable,
} from '../../cli/format.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import { TIME } from './fake-cli.ts'

test.each<[string, Value]>([
  ['-', { type: BasicType.VOID, value: null }],
  ['-5', { type: BasicType.INT32, value: -5 }],
  ['18446744073709551615', { type: BasicType.UINT64, value: 2n ** 64n - 1n }],
  ['0.1', { type: BasicType.DOUBLE, value: Math.fround(0.1) }],
  ['12345678.25', { type: BasicType.DOUBLE, value: 12345678.25 }],
  ['1e+21', { type: BasicType.DOUBLE, value: 1e21 }],
  ['NaN', { type: BasicType.DOUBLE, value: Number.NaN }],
  ['-Infinity', { type: BasicType.DOUBLE, value: Number.NEGATIVE_INFINITY }],
  ['true', { type: BasicType.BOOLEAN, value: true }],
  ['ä b', { type: BasicType.STRING, value: 'ä b' }],
  ['a\ufffd', { type: BasicType.STRING, value: new Uint8Array([0x61, 0xff]) }],
  ['00ff', { type: BasicType.OPAQUE, value: new Uint8Array([0, 255]) }],
  [
    'a=1 b=x',
    {
      type: BasicType.REC,
      value: [
        { name: 'a', type: BasicType.UINT32, value: 1 },
        { name: 'b', type: BasicType.STRING, value: 'x' },
      ],
    },
  ],
  ['[1, 2]', { type: BasicType.ARRAY, value: { element: BasicType.INT32, items: [1, 2] } }],
])('a value is shown as %s', (text, value) => {
  expect(formatValue(value)).toBe(text)
})

test('what a source sends cannot steer the terminal', () => {
  expect(printable('a\u200bb\ufeffc\u2060d\u200ee\u061c')).toBe('a\\u200bb\\ufeffc\\u2060d\\u200ee\\u061c')
  expect(printable('a\xadb\u3164c\uffa0d\ufff9e')).toBe('a\\xadb\\u3164c\\uffa0d\\ufff9e')
  expect(printable('👩\u200d👧 می\u200cخواهم')).toBe('👩\u200d👧 می\u200cخواهم')
  expect(printable('\x1b[2J\n\x9b1m\u202eabc\u2028')).toBe('\\x1b[2J\\x0a\\x9b1m\\u202eabc\\u2028')
  const hostile: Value = { type: BasicType.REC, value: [{ name: 'a\x1b', type: BasicType.STRING, value: '\x07' }] }
  expect(formatValue(hostile)).toBe('a\\x1b=\\x07')
})

test('times are local, to the millisecond; 0 is none', () => {
  expect(formatTime(TIME)).toBe('2023-11-14 22:13:20.005')
  expect(formatTime(0)).toBe('-')
})

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

test('JSON has nothing that controls a terminal or turns text, and is the same for programs', () => {
  const value = { 'a\u009b': ['\u007f\u061c\u200e\u200f', '\u2028\u202e\u2066', 'ä 😀 \n'] }
  const text = jsonText(value)
  expect(text).not.toMatch(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u)
  expect(text).toContain('\\u009b')
  expect(text).toContain('ä 😀 \\n')
  expect(JSON.parse(text)).toEqual(value)
})
