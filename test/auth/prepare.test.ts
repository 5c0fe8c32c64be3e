import fc from 'fast-check'
import { expect, test } from 'vitest'
import { prepare } from '../../auth/prepare.ts'

// RFC 4013 section 3.
test('the examples of RFC 4013 come out as printed there', () => {
  expect(prepare('I\u00adX')).toBe('IX')
  expect(prepare('user')).toBe('user')
  expect(prepare('USER')).toBe('USER')
  expect(prepare('\u00aa')).toBe('a')
  expect(prepare('\u2168')).toBe('IX')
  expect(prepare('\u0007')).toBeUndefined()
  expect(prepare('\u06271')).toBeUndefined()
})

test('characters younger than RFC 4013 are let through', () => {
  expect(prepare('\u{1f98a} fox')).toBe('\u{1f98a} fox')
})

test('nothing left is nothing', () => {
  expect(prepare('')).toBeUndefined()
  expect(prepare('\u00ad')).toBeUndefined()
})

test('any text gives a text or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const prepared = prepare(text)
      expect(prepared === undefined || prepared.length > 0).toBe(true)
    }),
  )
})
