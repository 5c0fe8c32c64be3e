/** The bounds, names and order of open labels [MON 9 Labels]. */
import { describe, expect, test } from 'vitest'
import { openFields } from '../../../../server/kernel/metrics/instance.ts'
import {
  AllLabelsBut,
  fromForeign,
  labelsFrom,
  labelText,
  openLabelsProblem,
  toForeign,
} from '../../../../server/kernel/metrics/labels.ts'
import { Random } from '../../../support/random.ts'

describe('names of foreign labels', () => {
  const reserved = ['name', 'value', 'time', 'more', 'interval_ms', 'deadline_ms', 'producer', 'node', 'on_behalf_of']

  test.each(reserved)('%s is kept as exported_%s', (name) => {
    expect(fromForeign(name)).toBe(`exported_${name}`)
    expect(toForeign(`exported_${name}`)).toBe(name)
  })

  test.each(['job', 'host', 'exported_', 'exported_job', 'names', 'Name', '', '__proto__'])('%s stays', (name) => {
    expect(fromForeign(name)).toBe(name)
    expect(toForeign(name)).toBe(name)
  })

  test('that come in and go out again are what they were, and no two become one', () => {
    const parts = ['exported_', 'name', 'value', 'x', 'time']
    const random = new Random(1)
    const names = new Set<string>()
    for (let count = 0; count < 2_000; count++) {
      let name = ''
      for (let length = 1 + random.below(4); length > 0; length--) name += random.pick(parts)
      names.add(name)
    }
    const kept = [...names].map(fromForeign)
    expect(new Set(kept).size).toBe(names.size)
    expect(kept.map(toForeign)).toEqual([...names])
  })
})

describe('the bounds', () => {
  const many = (count: number): [string, string][] => Array.from({ length: count }, (_, index) => [`l${index}`, 'x'])

  test('64 labels, besides the name', () => {
    expect(openLabelsProblem('a', labelsFrom([...many(64), ['name', 'a']]))).toBeUndefined()
    expect(openLabelsProblem('a', labelsFrom(many(65)))).toBe('more than 64 labels')
  })

  test('255 bytes of a name, 1,024 of a text, in UTF-8', () => {
    expect(openLabelsProblem('a', labelsFrom([['é'.repeat(127), '']]))).toBeUndefined()
    expect(openLabelsProblem('a', labelsFrom([['é'.repeat(128), '']]))).toBe(
      'a label has a name of more than 255 bytes',
    )
    expect(openLabelsProblem('a', labelsFrom([['l', '€'.repeat(341)]]))).toBeUndefined()
    expect(openLabelsProblem('a', labelsFrom([['l', '€'.repeat(342)]]))).toBe('label l: more than 1024 bytes')
  })

  test('4 KiB of names and texts together', () => {
    const texts = (last: number): [string, string][] => [
      ['a', 'x'.repeat(1024)],
      ['b', 'x'.repeat(1024)],
      ['c', 'x'.repeat(1024)],
      ['d', 'x'.repeat(last)],
    ]
    expect(openLabelsProblem('n'.repeat(200), labelsFrom(texts(820)))).toBeUndefined()
    expect(openLabelsProblem('n'.repeat(200), labelsFrom(texts(821)))).toBe('name and labels of more than 4096 bytes')
  })

  test('any text is taken, if it is Unicode; a name has no control characters and is not empty', () => {
    expect(openLabelsProblem('a', labelsFrom([['l', '\0\n"\u202e<img>']]))).toBeUndefined()
    expect(openLabelsProblem('a', labelsFrom([['l', '\ud800']]))).toBe('label l: its text is not Unicode')
    expect(openLabelsProblem('a', labelsFrom([['', 'x']]))).toBe('a label has an empty name')
    expect(openLabelsProblem('a', labelsFrom([['a\nb', 'x']]))).toBe('a label has a name with a control character')
  })
})

describe('labels called as what every object has', () => {
  test('are absent unless they were given', () => {
    expect(labelText({ name: 'a' }, 'constructor')).toBeUndefined()
    expect(labelText(labelsFrom([['name', 'a']]), '__proto__')).toBeUndefined()
  })

  test('are kept, and sent in their places', () => {
    const labels = labelsFrom([
      ['toString', 't'],
      ['__proto__', 'p'],
      ['name', 'a'],
      ['10', 'ten'],
      ['host', 'h'],
      ['9', 'nine'],
    ])
    const shown = (open: AllLabelsBut) => openFields(labels, open).map(({ name, value }) => `${name}=${value}`)
    expect(shown(new AllLabelsBut())).toEqual(['name=a', 'host=h', '10=ten', '9=nine', '__proto__=p', 'toString=t'])
    expect(shown(new AllLabelsBut(['name', '9']))).toEqual(['host=h', '10=ten', '__proto__=p', 'toString=t'])
  })
})
