import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, exportPKCS8, exportSPKI, generateKeyPair } from 'jose'
import { expect, test } from 'vitest'
import { AuthError } from '../../../auth/errors.ts'
import { JwtKeys } from '../../../auth/token/jwt-keys.ts'

const make = (algorithm: string) => generateKeyPair(algorithm, { extractable: true })
const [rsa, p256, p384, ed] = await Promise.all(['RS256', 'ES256', 'ES384', 'EdDSA'].map(make))
const rsaJwk = await exportJWK(rsa!.publicKey)
const ecJwk = await exportJWK(p256!.publicKey)
const edJwk = await exportJWK(ed!.publicKey)

const jwks = (...keys: object[]): string => JSON.stringify({ keys })

function read(text: string): JwtKeys {
  const keys = new JwtKeys()
  keys.reload(text)
  return keys
}

function refusal(text: string): string {
  try {
    read(text)
  } catch (error) {
    if (error instanceof AuthError && error.code === 'BAD_KEYS') return error.message
    throw error
  }
  return 'accepted'
}

test('keys are found by their kid, for the algorithms of their type alone', () => {
  const keys = read(jwks({ ...rsaJwk, kid: 'r' }, { ...ecJwk, kid: 'e' }, { ...edJwk, kid: 'd' }))
  const fits = (kid: string): string[] =>
    ['RS256', 'RS512', 'PS256', 'ES256', 'ES384', 'EdDSA', 'HS256', 'none', ''].filter((alg) => keys.find(alg, kid))
  expect(fits('r')).toEqual(['RS256', 'RS512', 'PS256'])
  expect(fits('e')).toEqual(['ES256'])
  expect(fits('d')).toEqual(['EdDSA'])
  expect(fits('x')).toEqual([])
})

test('a key that names its algorithm is good for no other', () => {
  const keys = read(jwks({ ...rsaJwk, kid: 'r', alg: 'PS384' }))
  expect(keys.find('PS384', 'r')).toBeDefined()
  expect(keys.find('RS256', 'r')).toBeUndefined()
  expect(refusal(jwks({ ...rsaJwk, alg: 'ES256' }))).toMatch(/key 1: its `alg` does not match its type/)
  expect(refusal(jwks({ ...rsaJwk, alg: 'HS256' }))).toMatch(/`alg` does not match/)
})

test('without a kid a token gets the only key that fits, and none where two do', async () => {
  const one = read(jwks(rsaJwk, ecJwk))
  expect(one.find('ES256', undefined)?.id).toBe(await calculateJwkThumbprint(ecJwk))
  const other = await exportJWK((await make('ES256')).publicKey)
  const two = read(jwks(ecJwk, other))
  expect(two.find('ES256', undefined)).toBeUndefined()
})

test('a key is known by its thumbprint, which is no kid', async () => {
  for (const jwk of [rsaJwk, ecJwk, edJwk]) {
    const thumbprint = await calculateJwkThumbprint(jwk)
    const keys = read(jwks(jwk))
    expect(keys.has(thumbprint)).toBe(true)
    expect(read(jwks({ ...jwk, kid: 'k' })).has(thumbprint)).toBe(true)
    expect(keys.find('RS256', thumbprint) ?? keys.find('ES256', thumbprint)).toBeUndefined()
  }
})

test('a PEM file is one public key or certificate', async () => {
  const pem = await exportSPKI(p384!.publicKey)
  expect(read(pem).find('ES384', undefined)?.id).toBe(await calculateJwkThumbprint(await exportJWK(p384!.publicKey)))
  expect(refusal(pem + pem)).toMatch(/one public key or certificate; several keys need a JWKS file/)
  expect(refusal(pem.replace(/\n.+\n/, '\nAAAA\n'))).toMatch(/cannot be read as a public key/)
})

test.each(['brainpoolP256r1', 'secp224r1', 'secp256k1'])('a PEM key of the curve %s is refused', (namedCurve) => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve })
  expect(refusal(publicKey.export({ type: 'spki', format: 'pem' }) as string)).toMatch(/its type is none of RSA, P-256/)
})

test('secrets are not taken, and not repeated in the message', async () => {
  const pem = await exportPKCS8(rsa!.privateKey)
  expect(refusal(pem)).toMatch(/contains a private key: provide the public one alone/)
  const jwk = await exportJWK(rsa!.privateKey)
  expect(refusal(jwks(jwk))).toMatch(/key 1 is a private key/)
  expect(refusal(jwks(jwk))).not.toContain(jwk.d)
  expect(refusal(jwks(ecJwk, { kty: 'oct', k: 'c2VjcmV0' }))).toMatch(/key 2 is a shared secret/)
  expect(refusal(`{"keys": [secret]}`)).not.toContain('secret')
})

test('what is not for signatures, or of an unknown kind, is passed over', () => {
  const keys = read(
    jwks(
      { ...ecJwk, kid: 'e', use: 'sig' },
      { ...rsaJwk, use: 'enc' },
      { kty: 'new' },
      { kty: 'OKP', crv: 'X25519', x: 'AA' },
    ),
  )
  expect(keys.find('ES256', 'e')).toBeDefined()
  expect(keys.find('RS256', undefined)).toBeUndefined()
})

const weak = createPublicKey({
  key: { kty: 'RSA', e: 'AQAB', n: Buffer.alloc(128, 0xff).toString('base64url') },
  format: 'jwk',
}).export({ format: 'jwk' })

test.each([
  ['nothing', '', /neither PEM nor the JSON/],
  ['an array', '[]', /neither PEM nor the JSON/],
  ['no keys', '{}', /`keys` is missing/],
  ['an empty list', jwks(), /no public key/],
  ['only keys for encryption', jwks({ ...ecJwk, use: 'enc' }), /no public key/],
  ['a key that is none', '{"keys": [7]}', /key 1 is not an object/],
  ['a point that is not on its curve', jwks({ ...ecJwk, x: ecJwk.y }), /key 1 cannot be read/],
  ['a kid that is no text', jwks({ ...ecJwk, kid: 7 }), /`kid` is not a string/],
  ['one kid twice', jwks({ ...ecJwk, kid: 'k' }, { ...edJwk, kid: 'k' }), /two keys are named k/],
  ['RSA that is too short', jwks(weak), /RSA of 1024 bits; 2048 to 8192/],
])('a file is refused for %s', (_, text, why) => {
  expect(refusal(text)).toMatch(why)
})

test('a bad file leaves the keys as they were, a good one replaces them all', async () => {
  const keys = read(jwks({ ...ecJwk, kid: 'k' }))
  const old = await calculateJwkThumbprint(ecJwk)
  expect(() => keys.reload('{')).toThrow(AuthError)
  expect(keys.has(old)).toBe(true)
  keys.reload(jwks({ ...edJwk, kid: 'k' }))
  expect(keys.has(old)).toBe(false)
  expect(keys.has(await calculateJwkThumbprint(edJwk))).toBe(true)
})

test('before anything is read there is no key', () => {
  expect(new JwtKeys().find('ES256', undefined)).toBeUndefined()
})
