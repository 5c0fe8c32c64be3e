import { expect, test } from 'vitest'
import { AuthError } from '../../auth/errors.ts'
import { ScramClient } from '../../auth/scram/client.ts'
import { Fixture, LOCAL, NOTHING, passwordData, REMOTE, SECURE } from './fixture.ts'

const right = passwordData('acme/alice', 'wonderland')
const clientFirst = new ScramClient({ identity: 'acme/alice' }).first()

test('the methods are offered by what the link is, the best first', () => {
  const { authenticator } = new Fixture()
  expect(authenticator.methods(LOCAL)).toEqual(['scram-sha-256', 'password'])
  expect(authenticator.methods(SECURE)).toEqual(['scram-sha-256', 'password'])
  expect(authenticator.methods(REMOTE)).toEqual(['scram-sha-256'])
})

test('a method that is not offered is unsupported', async () => {
  const it = new Fixture()
  expect(await it.begin(REMOTE).step('password', right)).toEqual({ outcome: 'unsupported' })
  expect(await it.begin().step('token', NOTHING)).toEqual({ outcome: 'unsupported' })
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
  ['a method that is not offered', 'token', NOTHING],
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

test('a hasher with too much to do is told to the caller and is no failure of the guess', async () => {
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
