import { expect, test } from 'vitest'
import { AuthError } from '../../auth/errors.ts'
import { ScramClient } from '../../auth/scram/client.ts'
import { JwtKeys } from '../../auth/token/jwt-keys.ts'
import { BEGIN, BOUND, certificateOf, Fixture, LOCAL, NOTHING, passwordData, REMOTE, SECURE } from './fixture.ts'

const right = passwordData('acme/alice', 'wonderland')
const clientFirst = new ScramClient({ identity: 'acme/alice' }).first()

test('the methods are offered by what the link is, the best first', () => {
  const { authenticator } = new Fixture()
  expect(authenticator.methods(LOCAL)).toEqual(['scram-sha-256', 'token', 'password'])
  expect(authenticator.methods(SECURE)).toEqual(['scram-sha-256', 'token', 'password'])
  expect(authenticator.methods(BOUND)).toEqual(['scram-sha-256-plus', 'scram-sha-256', 'token', 'password'])
  expect(authenticator.methods(REMOTE)).toEqual(['scram-sha-256'])
  expect(authenticator.methods({ ...SECURE, certificate: certificateOf('acme/alice') })[0]).toBe('certificate')
  expect(new Fixture({ plainOnLoopback: false }).authenticator.methods(LOCAL)).toEqual(['scram-sha-256'])
})

test('a method that is not offered is unsupported', async () => {
  const it = new Fixture()
  expect(await it.begin(REMOTE).step('password', right)).toEqual({ outcome: 'unsupported' })
  expect(await it.begin().step('certificate', NOTHING)).toEqual({ outcome: 'unsupported' })
  expect(await it.begin().step('PASSWORD', right)).toEqual({ outcome: 'unsupported' })
  expect(it.compared).toEqual([])
})

test('an empty method without an exchange is invalid', async () => {
  const exchange = new Fixture().begin()
  expect((await exchange.step('', NOTHING)).outcome).toBe('invalid')
  await exchange.step('password', passwordData('acme/alice', 'x'))
  expect((await exchange.step('', NOTHING)).outcome).toBe('invalid')
})

test('another method starts anew', async () => {
  const exchange = new Fixture().begin()
  expect((await exchange.step('scram-sha-256', clientFirst)).outcome).toBe('continue')
  expect((await exchange.step('password', right)).outcome).toBe('ok')
})

test('the same method named again starts anew too', async () => {
  const exchange = new Fixture().begin()
  const client = new ScramClient({ identity: 'acme/alice', password: 'wonderland' })
  await exchange.step('scram-sha-256', clientFirst)
  const first = await exchange.step('scram-sha-256', client.first())
  expect(first.outcome).toBe('continue')
  const final = await client.final(first.outcome === 'continue' ? first.data : NOTHING)
  expect((await exchange.step('', final)).outcome).toBe('continue')
})

test.each([
  ['a method that is not offered', 'certificate', NOTHING],
  ['a failure', 'password', passwordData('acme/alice', 'x')],
  ['undecodable data', 'password', NOTHING],
])('%s ends the exchange under way', async (_, method, data) => {
  const exchange = new Fixture().begin()
  await exchange.step('scram-sha-256', clientFirst)
  await exchange.step(method, data)
  expect((await exchange.step('', NOTHING)).outcome).toBe('invalid')
})

test('a proven exchange dies when another method is named', async () => {
  const exchange = new Fixture().begin()
  const client = new ScramClient({ identity: 'acme/alice', password: 'wonderland' })
  const first = await exchange.step('scram-sha-256', client.first())
  await exchange.step('', await client.final(first.outcome === 'continue' ? first.data : NOTHING))
  await exchange.step('token', NOTHING)
  expect((await exchange.step('', NOTHING)).outcome).toBe('invalid')
})

test('after a failure the connection may try again', async () => {
  const exchange = new Fixture().begin()
  expect((await exchange.step('password', passwordData('acme/alice', 'x'))).outcome).toBe('failed')
  expect((await exchange.step('password', right)).outcome).toBe('ok')
})

test('exchanges of two connections have nothing in common', async () => {
  const it = new Fixture()
  await it.begin().step('scram-sha-256', clientFirst)
  expect((await it.begin().step('', NOTHING)).outcome).toBe('invalid')
})

test('a busy hasher is reported to the caller and does not count as a failed attempt', async () => {
  const it = new Fixture()
  it.duringVerify = () => {
    throw new AuthError('HASHER_BUSY', '64 passwords are waiting to be checked')
  }
  for (let i = 0; i < 10; i++) {
    await expect(it.password('acme/alice', 'wonderland')).rejects.toMatchObject({ code: 'HASHER_BUSY' })
  }
  it.duringVerify = () => undefined
  expect((await it.password('acme/alice', 'wonderland')).outcome).toBe('ok')
})

test('a login is good while its user is there', () => {
  const it = new Fixture()
  const validity = (): string | undefined => it.authenticator.validity(1, { method: 'password' }, BEGIN)
  expect(validity()).toBeUndefined()
  it.accounts = []
  expect(validity()).toBe('the user was removed')
})

test('a login by token is good until the token is revoked or expires', () => {
  const it = new Fixture()
  const credential = { method: 'token', token: 7, expires: BEGIN + 1000 }
  const validity = (now: number): string | undefined => it.authenticator.validity(1, credential, BEGIN + now)
  it.tokens.set('cnb_x', { id: 7, user: 1, scope: '', expires: BEGIN + 1000 })
  expect(validity(999)).toBeUndefined()
  expect(validity(1000)).toBe('the token has expired')
  it.tokens.clear()
  expect(validity(0)).toBe('the token was revoked')
})

test('a login by JWT is good while its key is trusted', () => {
  const keys = new JwtKeys()
  const it = new Fixture({ jwt: { keys, issuer: 'i', audience: 'a', identity: 'sub' } })
  // The key of RFC 8037 A.2 and its thumbprint in A.3; then that of RFC 8032 7.1, test 2, under the same name.
  const key = { kty: 'OKP', crv: 'Ed25519', kid: 'k', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  const other = Buffer.from('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c', 'hex')
  const credential = { method: 'token', key: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k', expires: BEGIN + 1 }
  const validity = (): string | undefined => it.authenticator.validity(1, credential, BEGIN)
  keys.reload(JSON.stringify({ keys: [key] }))
  expect(validity()).toBeUndefined()
  keys.reload(JSON.stringify({ keys: [{ ...key, x: other.toString('base64url') }] }))
  expect(validity()).toBe('the key that the token was signed with is no longer trusted')
  expect(new Fixture().authenticator.validity(1, { method: 'token', key: 'k' }, BEGIN)).toMatch(/no longer trusted/)
})

test('a login by certificate is good while that is trusted, and until it expires', () => {
  let isTrusted = true
  const it = new Fixture({ certificates: { isTrusted: () => isTrusted } })
  const certificate = certificateOf('acme/alice')
  const credential = { method: 'certificate', certificate, expires: certificate.validUntil }
  const validity = (now: number): string | undefined => it.authenticator.validity(1, credential, BEGIN + now)
  expect(validity(999)).toBeUndefined()
  expect(validity(1000)).toBe('the certificate has expired')
  isTrusted = false
  expect(validity(0)).toBe('the certificate is no longer trusted')
})
