import { expect, test } from 'vitest'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { RfcScram, type RfcScramOptions } from '../../support/rfc-scram.ts'
import { BOUND, Fixture, LOCAL, NOTHING, SECURE } from '../fixture.ts'

const PLUS = 'scram-sha-256-plus'
const PLAIN = 'scram-sha-256'

interface Attempt extends Partial<RfcScramOptions> {
  readonly peer?: AuthPeer
  readonly method?: string
}

/** All outcomes of an exchange with a client that is not ours, ended by the first that is not `continue`. */
async function outcomes(it: Fixture, { peer = BOUND, method, ...options }: Attempt = {}): Promise<string[]> {
  const client = new RfcScram({ username: 'acme/alice', password: 'wonderland', ...options })
  const exchange = it.begin(peer)
  const first = await exchange.step(method ?? client.method, client.clientFirst())
  if (first.outcome !== 'continue') return [first.outcome]
  const final = await exchange.step('', client.clientFinal(first.data))
  if (final.outcome !== 'continue') return ['continue', final.outcome]
  expect(client.isProvenBy(final.data)).toBe(true)
  return ['continue', 'continue', (await exchange.step('', NOTHING)).outcome]
}

const ADMITTED = ['continue', 'continue', 'ok']

test('a client made from the RFCs gets in, bound and unbound', async () => {
  const it = new Fixture()
  expect(await outcomes(it, { exporter: BOUND.exporter })).toEqual(ADMITTED)
  expect(await outcomes(it)).toEqual(ADMITTED)
  expect(await outcomes(it, { peer: LOCAL })).toEqual(ADMITTED)
  expect(await outcomes(it, { exporter: BOUND.exporter, password: 'x' })).toEqual(['continue', 'failed'])
})

test('our client gets in, bound', async () => {
  expect(await new Fixture().scram('acme/alice', 'wonderland', BOUND)).toEqual(ADMITTED)
})

test('the credential says by which method', async () => {
  const exchange = new Fixture().begin(BOUND)
  const client = new RfcScram({ username: 'acme/alice', password: 'wonderland', exporter: BOUND.exporter })
  const first = await exchange.step(PLUS, client.clientFirst())
  await exchange.step('', client.clientFinal(first.outcome === 'continue' ? first.data : NOTHING))
  expect(await exchange.step('', NOTHING)).toMatchObject({ outcome: 'ok', credential: { method: PLUS } })
})

test('somebody in the middle, whose two connections have two exporters, gets nowhere', async () => {
  const exporter = new Uint8Array(32).fill(9)
  expect(await outcomes(new Fixture(), { exporter })).toEqual(['continue', 'failed'])
  expect(await outcomes(new Fixture(), { exporter: BOUND.exporter!.slice(0, 31) })).toEqual(['continue', 'failed'])
  expect(await outcomes(new Fixture(), { exporter: new Uint8Array(0) })).toEqual(['continue', 'failed'])
})

test('it is offered on TLS 1.3 alone', async () => {
  expect(await outcomes(new Fixture(), { peer: SECURE, exporter: BOUND.exporter })).toEqual(['unsupported'])
})

test.each<[string, Attempt]>([
  ['no binding in the method that is about it', { method: PLUS }],
  ['a refusal to bind in the method that is about it', { method: PLUS, gs2Header: 'y,,' }],
  ['a binding of another type', { method: PLUS, gs2Header: 'p=tls-unique,,', exporter: BOUND.exporter }],
  ['a binding of another spelling', { method: PLUS, gs2Header: 'p=TLS-exporter,,', exporter: BOUND.exporter }],
  ['a binding for another', { method: PLUS, gs2Header: 'p=tls-exporter,a=admin,', exporter: BOUND.exporter }],
  ['a binding in the method without', { method: PLAIN, exporter: BOUND.exporter }],
  ['a binding where there is none', { method: PLAIN, exporter: BOUND.exporter, peer: SECURE }],
])('%s fails at once', async (_, attempt) => {
  expect(await outcomes(new Fixture(), attempt)).toEqual(['failed'])
})

// RFC 5802 section 6: the client saw a list of methods from which somebody had taken the one that binds.
test('a client that could bind, and believes that we cannot, fails where we can and gets in where we cannot', async () => {
  expect(await outcomes(new Fixture(), { gs2Header: 'y,,' })).toEqual(['failed'])
  expect(await outcomes(new Fixture(), { gs2Header: 'y,,', peer: SECURE })).toEqual(ADMITTED)
})

test('an unknown user fails at the same step, with a salt that stays the same', async () => {
  const it = new Fixture()
  const salt = async (): Promise<string> => {
    const client = new RfcScram({ username: 'acme/mallory', password: 'x', exporter: BOUND.exporter })
    const step = await it.begin(BOUND).step(PLUS, client.clientFirst())
    return Buffer.from(step.outcome === 'continue' ? step.data : NOTHING)
      .toString()
      .replace(/^r=[^,]+/, '')
  }
  expect(await salt()).toMatch(/^,s=.{24},i=4096$/)
  expect(await salt()).toBe(await salt())
  expect(await outcomes(it, { username: 'acme/mallory', exporter: BOUND.exporter })).toEqual(['continue', 'failed'])
})

test('guesses are counted with those by the other methods', async () => {
  const it = new Fixture()
  const wrong = { exporter: BOUND.exporter, password: 'x' }
  for (let i = 0; i < 3; i++) {
    await outcomes(it, wrong)
    await it.password('acme/alice', 'x', BOUND)
  }
  expect(await outcomes(it, { exporter: BOUND.exporter })).toEqual(['failed'])
  expect(await outcomes(it, { exporter: BOUND.exporter, peer: { ...BOUND, address: '192.0.3.1' } })).toEqual(ADMITTED)
})
