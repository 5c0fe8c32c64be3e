/** Section 11, AUTH: the methods token, certificate and scram-sha-256-plus, and how guessing grows slower. */
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { command, status, str, type, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'
import { RfcScram } from '../../support/rfc-scram.ts'
import type { Seat } from '../../support/seat.ts'

let producer: TestProducer
let root: Seat
beforeAll(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('alice', { tenant: 'acme', password: 'wonderland' })
  root = await producer.seat('root')
})
afterAll(() => producer.stop())

const NOTHING = new Uint8Array(0)
const TLS13: Partial<AuthPeer> = { address: '192.0.2.7', loopback: false, encrypted: true, exporter: randomBytes(32) }
const METHODS = ['certificate', 'scram-sha-256-plus', 'scram-sha-256', 'token', 'password']

function holding(subject: string, validForMs = 60_000): Partial<AuthPeer> {
  const validUntil = producer.clock.wallMs() + validForMs
  return { ...TLS13, certificate: { subject, serial: '01', fingerprint: 'AB', raw: NOTHING, validUntil } }
}

async function auth(peer: RawPeer, method: string, data: Uint8Array | string = NOTHING): Promise<number> {
  peer.send(command.auth(1, method, Buffer.from(data)))
  return (await peer.response(1)).status
}

async function offered(peer: Partial<AuthPeer>): Promise<string[]> {
  const caps = await producer.connect(peer).until('caps')
  const found = METHODS.map((method) => ({ method, at: caps.bytes.indexOf(Buffer.from(str(method))) }))
  return found
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)
    .map(({ method }) => method)
}

async function scram(peer: Partial<AuthPeer>, client: RfcScram, method = client.method): Promise<number> {
  const raw = producer.connect(peer)
  const begun = await auth(raw, method, client.clientFirst())
  if (begun !== status.AUTH_NEEDED) return begun
  const proven = await auth(raw, '', client.clientFinal((await raw.until('auth')).data))
  if (proven !== status.AUTH_NEEDED) return proven
  expect(client.isProvenBy((await raw.until('auth')).data)).toBe(true)
  return auth(raw, '')
}

const alice = (more: Partial<ConstructorParameters<typeof RfcScram>[0]> = {}) =>
  new RfcScram({ username: 'acme/alice', password: 'wonderland', ...more })

async function tokenFor(user: string, seconds?: number): Promise<string> {
  const token = `cnb_${randomBytes(32).toString('base64url')}`
  const hash = createHash('sha256').update(token).digest('hex')
  const expires = seconds === undefined ? [] : [['expires_in_s', type.uint64, u64(seconds)] as const]
  const added = await root.execute(
    'token.add',
    ['user', type.string, str(user)],
    ['tenant', type.string, str('acme')],
    ['hash', type.string, str(hash)],
    ...expires,
  )
  expect(added).toMatchObject({ outcome: 'ok' })
  return token
}

describe('PRODUCER_CAPS', () => {
  it('lists the methods of this link, the best first', async () => {
    expect(await offered({ loopback: true })).toEqual(['scram-sha-256', 'token', 'password'])
    expect(await offered({ address: '192.0.2.7', loopback: false })).toEqual(['scram-sha-256'])
    expect(await offered({ ...TLS13, exporter: undefined })).toEqual(['scram-sha-256', 'token', 'password'])
    expect(await offered(holding('acme/alice'))).toEqual(METHODS)
  })
})

