import { expect, test } from 'vitest'
import { NameIndex } from '../../../server/metrics/name-index.ts'

test('what names a metric is found by that name alone, a pattern by every name, until it is taken away', () => {
  const things = new NameIndex<string>()
  things.add('a', 'one')
  things.add('a', 'one')
  things.add('b', 'two')
  things.add(undefined, 'three')
  const found = () => ['a', 'b', 'c'].map((name) => [...things.of(name)].join(' '))
  expect(found()).toEqual(['one three', 'two three', 'three'])
  things.delete('a', 'one')
  things.delete('a', 'one')
  things.delete(undefined, 'three')
  expect(found()).toEqual(['', 'two', ''])
})
