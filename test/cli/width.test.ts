import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cellWidth, fitToWidth, joinedToWidth, safeText, wrapped } from '../../cli/width.ts'

describe('cells', () => {
  // Unicode's EastAsianWidth.txt (W and F are two cells), and its Mn and Me, which stand on the cell before them.
  test.each([
    ['', 0],
    ['web1', 4],
    ['é', 1],
    ['e\u0301', 1],
    ['日本語', 6],
    ['한국', 4],
    ['Ｆ', 2],
    ['ｶ', 1],
    ['😀', 2],
    ['🇩🇪', 2],
    ['\u{20000}', 2],
    ['…', 1],
  ])('%j takes %i', (text, width) => {
    expect(cellWidth(text)).toBe(width)
  })

  test('are filled on either side', () => {
    expect(fitToWidth('ab', 4)).toBe('ab  ')
    expect(fitToWidth('ab', 4, 'right')).toBe('  ab')
  })

  test('what is cut ends in an ellipsis, and a wide character is not cut in two', () => {
    expect(fitToWidth('abcdef', 4)).toBe('abc…')
    expect(fitToWidth('日本語', 4)).toBe('日… ')
    expect(fitToWidth('日本語', 4, 'right')).toBe(' 日…')
    expect(fitToWidth('abc', 0)).toBe('')
  })

  test('nothing that was sent can steer the terminal or turn its direction', () => {
    expect(safeText('a\x1b[2Jb\rc\u202ed\u200de\u200ff\u009b1m')).toBe('a\\x1b[2Jb\\x0dc\\u202ede\\u200ff\\x9b1m')
  })

  test('any text takes exactly the width it is fitToWidth to', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(40), (text, width) => {
        const cell = fitToWidth(safeText(text), width)
        expect(cellWidth(cell)).toBe(width)
        expect(cell).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u)
      }),
    )
  })
})

describe('lines', () => {
  test('end between words, or else at a mark in a word, or anywhere', () => {
    expect(wrapped('one two three', 8)).toEqual(['one two', 'three'])
    expect(wrapped('gmetric.a_long.name', 12)).toEqual(['gmetric.a_', 'long.name'])
    expect(wrapped('日本語日本語', 5)).toEqual(['日本', '語日', '本語'])
    expect(wrapped('\x1b[1mone two\x1b[22m', 7)).toEqual(['\x1b[1mone two\x1b[22m'])
    expect(wrapped('', 5)).toEqual([''])
  })

  test('leave out the parts for which there is no room', () => {
    expect(joinedToWidth(['ab', '', 'cd', 'ef'], 7)).toBe('ab   cd')
    expect(joinedToWidth(['abcdef', 'g'], 3)).toBe('abcdef')
  })
})
