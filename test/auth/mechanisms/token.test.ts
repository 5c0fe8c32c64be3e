import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OpaqueToken } from '../../../auth/mechanisms/token.ts'
import { BEGIN, Fixture, LOCAL, NOTHING, REMOTE, SECURE } from '../fixture.ts'

/** A fixture with one token for Alice. */
function withToken(changed: Partial<OpaqueToken> = {}): { it: Fixture; text: string } {
  const it = new Fixture()
  const text = `cnb_${randomBytes(32).toString('base64url')}`
  it.tokens.set(text, { id: 7, user: 1, scope: '', expires: undefined, ...changed })
  return { it, text }
}

const failed = (reason: string, identity?: string) => ({ outcome: 'failed', reason, identity })

test('a token gives the account it was made for', async () => {
  const { it, text } = withToken()
  expect(await it.step('token', text)).toEqual({
    outcome: 'ok',
    account: it.accounts[0],
    credential: { method: 'token', token: 7, expires: undefined, scope: undefined },
  })
})

test('a token is looked up by the SHA-256 of its bytes', async () => {
  const asked: string[] = []
  const find = (hash: Uint8Array): undefined => {
    asked.push(Buffer.from(hash).toString('hex'))
  }
  const it = new Fixture({ tokens: { find, byId: () => undefined } })
  await it.step('token', `cnb_${'A'.repeat(43)}`)
  // From sha256sum.
  expect(asked).toEqual(['41c6ffccf7184af6d6c8ac1651c668393285aca7e28edadc1d620b7cf7b98001'])
})

test('its expiry and scope are those of the credential', async () => {
  const { it, text } = withToken({ scope: 'COLLECT host.*; EXECUTE channel.*', expires: BEGIN + 1000 })
  const scope = [
    { command: 'COLLECT', object: 'host.*' },
    { command: 'EXECUTE', object: 'channel.*' },
  ]
  expect(await it.step('token', text)).toMatchObject({ credential: { expires: BEGIN + 1000, scope } })
})

test('it is taken where a password is, and nowhere else', async () => {
  const { it, text } = withToken()
  expect((await it.step('token', text, SECURE)).outcome).toBe('ok')
  expect((await it.step('token', text, REMOTE)).outcome).toBe('unsupported')
  const strict = new Fixture({ plainOnLoopback: false })
  expect((await strict.step('token', text, LOCAL)).outcome).toBe('unsupported')
})

test('one that expired fails, to the millisecond', async () => {
  const { it, text } = withToken({ expires: BEGIN + 1000 })
  it.now = 999
  expect((await it.step('token', text)).outcome).toBe('ok')
  it.now = 1000
  expect(await it.step('token', text)).toEqual(failed('it has expired', 'acme/alice'))
})

test('one that was revoked, was never given, or whose user was removed fails', async () => {
  const { it, text } = withToken()
  const other = `${text.slice(0, -1)}${text.endsWith('A') ? 'B' : 'A'}`
  expect(await it.step('token', other)).toEqual(failed('there is no such token'))
  it.accounts = []
  expect(await it.step('token', text)).toEqual(failed('there is no such user'))
  it.tokens.clear()
  expect(await it.step('token', text)).toEqual(failed('there is no such token'))
})

test('the local user has none, not even on loopback', async () => {
  const { it, text } = withToken({ user: 2 })
  expect(await it.step('token', text)).toEqual(failed('there is no such user', 'local'))
})

test('a scope that cannot be read lets nobody in: it must not read as "everything"', async () => {
  const { it, text } = withToken({ scope: 'READ host.*' })
  expect(await it.step('token', text)).toMatchObject({ outcome: 'failed', identity: 'acme/alice' })
})

test.each([
  ['nothing', ''],
  ['another prefix', `cnx_${'A'.repeat(43)}`],
  ['too little randomness', `cnb_${'A'.repeat(42)}`],
  ['something after', `cnb_${'A'.repeat(43)}\n`],
  ['a character of another alphabet', `cnb_${'A'.repeat(42)}+`],
])('what does not look like a token is none, whatever hashes are stored: %s', async (_, text) => {
  const it = new Fixture()
  it.tokens.set(text, { id: 7, user: 1, scope: '', expires: undefined })
  expect(await it.step('token', text)).toEqual(failed('it is not a token'))
})

test('16 KiB are looked at, more are not', async () => {
  const it = new Fixture()
  expect(await it.step('token', 'a'.repeat(16_384))).toEqual(failed('it is not a token'))
  expect(await it.step('token', 'a'.repeat(16_385))).toEqual(failed('it has more than 16384 bytes'))
})

test('a JWT is no token where no keys are configured', async () => {
  expect(await new Fixture().step('token', 'e30.e30.e30')).toEqual(failed('it is not a token'))
})

test('wrong tokens do not keep the right one out, nor passwords', async () => {
  const { it, text } = withToken()
  for (let i = 0; i < 100; i++) await it.step('token', `cnb_${randomBytes(32).toString('base64url')}`)
  expect((await it.step('token', text)).outcome).toBe('ok')
  expect((await it.password('acme/alice', 'wonderland')).outcome).toBe('ok')
})

test('random bytes fail and never throw', async () => {
  const { it } = withToken()
  const noise = fc.oneof(
    fc.uint8Array({ maxLength: 100 }),
    fc.stringMatching(/^cnb_[A-Za-z0-9_-]{40,46}$/).map((text) => Buffer.from(text)),
  )
  await fc.assert(
    fc.asyncProperty(noise, async (data) => {
      expect((await it.step('token', data)).outcome).toBe('failed')
    }),
  )
  expect((await it.begin().step('', NOTHING)).outcome).toBe('invalid')
})
