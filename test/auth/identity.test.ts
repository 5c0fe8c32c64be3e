import { expect, test } from 'vitest'
import { AuthError } from '../../auth/errors.ts'
import { formatIdentity } from '../../auth/identity.ts'
import { parseIdentity, prepareName } from '../../auth/prepare.ts'

function refusal(text: string): string {
  try {
    parseIdentity(text)
  } catch (error) {
    if (error instanceof AuthError && error.code === 'BAD_IDENTITY') return error.message
    throw error
  }
  return 'accepted'
}

test('a user without a tenant belongs to the tenant default', () => {
  expect(parseIdentity('alice')).toEqual({ tenant: 'default', name: 'alice' })
  expect(parseIdentity('acme/alice')).toEqual({ tenant: 'acme', name: 'alice' })
})

test('the default tenant is left out when an identity is written', () => {
  expect(formatIdentity(parseIdentity('default/alice'))).toBe('alice')
  expect(formatIdentity(parseIdentity('acme/alice'))).toBe('acme/alice')
})

test('names are compared in their prepared form', () => {
  expect(parseIdentity('re\u0301my')).toEqual(parseIdentity('r\u00e9my'))
  expect(parseIdentity('\uff41lice').name).toBe('alice')
  expect(parseIdentity('al\u00adice').name).toBe('alice')
})

test('a refusal says what is wrong', () => {
  expect(refusal('')).toMatch(/user name: it is empty/)
  expect(refusal('/alice')).toMatch(/tenant name: it is empty/)
  expect(refusal('acme/')).toMatch(/user name: it is empty/)
  expect(refusal('a/b/c')).toMatch(/at most one '\/'/)
  expect(refusal('al\nice')).toMatch(/characters that are not allowed in names/)
  expect(refusal('al\u0085ice')).toMatch(/characters that are not allowed in names/)
  expect(refusal('\ud800')).toMatch(/characters that are not allowed in names/)
  expect(refusal('\u00ad')).toMatch(/characters that are not allowed in names/)
  expect(refusal(' alice')).toMatch(/space/)
  expect(refusal('alice\u00a0')).toMatch(/space/)
})

test('a slash that only appears in preparation is refused too', () => {
  expect(refusal('acme\uff0falice')).toMatch(/it contains '\/'/)
  expect(refusal('\u2100')).toMatch(/it contains '\/'/)
})

test('a name has at most 64 characters, however many bytes they take', () => {
  expect(prepareName('user', '\u{1f600}'.repeat(64))).toBe('\u{1f600}'.repeat(64))
  expect(refusal('a'.repeat(65))).toMatch(/longer than 64/)
  expect(refusal(`${'a'.repeat(65)}/alice`)).toMatch(/tenant name.*longer than 64/)
})
