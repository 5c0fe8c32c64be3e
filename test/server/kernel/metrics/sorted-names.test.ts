import { expect, test } from 'vitest'
import { SortedNames } from '../../../../server/kernel/metrics/sorted-names.ts'
import { times } from '../../../support/long.ts'
import { Random } from '../../../support/random.ts'

const map = (...names: string[]): SortedNames<string> => {
  const sorted = new SortedNames<string>()
  for (const name of names) sorted.set(name, `${name}!`)
  return sorted
}

test('names are kept once, in ascending order', () => {
  const names = map('b', 'c', 'a', 'b')
  expect([...names.values()]).toEqual(['a!', 'b!', 'c!'])
  expect([names.get('b'), names.get('x'), names.size]).toEqual(['b!', undefined, 3])
  expect([names.delete('b'), names.delete('b')]).toEqual([true, false])
  expect([...names.values()]).toEqual(['a!', 'c!'])
})

test('a prefix, and a name to begin after, narrow the walk', () => {
  const names = map('a', 'a.b', 'a.c', 'ab', 'b')
  expect([...names.values('a.')]).toEqual(['a.b!', 'a.c!'])
  expect([...names.values('a')]).toEqual(['a!', 'a.b!', 'a.c!', 'ab!'])
  expect([...names.values('a', 'a')]).toEqual(['a.b!', 'a.c!', 'ab!'])
  expect([...names.values('', 'a.c')]).toEqual(['ab!', 'b!'])
  expect([...names.values('a.', 'b')]).toEqual([])
  expect([...names.values('a.', 'a')]).toEqual(['a.b!', 'a.c!'])
  expect([...names.values('c')]).toEqual([])
})

test('a walk goes on after the name it gave last, whatever comes and goes meanwhile', () => {
  const names = map('a', 'b', 'd', 'e')
  const walk = names.values()
  expect([walk.next().value, walk.next().value]).toEqual(['a!', 'b!'])
  names.delete('b')
  names.delete('d')
  names.set('c', 'c!')
  names.set('aa', 'aa!')
  expect([...walk]).toEqual(['c!', 'e!'])
})

test('any sequence gives what a sorted list would', () => {
  const random = new Random(5)
  const names = new SortedNames<string>()
  const model = new Set<string>()
  const count = times({ short: 6_000, long: 60_000 })
  for (let step = 0; step < count; step++) {
    const name = `n${random.below(3_000).toString(7)}`
    if (random.below(3) === 0) expect(names.delete(name)).toBe(model.delete(name))
    else names.set(name, name)
    if (names.get(name) !== undefined) model.add(name)
    if (step % 500 !== 0) continue
    const [prefix, after] = [`n${random.below(10)}`, `n${random.below(3_000).toString(7)}`]
    const sorted = [...model].sort()
    expect([...names.values()]).toEqual(sorted)
    expect([...names.values(prefix, after)]).toEqual(sorted.filter((one) => one.startsWith(prefix) && one > after))
  }
  expect(names.size).toBe(model.size)
})
