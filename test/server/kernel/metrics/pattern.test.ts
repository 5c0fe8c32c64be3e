import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StatusError } from '../../../../server/kernel/core/errors.ts'
import { compilePattern, isPattern, mayContinue } from '../../../../server/kernel/metrics/pattern.ts'
import { times } from '../../../support/long.ts'

/** What a star means, said in the slowest and plainest way. */
function matches(pattern: string, text: string): boolean {
  if (pattern === '') return text === ''
  if (pattern[0] !== '*') return pattern[0] === text[0] && text !== '' && matches(pattern.slice(1), text.slice(1))
  for (let at = 0; at <= text.length; at++) if (matches(pattern.slice(1), text.slice(at))) return true
  return false
}

describe('a pattern', () => {
  test.each([
    ['a', 'a', true],
    ['a', 'ab', false],
    ['', '', true],
    ['*', '', true],
    ['*', 'host.load.one', true],
    ['host.*', 'host.load.one', true],
    ['host.*', 'host', false],
    ['*.one', 'host.load.one', true],
    ['host.*.one', 'host.one', false],
    ['host.*.one', 'host..one', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['ab*ba', 'aba', false],
    ['*ab*ab*', 'xabyab', true],
    ['*ab*ab*', 'xab', false],
    ['a*b*c', 'a-c-b-c', true],
    ['a**b', 'ab', true],
    ['.+', 'aa', false],
    ['a.c', 'abc', false],
  ])('%j against %j: %j', (pattern, text, expected) => {
    expect(compilePattern(pattern)(text)).toBe(expected)
  })

  test('matches what the plain definition matches', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 12 })
    const patterns = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 8 })
    fc.assert(
      fc.property(patterns, letters, (pattern, text) => {
        expect(compilePattern(pattern)(text)).toBe(matches(pattern, text))
      }),
      { numRuns: times({ short: 500, long: 2_000 }) },
    )
  })

  test('that would take a backtracking matcher for ever is answered', () => {
    const hostile = compilePattern('*a*a*a*a*a*a*ab')
    expect(hostile(`${'a'.repeat(1_000_000)}`)).toBe(false)
    expect(hostile(`${'a'.repeat(1_000_000)}b`)).toBe(true)
  })

  test('has at most 8 stars', () => {
    expect(compilePattern('*'.repeat(8))('x')).toBe(true)
    expect(() => compilePattern('*'.repeat(9))).toThrow(StatusError)
    expect(() => compilePattern('*'.repeat(9))).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }))
  })

  test('is a text with a star', () => {
    expect(['a*', '*', 'a', ''].map(isPattern)).toEqual([true, true, false, false])
  })
})

test('a pattern may match a family whose names are unknown', () => {
  const part = fc.string({ unit: fc.constantFrom('a', '.', '*'), maxLength: 6 })
  const text = fc.string({ unit: fc.constantFrom('a'), maxLength: 6 })
  fc.assert(
    fc.property(part, text, (pattern, rest) => {
      if (matches(pattern, `a.${rest}`)) expect(mayContinue(pattern, 'a.', /^a*$/)).toBe(true)
    }),
  )
  fc.assert(
    fc.property(part, (pattern) => {
      if (pattern.startsWith('a.') || !mayContinue(pattern, 'a.', /^a*$/)) return
      const texts = Array.from({ length: 7 }, (_, count) => `a.${'a'.repeat(count)}`)
      expect(texts.some((name) => matches(pattern, name))).toBe(true)
    }),
  )
})
