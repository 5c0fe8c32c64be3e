import { describe, expect, test } from 'vitest'
import { ConnectionError, isTransient, StatusError } from '../../client/errors.ts'

describe('a StatusError', () => {
  test("has the producer's own words, or ours if there are none", () => {
    expect(new StatusError('SUBSCRIBE', 8, 'no id 7')).toMatchObject({
      name: 'StatusError',
      command: 'SUBSCRIBE',
      status: 'NO_SUCH_ID',
      detail: 'no id 7',
      message: 'SUBSCRIBE was refused: no id 7 (NO_SUCH_ID)',
    })
    expect(new StatusError('STOP', 8, '').message).toBe('STOP was refused (NO_SUCH_ID)')
  })

  test('keeps the number of a status of a later version', () => {
    expect(new StatusError('STOP', 74565, '')).toMatchObject({
      status: 74565,
      message: 'STOP was refused (74565)',
    })
  })
})

describe('connecting again may help', () => {
  test.each(['UNREACHABLE', 'TIMEOUT', 'SILENT', 'CLOSED'] as const)('after %s', (code) => {
    expect(isTransient(new ConnectionError(code, ''))).toBe(true)
  })

  test.each([
    'BAD_URL',
    'NO_METHOD',
    'LOGIN_FAILED',
    'SERVER_NOT_PROVEN',
    'PROTOCOL',
    'SUPERSEDED',
    'WITHDRAWN',
    'CHANNEL_GONE',
  ] as const)('not after %s', (code) => {
    expect(isTransient(new ConnectionError(code, ''))).toBe(false)
  })

  test('after a refusal that the producer may lift later, also at the login', () => {
    const [busy, denied] = [new StatusError('AUTH', 13, ''), new StatusError('AUTH', 2, '')]
    expect([busy, denied].map(isTransient)).toEqual([true, false])
    const login = [busy, denied].map((cause) => new ConnectionError('LOGIN_FAILED', '', { cause }))
    expect(login.map(isTransient)).toEqual([true, false])
  })

  test('not after an error of the program', () => {
    expect(isTransient(new TypeError('x'))).toBe(false)
  })
})
