import { afterEach, expect, test, vi } from 'vitest'
import { deriveKeys, equalBytes, verifierOf } from '../../../auth/scram/keys.ts'
import { RFC_7677 } from './vector.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex')

// Computed with Python's hashlib.pbkdf2_hmac and hmac from the password and salt of RFC 7677.
test('the keys of the RFC 7677 password are derived', async () => {
  const keys = await deriveKeys(RFC_7677.password, RFC_7677.salt, RFC_7677.iterations)
  const { storedKey, serverKey, iterations, salt } = await verifierOf(keys)
  expect(hex(keys.clientKey)).toBe('a60fc923d67e8644a92d16b96eda5ef4656b0c725c484374be25535576996e8b')
  expect(hex(storedKey)).toBe('586e5df283e6dceb5c3e791d8b8528ec191e664045ce971792e2e6b5bb13e2a6')
  expect(hex(serverKey)).toBe('c1f3cbc1c13a9d35a14c0990eed97629ea225863e566a4314ab99f3f00e5d9d5')
  expect(iterations).toBe(4096)
  expect(hex(salt)).toBe(hex(RFC_7677.salt))
})

test('passwords that look alike give the same keys', async () => {
  const composed = await deriveKeys('caf\u00e9', RFC_7677.salt, 4096)
  const decomposed = await deriveKeys('cafe\u0301', RFC_7677.salt, 4096)
  expect(hex(decomposed.clientKey)).toBe(hex(composed.clientKey))
})

test('a password that has no prepared form, and too few iterations, are refused', async () => {
  await expect(deriveKeys('', RFC_7677.salt, 4096)).rejects.toMatchObject({ code: 'BAD_PASSWORD' })
  await expect(deriveKeys('a\u0007', RFC_7677.salt, 4096)).rejects.toMatchObject({ code: 'BAD_PASSWORD' })
  await expect(deriveKeys('pencil', RFC_7677.salt, 4095)).rejects.toThrow(RangeError)
})

test('a browser page without WebCrypto is told what to do', async () => {
  vi.stubGlobal('crypto', { getRandomValues: () => undefined })
  await expect(deriveKeys('pencil', RFC_7677.salt, 4096)).rejects.toMatchObject({ code: 'NO_CRYPTO' })
})

test('bytes are equal only in all places and in length', () => {
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 2))).toBe(true)
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 3))).toBe(false)
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(0, 2))).toBe(false)
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1))).toBe(false)
  expect(equalBytes(Uint8Array.of(1), Uint8Array.of(1, 2))).toBe(false)
})
