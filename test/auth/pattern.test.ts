import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matcher, overlaps } from '../../auth/pattern.ts'

const piece = fc.array(fc.constantFrom('a', 'b', '.', '*'), { maxLength: 8 }).map((letters) => letters.join(''))
const text = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 8 }).map((letters) => letters.join(''))

describe('two patterns', () => {
  it.each([
    ['host.*', 'host.load', true],
    ['host.*', '*.load', true],
    ['host.*', 'smon.*', false],
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['a*b', '*c*', true],
    ['a*b', 'a*c', false],
    ['ab', 'a*b*b', false],
    ['web1', 'web1', true],
    ['web1', 'web2', false],
  ])('%s and %s overlap: %s', (a, b, expected) => {
    expect(overlaps(a, b)).toBe(expected)
    expect(overlaps(b, a)).toBe(expected)
  })

  it('overlap wherever there is a text that both match', () => {
    fc.assert(
      fc.property(piece, piece, text, (a, b, common) => {
        if (matcher(a)(common) && matcher(b)(common)) expect(overlaps(a, b)).toBe(true)
      }),
      { numRuns: 5000 },
    )
  })

  it('overlap only where there is such a text', () => {
    const texts = [''].concat(...grown(['a', 'b', '.'], 5))
    fc.assert(
      fc.property(piece, text, (pattern, exact) => {
        expect(overlaps(pattern, exact)).toBe(matcher(pattern)(exact))
      }),
    )
    const short = fc.array(fc.constantFrom('a', 'b', '*'), { maxLength: 3 }).map((letters) => letters.join(''))
    fc.assert(
      fc.property(short, short, (a, b) => {
        const found = texts.some((one) => matcher(a)(one) && matcher(b)(one))
        expect(overlaps(a, b)).toBe(found)
      }),
    )
  })
})

describe('the pieces of a pattern', () => {
  it.each([
    ['*ab*b', 'ab', false],
    ['*ab*b', 'abb', true],
    ['a*b*b', 'ab', false],
    ['a*b*b', 'abb', true],
    ['a*a', 'a', false],
    ['*aba*aba*', 'ababa', false],
  ])('%s stand in %s one after the other, none in the place of another: %s', (pattern, text, expected) => {
    expect(matcher(pattern)(text)).toBe(expected)
  })
})

describe('a star in the text', () => {
  it('is matched by a star of the pattern alone', () => {
    expect(matcher('host.*')('host.*')).toBe(true)
    expect(matcher('host.load')('host.*')).toBe(false)
    expect(matcher('host.*')('*')).toBe(false)
  })
})

/** All texts of 1 to `most` letters. */
function grown(letters: readonly string[], most: number): string[][] {
  const sizes: string[][] = [[...letters]]
  while (sizes.length < most) {
    sizes.push((sizes.at(-1) ?? []).flatMap((start) => letters.map((letter) => start + letter)))
  }
  return sizes
}
