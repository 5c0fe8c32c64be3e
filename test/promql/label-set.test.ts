import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareLabelSets, LabelSet } from '../../promql/label-set.ts'

const set = (...labels: [string, string][]) => LabelSet.of(labels)

describe('sets of labels', () => {
  it('have no order, no empty texts and one text for each name', () => {
    expect(set(['b', '2'], ['a', '1'], ['c', '']).toString()).toBe('{a="1", b="2"}')
    expect(set(['a', '1'], ['a', '2']).get('a')).toBe('2')
    expect(set(['a', '1']).get('b')).toBe('')
    expect(set(['a', '']).size).toBe(0)
  })

  it('lose and gain labels, and stay as they are', () => {
    const labels = set(['__name__', 'x'], ['__unit__', 's'], ['a', '1'])
    expect(labels.withoutMetadata().toString()).toBe('{a="1"}')
    expect(labels.keep(new Set(['a', 'z'])).toString()).toBe('{a="1"}')
    expect(
      labels
        .without(new Set(['a']))
        .with([
          ['b', '2'],
          ['__unit__', ''],
        ])
        .toString(),
    ).toBe('{__name__="x", b="2"}')
    expect(labels.size).toBe(3)
  })

  it('have keys that only equal sets share, and that are in their order', () => {
    const text = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '"', '\xff', '[', '\\') })
    const sets = fc.array(fc.tuple(text, text)).map((labels) => LabelSet.of(labels))
    fc.assert(
      fc.property(sets, sets, (left, right) => {
        const isSame = JSON.stringify([...left]) === JSON.stringify([...right])
        expect(left.key === right.key).toBe(isSame)
        expect(Math.sign(compareLabelSets(left, right))).toBe(-Math.sign(compareLabelSets(right, left)) + 0)
        expect(compareLabelSets(left, right) === 0).toBe(isSame)
      }),
    )
    expect(compareLabelSets(set(['a', '1']), set(['ab', '1']))).toBeLessThan(0)
    expect(compareLabelSets(set(['a', '1']), set(['a', '1'], ['b', '1']))).toBeLessThan(0)
  })

  it('show names that need quotes in quotes', () => {
    expect(set(['a b', 'x"y']).toString()).toBe('{"a b"="x\\"y"}')
  })
})
