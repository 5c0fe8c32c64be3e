import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { quoted, unquoted } from '../../../promql/parse/quoting.ts'

describe('texts in quotes', () => {
  it.each([
    ['"a"', 'a'],
    ["'it''", undefined],
    ["'\\''", "'"],
    ['`a\\n"`', 'a\\n"'],
    ['"\\a\\b\\f\\n\\r\\t\\v\\\\\\""', '\x07\b\f\n\r\t\v\\"'],
    ['"\\x41\\101\\u00e9\\U0001F600"', 'AAé😀'],
    ['"\\xc3\\xa9"', 'é'],
    ['"\\400"', undefined],
    ['"\\ud800"', undefined],
    ['"\\x4"', undefined],
    ['"\\q"', undefined],
    ['"a\nb"', undefined],
    ['"open', undefined],
    ['"', undefined],
    ['', undefined],
  ])('%s', (literal, text) => {
    expect(unquoted(literal)).toBe(text)
  })

  it('that are not UTF-8 are no valid Unicode, and are shown as they were', () => {
    expect(unquoted('"a\\xc5z"')?.isWellFormed()).toBe(false)
    expect(quoted(unquoted('"a\\xc5z"') ?? '')).toBe('"a\\xc5z"')
  })

  it('are the same after they were put in quotes', () => {
    fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => unquoted(quoted(text)) === text))
  })
})