describe('the method token', () => {
  it('is one step: the bytes of the token', async () => {
    const token = await tokenFor('alice')
    expect(await auth(producer.connect(), 'token', token)).toBe(status.OK)
    expect(await auth(producer.connect(TLS13), 'token', token)).toBe(status.OK)
    expect(await auth(producer.connect({ ...TLS13, encrypted: false }), 'token', token)).toBe(status.UNSUPPORTED)
  })

  it('with anything else is AUTH_FAILED, and the third closes', async () => {
    const peer = producer.connect()
    const token = await tokenFor('alice')
    expect(await auth(peer, 'token')).toBe(status.AUTH_FAILED)
    expect(await auth(peer, 'token', `${token}=`)).toBe(status.AUTH_FAILED)
    expect(await auth(peer, 'token', 'e30.e30.e30')).toBe(status.AUTH_FAILED)
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })

  it('fails from the moment the token has expired', async () => {
    const token = await tokenFor('alice', 60)
    producer.clock.advance(59_999)
    expect(await auth(producer.connect(), 'token', token)).toBe(status.OK)
    producer.clock.advance(1)
    expect(await auth(producer.connect(), 'token', token)).toBe(status.AUTH_FAILED)
  })

  it('stands in no log', async () => {
    const token = await tokenFor('alice')
    await auth(producer.connect(), 'token', token)
    await auth(producer.connect(), 'token', `${token}x`)
    expect(producer.logged.join('')).not.toContain(token)
  })
})

describe('the method certificate', () => {
  it('takes nothing, and admits whom the common name names', async () => {
    expect(await auth(producer.connect(holding('acme/alice')), 'certificate')).toBe(status.OK)
    expect(await auth(producer.connect(holding('acme/alice')), 'certificate', 'x')).toBe(status.INVALID_ARGUMENT)
    expect(await auth(producer.connect(holding('acme/nobody')), 'certificate')).toBe(status.AUTH_FAILED)
    expect(await auth(producer.connect(holding('local')), 'certificate')).toBe(status.AUTH_FAILED)
    expect(await auth(producer.connect(holding('acme/alice', 0)), 'certificate')).toBe(status.AUTH_FAILED)
    expect(await auth(producer.connect(TLS13), 'certificate')).toBe(status.UNSUPPORTED)
  })
})

describe('the method scram-sha-256-plus', () => {
  const { exporter } = TLS13

  it('admits a client that is bound to this very connection', async () => {
    expect(await scram(TLS13, alice({ exporter }))).toBe(status.OK)
    expect(await scram(TLS13, alice({ exporter: randomBytes(32) }))).toBe(status.AUTH_FAILED)
    expect(await scram({ ...TLS13, exporter: undefined }, alice({ exporter }))).toBe(status.UNSUPPORTED)
  })

  it('is not to be talked away: a client that could bind and was not offered it fails', async () => {
    expect(await scram(TLS13, alice({ gs2Header: 'y,,' }))).toBe(status.AUTH_FAILED)
    expect(await scram({ ...TLS13, exporter: undefined }, alice({ gs2Header: 'y,,' }))).toBe(status.OK)
    expect(await scram(TLS13, alice())).toBe(status.OK)
  })

  it('knows one binding, and the other method none', async () => {
    const unique = alice({ exporter, gs2Header: 'p=tls-unique,,' })
    expect(await scram(TLS13, unique)).toBe(status.AUTH_FAILED)
    expect(await scram(TLS13, alice(), 'scram-sha-256-plus')).toBe(status.AUTH_FAILED)
    expect(await scram(TLS13, alice({ exporter }), 'scram-sha-256')).toBe(status.AUTH_FAILED)
  })
})

describe('guessing on and on', () => {
  it('is looked at less and less, while the owner gets in from elsewhere', async () => {
    const [here, elsewhere] = [{ address: '198.51.100.1' }, { address: '203.0.113.1' }]
    for (const minutes of [1, 2, 4]) {
      for (let i = 0; i < 6; i++) expect(await scram(here, alice({ password: 'x' }))).toBe(status.AUTH_FAILED)
      producer.clock.advance(minutes * 60_000 - 1)
      expect(await scram(here, alice())).toBe(status.AUTH_FAILED)
      expect(await scram(elsewhere, alice())).toBe(status.OK)
      producer.clock.advance(1)
    }
    expect(await scram(here, alice())).toBe(status.OK)
  })
})
