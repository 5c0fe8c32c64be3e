import { expect, test } from 'vitest'
import { ScramClient } from '../../../auth/scram/client.ts'
import { Fixture, LOCAL, NOTHING, REMOTE } from '../fixture.ts'

const METHOD = 'scram-sha-256'

/** An exchange in which the client has proven itself and has still to acknowledge the server's proof. */
async function proven(it: Fixture) {
  const exchange = it.begin()
  const client = new ScramClient({ identity: 'acme/alice', password: 'wonderland' })
  const first = await exchange.step(METHOD, client.first())
  const final = await exchange.step('', await client.final(first.outcome === 'continue' ? first.data : NOTHING))
  expect(final.outcome).toBe('continue')
  return { exchange, client, final }
}

test('the right password gives the account after three steps', async () => {
  const it = new Fixture()
  expect(await it.scram('acme/alice', 'wonderland', REMOTE)).toEqual(['continue', 'continue', 'ok'])
  const { exchange } = await proven(it)
  expect(await exchange.step('', NOTHING)).toEqual({
    outcome: 'ok',
    account: it.accounts[0],
    credential: { method: METHOD },
  })
})

test('a wrong password and an unknown user fail at the same step', async () => {
  const it = new Fixture()
  expect(await it.scram('acme/alice', 'x')).toEqual(['continue', 'failed'])
  expect(await it.scram('acme/mallory', 'x')).toEqual(['continue', 'failed'])
})

test('an unknown user has one salt, however he is spelt', async () => {
  const it = new Fixture()
  const salt = async (identity: string): Promise<string> => {
    const step = await it.begin().step(METHOD, new TextEncoder().encode(`n,,n=${identity},r=x`))
    return new TextDecoder().decode(step.outcome === 'continue' ? step.data : NOTHING).split(',')[1]!
  }
  expect(await salt('mallory')).toMatch(/^s=.{24}$/)
  expect(await salt('default/mallory')).toBe(await salt('mallory'))
  expect(await salt('m\uff41llory')).toBe(await salt('mallory'))
  expect(await salt('acme/mallory')).not.toBe(await salt('mallory'))
})

test('an identity that nobody can have fails at once', async () => {
  const step = await new Fixture().begin().step(METHOD, new TextEncoder().encode('n,,n=a/b/c,r=x'))
  expect(step).toEqual({ outcome: 'failed' })
})

test('wrong secrets do not lock out the local user: they are those of other servers, and too long to be guessed', async () => {
  const it = new Fixture()
  for (let n = 0; n < 50; n++)
    expect(await it.scram('local', 'of another server', LOCAL)).toEqual(['continue', 'failed'])
  expect(await it.scram('local', 'machine', LOCAL)).toEqual(['continue', 'continue', 'ok'])
})

test('the local user exists only over loopback', async () => {
  const it = new Fixture()
  expect(await it.scram('local', 'machine', LOCAL)).toEqual(['continue', 'continue', 'ok'])
  expect(await it.scram('local', 'machine', REMOTE)).toEqual(['continue', 'failed'])
  expect(await it.scram('local', 'machine', { ...LOCAL, address: '192.0.2.1' })).toEqual(['continue', 'failed'])
  expect(await it.scram('local', 'machine', { ...LOCAL, loopback: false })).toEqual(['continue', 'failed'])
})

test('whoever does not acknowledge the proof of the server is not authenticated', async () => {
  const it = new Fixture()
  const { exchange } = await proven(it)
  expect((await exchange.step('', Uint8Array.of(0))).outcome).toBe('invalid')
  expect((await exchange.step('', NOTHING)).outcome).toBe('invalid')
})

test('a user who is removed, replaced or given another password before the end fails', async () => {
  const it = new Fixture()
  const [alice, local] = it.accounts as [(typeof it.accounts)[0], (typeof it.accounts)[0]]
  for (const accounts of [
    [],
    [{ ...alice, id: 9 }],
    [{ ...alice, scram: local.scram }],
    [{ ...alice, scram: undefined }],
  ]) {
    it.accounts = [alice, local]
    const { exchange } = await proven(it)
    it.accounts = accounts
    expect(await exchange.step('', NOTHING)).toEqual({ outcome: 'failed', identity: 'acme/alice' })
  }
})

test('storage may hand out new objects each time', async () => {
  const it = new Fixture()
  const { exchange } = await proven(it)
  it.accounts = structuredClone(it.accounts)
  expect((await exchange.step('', NOTHING)).outcome).toBe('ok')
})

test('from the sixth failure on a guess is not looked at', async () => {
  const it = new Fixture()
  for (let i = 0; i < 6; i++) expect(await it.scram('acme/alice', 'x')).toEqual(['continue', 'failed'])
  expect(await it.scram('acme/alice', 'wonderland')).toEqual(['failed'])
  expect(await it.scram('acme/alice', 'wonderland', REMOTE)).toEqual(['continue', 'continue', 'ok'])
  it.now += 60_000
  expect(await it.scram('acme/alice', 'wonderland')).toEqual(['continue', 'continue', 'ok'])
})

test('exchanges begun before the sixth failure tell no more than those begun after it', async () => {
  const it = new Fixture()
  const exchange = it.begin()
  const client = new ScramClient({ identity: 'acme/alice', password: 'wonderland' })
  const first = await exchange.step(METHOD, client.first())
  for (let i = 0; i < 6; i++) await it.scram('acme/alice', 'x')
  const final = await client.final(first.outcome === 'continue' ? first.data : NOTHING)
  expect(await exchange.step('', final)).toEqual({ outcome: 'failed', identity: 'acme/alice', waitMs: 60_000 })
})

test('guesses by password and by SCRAM are counted together', async () => {
  const it = new Fixture()
  for (let i = 0; i < 3; i++) {
    await it.scram('acme/alice', 'x')
    await it.password('acme/alice', 'x')
  }
  expect(await it.scram('acme/alice', 'wonderland')).toEqual(['failed'])
})

test('an exchange that is not finished is no failure', async () => {
  const it = new Fixture()
  for (let i = 0; i < 10; i++) await it.begin().step(METHOD, new TextEncoder().encode('n,,n=acme/alice,r=x'))
  expect(await it.scram('acme/alice', 'wonderland')).toEqual(['continue', 'continue', 'ok'])
})
