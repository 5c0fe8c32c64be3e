import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { BEGIN, certificateOf, Fixture, LOCAL, NOTHING, REMOTE, SECURE } from '../fixture.ts'

const METHOD = 'certificate'
const holding = (subject: string, peer = SECURE): AuthPeer => ({ ...peer, certificate: certificateOf(subject) })

test('a verified certificate gives the account that its common name names', async () => {
  const it = new Fixture()
  const peer = holding('acme/alice')
  expect(await it.step(METHOD, NOTHING, peer)).toEqual({
    outcome: 'ok',
    account: it.accounts[0],
    credential: { method: METHOD, certificate: peer.certificate, expires: BEGIN + 1000 },
  })
})

test('another spelling of a name is not that name: two people of the authority would be one of ours', async () => {
  const it = new Fixture()
  for (const subject of ['acme/\uff41lice', '\uff41cme/alice', 'acme/al\u00adice', 'acme\uff0falice']) {
    expect(await it.step(METHOD, NOTHING, holding(subject))).toMatchObject({ outcome: 'failed' })
  }
})

test('it is offered only to whoever has shown one', async () => {
  for (const peer of [LOCAL, REMOTE, SECURE]) {
    expect(await new Fixture().step(METHOD, NOTHING, peer)).toEqual({ outcome: 'unsupported' })
  }
})

test('it takes no data', async () => {
  expect(await new Fixture().step(METHOD, 'acme/alice', holding('acme/alice'))).toMatchObject({ outcome: 'invalid' })
})

test('a name that no user has, or that nobody can have, fails', async () => {
  const it = new Fixture()
  const reason = 'there is no such user'
  expect(await it.step(METHOD, NOTHING, holding('alice'))).toEqual({ outcome: 'failed', identity: 'alice', reason })
  for (const subject of ['', '/', 'a/b/c', 'acme/alice\u0000']) {
    expect(await it.step(METHOD, NOTHING, holding(subject))).toMatchObject({ outcome: 'failed' })
  }
})

test('the local user has none, not even on loopback', async () => {
  expect(await new Fixture().step(METHOD, NOTHING, holding('local', LOCAL))).toMatchObject({ outcome: 'failed' })
})

test('one that has expired since the handshake fails, to the millisecond', async () => {
  const it = new Fixture()
  it.now = 999
  expect((await it.step(METHOD, NOTHING, holding('acme/alice'))).outcome).toBe('ok')
  it.now = 1000
  expect(await it.step(METHOD, NOTHING, holding('acme/alice'))).toMatchObject({ outcome: 'failed' })
})

test('one that was revoked since the handshake fails', async () => {
  const asked: string[] = []
  const isTrusted = ({ subject }: { readonly subject: string }): boolean => {
    asked.push(subject)
    return asked.length === 1
  }
  const it = new Fixture({ certificates: { isTrusted } })
  expect((await it.step(METHOD, NOTHING, holding('acme/alice'))).outcome).toBe('ok')
  expect(await it.step(METHOD, NOTHING, holding('acme/alice'))).toMatchObject({ outcome: 'failed' })
  expect(asked).toEqual(['acme/alice', 'acme/alice'])
})

test('any other subject never gets in, and never throws', async () => {
  const it = new Fixture()
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 80 }), async (subject) => {
      expect((await it.step(METHOD, NOTHING, holding(subject))).outcome).toBe('failed')
    }),
  )
})
