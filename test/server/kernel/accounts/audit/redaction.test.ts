import { describe, expect, test } from 'vitest'
import { argsText, cut } from '../../../../../server/kernel/accounts/audit/redaction.ts'

describe('arguments of a record', () => {
  test.each(['password', 'secret', 'hash', 'token', 'data', 'Password'])('named %s are not written down', (name) => {
    expect(argsText({ user: 'ada', [name]: 'canary' })).toBe(JSON.stringify({ user: 'ada', [name]: '***' }))
  })

  test('are looked through on every level, also where a field of a REC names its value', () => {
    const args = {
      list: [{ token: 'canary' }],
      rec: [{ name: 'secret', type: 1, value: 'canary' }],
      deep: { a: { data: 'canary' } },
    }
    const text = argsText(args)
    expect(text).not.toContain('canary')
    expect(JSON.parse(text).rec).toEqual([{ name: 'secret', type: 1, value: '***' }])
  })

  test('of every type are JSON', () => {
    const args = { big: 2n ** 60n, bytes: Uint8Array.of(1, 2), yes: true, number: 1.5, none: undefined }
    expect(JSON.parse(argsText(args))).toEqual({
      big: String(2n ** 60n),
      bytes: 'AQI=',
      yes: true,
      number: 1.5,
      none: null,
    })
    expect(argsText({})).toBe('{}')
  })

  test('that are long are cut and say so', () => {
    const { text } = JSON.parse(argsText({ text: 'x'.repeat(5000) }))
    expect(text).toBe(`${'x'.repeat(1024)}... (3976 more, cut)`)
  })

  test('that are many are left out from where they are too much, and it is still JSON', () => {
    const args = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`a${index}`, 'y'.repeat(200)]))
    const text = argsText(args)
    expect(text.length).toBeLessThan(4300)
    const parsed = JSON.parse(text)
    expect(parsed.a0).toBe('y'.repeat(200))
    expect(parsed['...']).toBe(`${100 - (Object.keys(parsed).length - 1)} more, left out`)
  })

  test('that nest without end, end', () => {
    const round: { self?: unknown } = {}
    round.self = round
    expect(argsText({ round }).length).toBeLessThan(200)
  })
})

test('a text is cut to UTF-8 that can be stored', () => {
  expect(cut('a\ud800b')).toBe('a\ufffdb')
  expect(cut(`${'x'.repeat(9)}😀`, 10)).toBe(`${'x'.repeat(9)}\ufffd... (1 more, cut)`)
  expect(cut('short')).toBe('short')
})
