import { expect, test } from 'vitest'
import { compareLabels } from '../../../protocol/monitor/labels.ts'

test('labels with a place of their own come first, and others by the bytes of their names', () => {
  const names = [
    'zone',
    'object',
    'value_',
    'host',
    'Zone',
    'name',
    '\u{1f600}',
    '\uffee',
    'é',
    'producer',
    'node',
    '9',
    '_',
  ]
  expect(names.sort(compareLabels)).toEqual([
    'name',
    'producer',
    'node',
    'host',
    'object',
    // By their first bytes: 39, 5a, 5f, 76, 7a, c3, ef, f0.
    '9',
    'Zone',
    '_',
    'value_',
    'zone',
    'é',
    '\uffee',
    '\u{1f600}',
  ])
})

test('a name that another one begins with comes first', () => {
  expect(['ab', 'a', 'abc'].sort(compareLabels)).toEqual(['a', 'ab', 'abc'])
})

test('the order is that of the bytes for all names', () => {
  const units = ['a', 'b', '\x7f', '\x80', '߿', 'ࠀ', '퟿', '', '￿', '\u{10000}', '\u{10ffff}']
  const names = units.flatMap((one) => units.map((other) => one + other))
  for (const one of names) {
    for (const other of names) {
      const bytes = Buffer.compare(Buffer.from(one), Buffer.from(other))
      expect(Math.sign(compareLabels(one, other)), JSON.stringify([one, other])).toBe(bytes)
    }
  }
})
