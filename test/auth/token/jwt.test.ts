/** Tokens are made by jose, or byte by byte where jose refuses to make them. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import {
  CompactEncrypt,
  calculateJwkThumbprint,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'
import { expect, test } from 'vitest'
import { JwtKeys } from '../../../auth/token/jwt-keys.ts'
import { BEGIN, Fixture } from '../fixture.ts'

const NOW = BEGIN / 1000
const OURS = { iss: 'https://issuer.test', aud: 'cinnabar', sub: 'acme/alice', exp: NOW + 60 }

const [ec, rsa, stranger] = await Promise.all([
  generateKeyPair('ES256'),
  generateKeyPair('RS256'),
  generateKeyPair('ES256'),
])
const jwks = JSON.stringify({
  keys: [
    { ...(await exportJWK(ec.publicKey)), kid: 'ec' },
    { ...(await exportJWK(rsa.publicKey)), kid: 'rsa' },
  ],
})

function fixture(identity = 'sub'): { it: Fixture; keys: JwtKeys } {
  const keys = new JwtKeys()
  keys.reload(jwks)
  return { it: new Fixture({ jwt: { keys, issuer: OURS.iss, audience: OURS.aud, identity } }), keys }
}

const without = (claim: keyof typeof OURS): JWTPayload =>
  Object.fromEntries(Object.entries(OURS).filter(([name]) => name !== claim))

interface Signing {
  readonly key?: Parameters<SignJWT['sign']>[0]
  readonly header?: JWTHeaderParameters
}

function signed(
  payload: JWTPayload = OURS,
  { key = ec.privateKey, header = { alg: 'ES256', kid: 'ec' } }: Signing = {},
) {
  return new SignJWT(payload).setProtectedHeader(header).sign(key)
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

async function reasonFor(token: string): Promise<string> {
  const step = await fixture().it.step('token', token)
  expect(step.outcome).toBe('failed')
  return step.outcome === 'failed' ? (step.reason ?? '') : ''
}

test('a token that is signed with a key of the list gives the user that it names', async () => {
  const { it } = fixture()
  const step = await it.step('token', await signed())
  const credential = {
    method: 'token',
    key: await calculateJwkThumbprint(await exportJWK(ec.publicKey)),
    expires: (OURS.exp + 5) * 1000,
    scope: undefined,
  }
  expect(step).toEqual({ outcome: 'ok', account: it.accounts[0], credential })
  const other = await signed(OURS, { key: rsa.privateKey, header: { alg: 'RS256' } })
  expect(await it.step('token', other)).toMatchObject({
    outcome: 'ok',
    credential: { key: await calculateJwkThumbprint(await exportJWK(rsa.publicKey)) },
  })
})

test('a token from before its user was added was for another user of that name', async () => {
  const { it } = fixture()
  const [alice, ...others] = it.accounts
  const outcome = async (payload: JWTPayload): Promise<string> =>
    (await it.step('token', await signed(payload))).outcome
  it.accounts = [{ ...(alice as (typeof it.accounts)[0]), created: NOW * 1000 - 500 }, ...others]
  expect(await outcome({ ...OURS, iat: NOW })).toBe('ok')
  expect(await outcome({ ...OURS, iat: NOW - 1 })).toBe('ok')
  expect(await outcome({ ...OURS, iat: NOW - 2 })).toBe('failed')
  expect(await outcome(OURS)).toBe('failed')
  const step = await it.step('token', await signed({ ...OURS, iat: NOW - 60 }))
  expect(step).toMatchObject({ outcome: 'failed', identity: 'acme/alice', reason: expect.stringContaining('iat') })
})

test('the audience may be one of several', async () => {
  const { it } = fixture()
  expect((await it.step('token', await signed({ ...OURS, aud: ['x', 'cinnabar'] }))).outcome).toBe('ok')
})

test.each<[string, JWTPayload, RegExp]>([
  ['another issuer', { ...OURS, iss: 'https://issuer.test/' }, /"iss"/],
  ['no issuer', without('iss'), /"iss"/],
  ['another audience', { ...OURS, aud: 'cinnabar2' }, /"aud"/],
  ['no audience', without('aud'), /"aud"/],
  ['audiences without ours', { ...OURS, aud: [] }, /"aud"/],
  ['no end', without('exp'), /"exp"/],
  ['an end that is over', { ...OURS, exp: NOW - 5 }, /"exp"/],
  ['a beginning that is to come', { ...OURS, nbf: NOW + 6 }, /"nbf"/],
  ['no user', without('sub'), /the claim sub is missing or not a string/],
  ['a user that is not there', { ...OURS, sub: 'acme/mallory' }, /no such user/],
  ['a user of another tenant', { ...OURS, sub: 'alice' }, /no such user/],
  ['a name that nobody can have', { ...OURS, sub: 'a/b/c' }, /identity is not a user name/],
  ['the local user', { ...OURS, sub: 'local' }, /no such user/],
  ['a scope that is no list', { ...OURS, ['scope']: 'COLLECT host.*' }, /scope is not an array/],
  ['a scope that cannot be read', { ...OURS, ['scope']: ['openid'] }, /line of a scope/],
])('a token with %s fails', async (_, payload, why) => {
  expect(await reasonFor(await signed(payload))).toMatch(why)
})

test('claims of other types than they have fail', async () => {
  for (const wrong of [
    { exp: 'never' },
    { nbf: '0' },
    { sub: 7 },
    { sub: ['acme/alice'] },
    { iss: [OURS.iss] },
    { scope: [7] },
  ]) {
    const claims = { ...OURS, ...wrong }
    const input = `${part({ alg: 'ES256', kid: 'ec' })}.${part(claims)}`
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, ec.privateKey, Buffer.from(input))
    await reasonFor(`${input}.${Buffer.from(signature).toString('base64url')}`)
  }
})

test('the clocks may differ by five seconds, and the credential lasts as long as that', async () => {
  const { it } = fixture()
  const token = await signed({ ...OURS, nbf: NOW + 5, exp: NOW + 60 })
  expect((await it.step('token', token)).outcome).toBe('ok')
  it.now = 64_000
  const step = await it.step('token', token)
  expect(step.outcome).toBe('ok')
  if (step.outcome === 'ok') expect(it.authenticator.validity(1, step.credential, BEGIN + it.now)).toBeUndefined()
  it.now = 65_000
  expect((await it.step('token', token)).outcome).toBe('failed')
})

test('its scope narrows what the user may; an empty one leaves nothing', async () => {
  const { it } = fixture()
  const scopeOf = async (scope: string[]): Promise<unknown> => {
    const step = await it.step('token', await signed({ ...OURS, scope }))
    return step.outcome === 'ok' && step.credential.scope
  }
  expect(await scopeOf(['COLLECT host.*'])).toEqual([{ command: 'COLLECT', object: 'host.*' }])
  expect(await scopeOf([])).toEqual([])
  expect(await scopeOf(['', ';'])).toEqual([])
})

test('the claim that names the user is the one configured', async () => {
  const { it } = fixture('cinnabar')
  const step = await it.step('token', await signed({ ...OURS, sub: 'local', ['cinnabar']: 'acme/alice' }))
  expect(step.outcome).toBe('ok')
  const inherited = fixture('constructor').it
  expect((await inherited.step('token', await signed())).outcome).toBe('failed')
})

test('another spelling of a name is not that name: two people of the issuer would be one of ours', async () => {
  for (const sub of ['acme/\uff41lice', '\uff41cme/alice', 'acme/al\u00adice', 'acme\uff0falice']) {
    expect(await reasonFor(await signed({ ...OURS, sub }))).toBe('its identity is not a user name')
  }
})

test('unsigned tokens fail, however they spell it', async () => {
  for (const alg of ['none', 'None', 'NONE', '', 'nOnE']) {
    for (const signature of ['', 'AA']) await reasonFor(`${part({ alg, kid: 'ec' })}.${part(OURS)}.${signature}`)
  }
  await reasonFor(`${part({ kid: 'ec' })}.${part(OURS)}.`)
})

test('a public key is no shared secret', async () => {
  const secrets = [await exportSPKI(rsa.publicKey), jwks, JSON.stringify(await exportJWK(rsa.publicKey)), '']
  for (const secret of secrets) {
    for (const header of [{ alg: 'HS256', kid: 'rsa' }, { alg: 'HS256', kid: 'ec' }, { alg: 'HS256' }]) {
      const input = `${part(header)}.${part(OURS)}`
      const mac = createHmac('sha256', secret).update(input).digest('base64url')
      expect(await reasonFor(`${input}.${mac}`)).toMatch(/no configured key matches/)
    }
  }
})

test('another key, another kid and an algorithm of another type of key fail', async () => {
  const own = { ...(await exportJWK(stranger.publicKey)), kid: 'ec' }
  const header = { alg: 'ES256', kid: 'ec' }
  expect(await reasonFor(await signed(OURS, { key: stranger.privateKey, header }))).toMatch(/signature/)
  expect(await reasonFor(await signed(OURS, { key: stranger.privateKey, header: { ...header, jwk: own } }))).toMatch(
    /signature/,
  )
  expect(await reasonFor(await signed(OURS, { header: { alg: 'ES256', kid: 'other' } }))).toMatch(
    /no configured key matches/,
  )
  expect(await reasonFor(await signed(OURS, { header: { alg: 'ES256', kid: 'rsa' } }))).toMatch(
    /no configured key matches/,
  )
  const rest = (await signed(OURS, { key: rsa.privateKey, header: { alg: 'RS256' } })).split('.').slice(1)
  await reasonFor([part({ alg: 'RS256', kid: 'ec' }), ...rest].join('.'))
  await reasonFor([part({ alg: 'PS256', kid: 'rsa' }), ...rest].join('.'))
})

test('a token that demands extensions fails, known to jose or not', async () => {
  const crit = { alg: 'ES256', kid: 'ec', b64: true, crit: ['b64'] }
  expect(await reasonFor(await signed(OURS, { header: crit as JWTHeaderParameters }))).toMatch(/extensions/)
  expect(await reasonFor(`${part({ alg: 'ES256', kid: 'ec', crit: ['x'], x: 1 })}.${part(OURS)}.AAAA`)).toMatch(
    /extensions/,
  )
})

test('an encrypted token is none of ours', async () => {
  const header = { alg: 'ECDH-ES', enc: 'A256GCM', kid: 'ec' }
  const jwe = await new CompactEncrypt(Buffer.from(await signed()))
    .setProtectedHeader(header)
    .encrypt((await generateKeyPair('ECDH-ES')).publicKey)
  expect(await reasonFor(jwe)).toBe('it is not a token')
})

test('a token of more than 16 KiB is not looked at, although it is signed', async () => {
  const filled = (length: number) => signed({ ...OURS, ['filling']: 'a'.repeat(length) })
  expect((await fixture().it.step('token', await filled(10_000))).outcome).toBe('ok')
  expect(await reasonFor(await filled(13_000))).toMatch(/more than 16384 bytes/)
})

// But for the last: four of its six bits belong to no byte of the signature.
test('any other character anywhere fails', async () => {
  const token = await signed()
  const { it } = fixture()
  for (let at = 0; at < token.length - 1; at++) {
    const other = token[at] === 'A' ? 'B' : 'A'
    const changed = `${token.slice(0, at)}${other}${token.slice(at + 1)}`
    expect((await it.step('token', changed)).outcome, `character ${at}`).toBe('failed')
  }
})

test('a key that was taken away opens nothing any more, one that came does', async () => {
  const { it, keys } = fixture()
  keys.reload(JSON.stringify({ keys: [{ ...(await exportJWK(stranger.publicKey)), kid: 'new' }] }))
  expect((await it.step('token', await signed())).outcome).toBe('failed')
  const token = await signed(OURS, { key: stranger.privateKey, header: { alg: 'ES256', kid: 'new' } })
  expect((await it.step('token', token)).outcome).toBe('ok')
})

test('without an issuer or an audience nothing is started', () => {
  const jwt = { keys: new JwtKeys(), issuer: OURS.iss, audience: OURS.aud, identity: 'sub' }
  expect(() => new Fixture({ jwt: { ...jwt, issuer: '' } })).toThrow(TypeError)
  expect(() => new Fixture({ jwt: { ...jwt, audience: '' } })).toThrow(TypeError)
})

test('nonsense in three parts fails and never throws', async () => {
  const { it } = fixture()
  const anyPart = fc.oneof(fc.jsonValue().map(part), fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/))
  const header = fc.record({
    alg: fc.constantFrom('ES256', 'RS256', 'HS256', 7, null),
    kid: fc.constantFrom('ec', 'rsa', 7),
  })
  await fc.assert(
    fc.asyncProperty(fc.oneof(header.map(part), anyPart), anyPart, anyPart, async (...parts) => {
      expect((await it.step('token', parts.join('.'))).outcome).toBe('failed')
    }),
    { numRuns: 300 },
  )
})
