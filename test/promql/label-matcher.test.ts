import { describe, expect, it } from 'vitest'
import { LabelMatcher, RegexError, RegexMemory } from '../../promql/label-matcher.ts'

const matches = (operator: '=' | '!=' | '=~' | '!~', text: string, value: string) =>
  new LabelMatcher('a', operator, text).matches(value)

describe('matchers', () => {
  it.each([
    ['=', 'b', 'b', true],
    ['=', 'b', '', false],
    ['!=', 'b', '', true],
    ['=~', 'b', 'abc', false],
    ['=~', 'b.d', 'b\nd', true],
    ['=~', '', '', true],
    ['=~', '.+', '', false],
    ['!~', 'b|c', 'c', false],
    ['!~', 'b|c', 'cc', true],
    ['=~', '(?i)ABC', 'abc', true],
    ['=~', 'a|', '', true],
    ['=~', 'a\\.b|c', 'axb', false],
    ['=~', 'a\\|b', 'a|b', true],
    ['=~', 'a\\|b', 'a', false],
    ['=~', '(?:a|b)', 'b', true],
    ['=~', '\\d|x', '5', true],
    ['=~', '\\\\|x', '\\', true],
    ['=~', '(a|b)c', 'bc', true],
    ['=~', '^a$', 'a', true],
  ] as const)('%s %j and %j', (operator, text, value, expected) => {
    expect(matches(operator, text, value)).toBe(expected)
  })

  it.each([
    '(a{1000}){11}',
    'a{1000}'.repeat(11),
    '((a{9}){9}){9}'.repeat(20),
    '(a?){1,1000}'.repeat(6),
    '(((a{99}){99}){99}',
    `(?i)${'[B-\\x{10ffff}]'.repeat(11)}`,
    `(?i)[${'B-\u{10ffff}'.repeat(11)}]`,
    `(?si:${'[^\\x{42}-\\x{1ffff}]'.repeat(11)})`,
    '\\pL'.repeat(160),
    `[${'\\P{Greek}'.repeat(160)}]`,
    `\\Q[\\E${'a{1000}'.repeat(11)}]`,
  ])('%.40s would take long to compile, and is refused', (text) =>
    expect(() => new LabelMatcher('a', '=~', text)).toThrow('more than 10000 characters, with what it repeats'),
  )

  it.each([
    '[{]a{2}',
    '\\{1000}'.repeat(100),
    '[[:alpha:]{1000}]{1000}',
    'a{,1000}'.repeat(20),
    '(?P<n>[0-9]{1,3}\\.){3}',
    `(?i)${'[A-Z0-9_.-]+'.repeat(50)}`,
    `(?i)${'[а-яё]'.repeat(100)}`,
    '[B-\\x{10ffff}]'.repeat(100),
    '(?i)[B-\\x{ffff}]{100}',
    '\\p{Nd}{1,50}',
    '\\Qa{1000}\\E'.repeat(50),
  ])('%.40s is none that would', (text) => expect(matches('=~', text, 'none')).toBe(false))

  it('list plain alternatives, for a source that looks them up', () => {
    const listed = (text: string) => [...(new LabelMatcher('a', '=~', text).alternatives ?? ['none'])]
    expect(listed('a|b|c')).toEqual(['a', 'b', 'c'])
    expect(listed('(10\\.0\\.0\\.1:9100|b)')).toEqual(['10.0.0.1:9100', 'b'])
    expect(listed('a.c|b')).toEqual(['none'])
    expect(listed('(a)|(b)')).toEqual(['none'])
    expect([...(new LabelMatcher('a', '=', 'x.y').alternatives ?? [])]).toEqual(['x.y'])
  })

  it('take no longer than their text, whatever the expression', () => {
    expect(matches('=~', '(a+)+b', 'a'.repeat(10_000))).toBe(false)
  })

  it('that belong together have expressions of at most 5,000 characters, each of which counts once', () => {
    const regexes = new RegexMemory()
    const matcher = (text: string) => new LabelMatcher('a', '=~', text, regexes)
    const long = `${'x'.repeat(2_400)}.`
    for (let times = 0; times < 3; times++) matcher(long)
    matcher(`${long}*`)
    expect(() => matcher(`y${long}`)).toThrow('regular expressions have 7205 characters together, at most 5000')
    // In each of two a repetition counts, and both together are too much.
    const repeating = new RegexMemory()
    for (const text of ['(a{30}){30}', '(b{30}){30}']) new LabelMatcher('a', '=~', text.repeat(5), repeating)
    expect(() => new LabelMatcher('a', '=~', '(c{30}){30}'.repeat(5), repeating)).toThrow(
      'regular expressions have more than 10000 characters together, with what they repeat',
    )
    // A list of texts is none.
    expect(matcher('x|'.repeat(9_000)).matches('x')).toBe(true)
  })

  it('refuse what is no expression of RE2', () => {
    for (const bad of ['(', '*', 'a)|(b', '(?=x)', '\\1']) expect(() => matches('=~', bad, '')).toThrow(RegexError)
  })
})
