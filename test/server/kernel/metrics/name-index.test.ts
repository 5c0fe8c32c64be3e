import { beforeEach, expect, test } from 'vitest'
import { NameIndex } from '../../../../server/kernel/metrics/name-index.ts'
import { abroad, tester } from './fixture.ts'

let things: NameIndex<string>
beforeEach(() => {
  things = new NameIndex<string>()
})
const home = { tenant: 'default' }
const admin = { ...abroad, role: 'admin' }
const found = (name: string, owner: Parameters<typeof things.of>[1] = home) => [...things.of(name, owner)].join(' ')

test('what names a metric is found by that name alone, a pattern by what it may match, until it is taken away', () => {
  things.add('a.b', tester, 'one')
  things.add('a.b', tester, 'one')
  things.add('b', tester, 'two')
  things.add('*', tester, 'three')
  things.add('a.*c', tester, 'four')
  things.add('a.x*', tester, 'five')
  const all = () => ['a.b', 'b', 'c', 'a.', 'a.xy'].map((name) => found(name))
  expect(all()).toEqual(['one three four', 'two three', 'three', 'three four', 'three four five'])
  things.delete('a.b', 'one')
  things.delete('a.b', 'one')
  things.delete('*', 'three')
  things.delete('a.*c', 'four')
  expect(all()).toEqual(['', 'two', '', '', 'five'])
})

test('those of one tenant are not asked about what another owns; an admin is, and all are about the producer', () => {
  things.add('*', tester, 'mine')
  things.add('*', abroad, 'theirs')
  things.add('*', admin, 'everything')
  expect(found('a')).toBe('everything mine')
  expect(found('a', { tenant: 'other' })).toBe('everything theirs')
  expect(found('a', { tenant: 'third' })).toBe('everything')
  expect(found('a', 'producer')).toBe('everything mine theirs')
})

test('a reader who becomes an admin, or is none any more, is asked accordingly', () => {
  things.add('a*', abroad, 'theirs')
  expect(found('ab')).toBe('')
  things.add('a*', admin, 'theirs')
  expect([found('ab'), found('ab', { tenant: 'other' })]).toEqual(['theirs', 'theirs'])
  things.add('a*', abroad, 'theirs')
  expect([found('ab'), found('ab', { tenant: 'other' })]).toEqual(['', 'theirs'])
  things.delete('a*', 'theirs')
  expect(found('ab', 'producer')).toBe('')
})

test('things may come and go while it is read', () => {
  for (const thing of ['one', 'two', 'three']) things.add('a*', tester, thing)
  const read = things.of('ab', home)
  expect(read.next().value).toBe('one')
  things.delete('a*', 'two')
  things.add('*', tester, 'four')
  expect([...read]).toContain('three')
})
