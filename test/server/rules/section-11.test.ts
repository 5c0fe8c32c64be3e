import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ScramClient } from '../../../auth/scram/client.ts'
import { done } from '../../support/administration.ts'
import { command, join, status, str } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'

let producer: TestProducer
beforeAll(async () => {
  producer = await TestProducer.start()
})
afterAll(() => producer.stop())

const PASSWORD = 'admin-password'
const password = (identity: string, secret: string) => join(str(identity), str(secret))
const text = (words: string) => Buffer.from(words)
const first = (user: string, nonce = 'abcdefgh') => text(`n,,n=${user},r=${nonce}`)

async function connect(peer: Parameters<TestProducer['connect']>[0] = {}): Promise<RawPeer> {
  const raw = producer.connect(peer)
  await raw.until('caps')
  return raw
}

async function auth(peer: RawPeer, method: string, data: Uint8Array): Promise<number> {
  peer.send(command.auth(1, method, data))
  return (await peer.response(1)).status
}

/** A whole SCRAM exchange; gives the last status. */
async function scram(peer: RawPeer, identity: string, secret: string): Promise<number> {
  const client = new ScramClient({ identity, password: secret })
  if ((await auth(peer, 'scram-sha-256', client.first())) !== status.AUTH_NEEDED) return status.AUTH_FAILED
  const proof = await client.final((await peer.until('auth')).data)
  const proven = await auth(peer, '', proof)
  return proven === status.AUTH_NEEDED ? auth(peer, '', new Uint8Array(0)) : proven
}

const offered = async (peer: RawPeer): Promise<string[]> => {
  const caps = peer.log[0]?.kind === 'caps' ? peer.log[0].bytes.toString('latin1') : ''
  return ['scram-sha-256', 'password'].filter((method) => caps.includes(method))
}

describe('the method password', () => {
  it('is one step: two XDR strings', async () => {
    expect(await auth(await connect(), 'password', password('admin', PASSWORD))).toBe(status.OK)
    expect(await auth(await connect(), 'password', password('default/admin', PASSWORD))).toBe(status.OK)
  })

  it.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array(0)],
    ['one string', str('admin')],
    ['three strings', join(password('admin', PASSWORD), str(''))],
    ['padding that is not zero', join(str('admin').fill(1, 9), str(PASSWORD))],
  ])('with %s is INVALID_ARGUMENT', async (_, data) => {
    expect(await auth(await connect(), 'password', data)).toBe(status.INVALID_ARGUMENT)
  })

  it('is offered where the link is encrypted or the listener is bound to loopback, and taken nowhere else', async () => {
    const remote = { address: '192.0.2.7', loopback: false }
    for (const peer of [{ loopback: true }, { ...remote, encrypted: true }]) {
      expect(await offered(await connect(peer))).toEqual(['scram-sha-256', 'password'])
    }
    const plain = await connect(remote)
    expect(await offered(plain)).toEqual(['scram-sha-256'])
    expect(await auth(plain, 'password', password('admin', PASSWORD))).toBe(status.UNSUPPORTED)
  })

  it('is not offered on loopback where the operator says so', async () => {
    const strict = await TestProducer.start({ config: { auth: { plainOnLoopback: false } } })
    const peer = strict.connect()
    await peer.until('caps')
    expect(await offered(peer)).toEqual(['scram-sha-256'])
    expect(await auth(peer, 'password', password('admin', PASSWORD))).toBe(status.UNSUPPORTED)
    expect(await scram(peer, 'admin', PASSWORD)).toBe(status.OK)
    await strict.stop()
  })
})

describe('the method scram-sha-256', () => {
  it('is offered always, and admits who knows the password', async () => {
    const remote = await connect({ address: '192.0.2.7', loopback: false })
    expect(await scram(remote, 'admin', PASSWORD)).toBe(status.OK)
    expect(await scram(await connect(), 'default/admin', PASSWORD)).toBe(status.OK)
  })

  it('admits only by the third step: after the proof nothing else is allowed yet', async () => {
    const peer = await connect()
    const client = new ScramClient({ identity: 'admin', password: PASSWORD })
    await auth(peer, 'scram-sha-256', client.first())
    const proof = await client.final((await peer.until('auth')).data)
    expect(await auth(peer, '', proof)).toBe(status.AUTH_NEEDED)
    peer.send(command.collect(2, 'test.a'))
    expect(await peer.response(2)).toMatchObject({ status: status.NOT_AUTHENTICATED })
    expect(await auth(peer, '', text('x'))).toBe(status.INVALID_ARGUMENT)
    expect(await auth(peer, '', new Uint8Array(0))).toBe(status.INVALID_ARGUMENT)
  })

  it('gives an unknown user the same steps, a stable salt and the same iteration count', async () => {
    const challenge = async (user: string): Promise<string> => {
      const peer = await connect()
      expect(await auth(peer, 'scram-sha-256', first(user))).toBe(status.AUTH_NEEDED)
      return (await peer.until('auth')).data.toString().replace(/^r=[^,]+,/, '')
    }
    const [nobody, again, other, known] = [
      await challenge('nobody'),
      await challenge('nobody'),
      await challenge('nobody2'),
      await challenge('admin'),
    ]
    expect(nobody).toBe(again)
    expect(nobody).not.toBe(other)
    expect(nobody).toMatch(/^s=.{24},i=4096$/)
    expect(known).toMatch(/^s=.{24},i=4096$/)
  })

  it('never says which half was wrong', async () => {
    const details: string[] = []
    for (const [identity, secret] of [
      ['nobody3', 'x'],
      ['admin', 'wrong'],
    ] as const) {
      const peer = await connect()
      expect(await scram(peer, identity, secret)).toBe(status.AUTH_FAILED)
      expect(await auth(peer, 'password', password(identity, secret))).toBe(status.AUTH_FAILED)
      for (const message of peer.log) if (message.kind === 'response' && message.detail) details.push(message.detail)
    }
    expect(new Set(details).size).toBe(1)
    expect(details).toHaveLength(4)
  })
})

describe('an exchange', () => {
  it('with a method that is not offered is UNSUPPORTED', async () => {
    const peer = await connect()
    for (const method of ['certificate', 'scram-sha-256-plus', 'PASSWORD', 'x']) {
      expect(await auth(peer, method, new Uint8Array(0))).toBe(status.UNSUPPORTED)
    }
  })

  it('that is not under way cannot be gone on with: an empty method is INVALID_ARGUMENT', async () => {
    const peer = await connect()
    expect(await auth(peer, '', new Uint8Array(0))).toBe(status.INVALID_ARGUMENT)
    expect(await auth(peer, 'password', password('admin', 'wrong1'))).toBe(status.AUTH_FAILED)
    expect(await auth(peer, '', text('x'))).toBe(status.INVALID_ARGUMENT)
  })

  it('starts anew with another method, and with the same one again', async () => {
    const peer = await connect()
    const old = new ScramClient({ identity: 'admin', password: PASSWORD })
    await auth(peer, 'scram-sha-256', old.first())
    const proof = await old.final((await peer.until('auth')).data)
    await auth(peer, 'scram-sha-256', first('admin'))
    expect(await auth(peer, '', proof)).toBe(status.AUTH_FAILED)
    await auth(peer, 'scram-sha-256', first('admin'))
    expect(await auth(peer, 'password', password('admin', PASSWORD))).toBe(status.OK)
  })

  it('that failed three times closes', async () => {
    const peer = await connect()
    expect(await auth(peer, 'password', password('n', 'x'))).toBe(status.AUTH_FAILED)
    expect(await auth(peer, 'x', text(''))).toBe(status.UNSUPPORTED)
    expect(await auth(peer, '', text(''))).toBe(status.INVALID_ARGUMENT)
    expect(await auth(peer, 'scram-sha-256', text('no scram'))).toBe(status.AUTH_FAILED)
    peer.send(command.auth(1, 'password', password('n', 'x')), command.nop(2))
    expect(await peer.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })
})

describe('10 seconds after the connect', () => {
  it('a peer that has not succeeded gets a notice and is closed, whatever it has sent', async () => {
    const [silent, busy] = [await connect(), await connect()]
    await auth(busy, 'scram-sha-256', first('admin'))
    producer.clock.advance(9_999)
    busy.send(command.nop(5))
    await busy.response(5)
    expect(silent.closed).toBe(false)
    producer.clock.advance(1)
    for (const peer of [silent, busy]) {
      expect(await peer.until('notice')).toMatchObject({ code: 6, channel: 0 })
      expect(await peer.next()).toEqual({ kind: 'closed' })
    }
  })

  describe('where a hash takes its time', () => {
    beforeAll(async () => {
      await producer.stop()
      producer = await TestProducer.start({ hashRounds: 12 })
    })
    afterAll(async () => {
      await producer.stop()
      producer = await TestProducer.start()
    })

    it('a peer whose password is still being looked at is closed and not admitted', async () => {
      // The hasher works one by one, and somebody unknown costs it as much as a new hash.
      const before = await connect()
      before.send(command.auth(1, 'password', password('nobody', PASSWORD)))
      const peer = await connect()
      const channels = producer.server.parts.producer.registry.count
      peer.send(command.auth(1, 'password', password('admin', PASSWORD)))
      await new Promise((resolve) => setImmediate(resolve))
      producer.clock.advance(10_000)
      expect(await peer.next()).toMatchObject({ kind: 'notice', code: 6 })
      expect(await peer.next()).toEqual({ kind: 'closed' })
      // When this one is through, so is the other.
      expect(await auth(await connect(), 'password', password('admin', 'wrong2'))).toBe(status.AUTH_FAILED)
      expect(producer.server.parts.producer.registry.count).toBe(channels)
    })
  })

  it('a peer that has succeeded stays', async () => {
    const seat = await producer.seat()
    producer.clock.advance(600_000)
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
  })
})

describe('guessing', () => {
  const from = (address: string) => connect({ address, loopback: false })
  const guess = async (address: string, secret: string) => scram(await from(address), 'victim', secret)

  it('is throttled by identity and network prefix from the sixth failure within a minute on', async () => {
    const right = 'the-right-one'
    await producer.addUser('victim', { password: right })
    for (let failure = 0; failure < 5; failure++) expect(await guess('192.0.2.9', 'wrong')).toBe(status.AUTH_FAILED)
    expect(await guess('192.0.2.9', right)).toBe(status.OK)
    for (let failure = 0; failure < 6; failure++) expect(await guess('192.0.2.9', 'wrong')).toBe(status.AUTH_FAILED)
    expect(await guess('192.0.2.9', right)).toBe(status.AUTH_FAILED)
    expect(await guess('192.0.2.200', right)).toBe(status.AUTH_FAILED)
    expect(await guess('192.0.3.9', right)).toBe(status.OK)
    producer.clock.advance(60_000)
    expect(await guess('192.0.2.9', right)).toBe(status.OK)
  })

  it('that is throttled is answered at once and counts for the three', async () => {
    for (let failure = 0; failure < 6; failure++) await guess('203.0.113.5', 'wrong')
    const peer = await from('203.0.113.5')
    for (let answer = 0; answer < 3; answer++) {
      expect(await auth(peer, 'scram-sha-256', first('victim'))).toBe(status.AUTH_FAILED)
    }
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })

  it('that is throttled says for how long, alike for names that exist and names that do not', async () => {
    await producer.addUser('known', { password: 'the-right-one' })
    const details: string[] = []
    for (const [name, address] of [
      ['known', '198.51.100.5'],
      ['unknown', '203.0.113.6'],
    ] as const) {
      for (let failure = 0; failure < 6; failure++) await scram(await from(address), name, 'wrong')
      producer.clock.advance(20_500)
      const peer = await from(address)
      peer.send(command.auth(1, 'scram-sha-256', first(name)))
      details.push((await peer.response(1)).detail)
    }
    const wait = 'too many logins have failed: the next one is checked in 40 seconds'
    expect(details).toEqual([wait, wait])
  })
})

describe('a peer that does not take its responses', () => {
  it('is not read on before AUTH', async () => {
    const { stream } = await connect()
    stream.pause()
    const batch = join(...Array.from({ length: 500 }, (_, seq) => command.nop(seq)))
    let taken = 0
    for (let n = 0; n < 100; n++) stream.write(batch, () => taken++)
    for (let turns = 0; turns < 20; turns++) await producer.settle()
    expect(taken).toBeLessThan(100)
    stream.destroy()
    await producer.settle()
  })
})

describe('what was said', () => {
  it('stands in no log: no password, no proof', async () => {
    await auth(await connect(), 'password', password('admin', 'a-secret-that-is-wrong'))
    expect(producer.logged.join('')).not.toMatch(/a-secret-that-is-wrong|admin-password/)
    expect(producer.logged.length).toBeGreaterThan(0)
  })
})

describe('a connection above `limits.connections`', () => {
  it('takes the place of one that has not logged in; beside those that have, it is closed at once', async () => {
    const small = await TestProducer.start({ config: { limits: { connections: 2 } } })
    const first = await small.seat()
    const second = small.connect()
    await second.until('caps')
    const third = await small.seat()
    await small.settle()
    expect([second.closed, second.pending()]).toEqual([true, []])
    const fourth = small.connect()
    await small.settle()
    expect([fourth.closed, fourth.pending()]).toEqual([true, []])
    await first.ok((seq) => command.nop(seq))
    third.peer.destroy()
    await small.settle()
    await small.connect().until('caps')
    await first.ok((seq) => command.nop(seq))
    await small.stop()
  })

  it('takes it from its own network, if that has most', async () => {
    const limits = { connections: 8, unauthenticatedPerNetwork: 8 }
    const small = await TestProducer.start({ config: { limits } })
    const bob = small.connect({ address: '198.51.100.1', loopback: false })
    const eve = Array.from({ length: 20 }, () => small.connect({ address: '192.0.2.1', loopback: false }))
    await small.settle()
    expect(eve.map(({ closed }) => closed)).toEqual([...new Array(13).fill(true), ...new Array(7).fill(false)])
    await bob.until('caps')
    expect(await scram(bob, 'admin', PASSWORD)).toBe(status.OK)
    expect(small.server.sessions.admission).toMatchObject({ evicted: 13, refused: 0, unauthenticated: 7, open: 8 })
    await small.stop()
  })
})

describe('passwords that wait to be checked', () => {
  it('of one network delay neither those of others nor `user.passwd`; what finds no place is BUSY', async () => {
    const flooded = await TestProducer.start()
    await flooded.addUser('root', { role: 'admin' })
    const root = await flooded.seat('root')
    const from = async (address: string): Promise<RawPeer> => {
      const peer = flooded.connect({ address, loopback: false, encrypted: true })
      await peer.until('caps')
      return peer
    }
    const eve = await Promise.all(Array.from({ length: 100 }, (_, n) => from(`192.0.2.${n}`)))
    const bob = await from('198.51.100.1')
    const answers: number[] = []
    const failures = (): number => answers.filter((each) => each === status.AUTH_FAILED).length
    const flood = eve.map(async (peer, n) => {
      peer.send(command.auth(1, 'password', password(`nobody${n}`, 'x')))
      answers.push((await peer.response(1)).status)
    })
    const given = { user: 'root', password: 'another password' }
    const setting = done(root, 'user.passwd', given).then(() => failures())
    const login = auth(bob, 'password', password('admin', PASSWORD)).then((answer) => [answer, failures()])
    const [[answer, ofLogin], ofSetting] = [await login, await setting]
    await Promise.all(flood)
    expect(answer).toBe(status.OK)
    expect(Math.max(ofSetting, ofLogin ?? 0)).toBeLessThan(failures())
    expect(answers.filter((each) => each === status.BUSY)).toHaveLength(100 - failures())
    expect(failures()).toBeLessThan(60)
    await flooded.stop()
  })
})

describe('an identity with more channels than it may have', () => {
  it('can still connect, and delete some', async () => {
    const small = await TestProducer.start({ config: { limits: { channelsPerIdentity: 2 } } })
    const seat = await small.seat()
    const [one] = [await seat.defChannel(), await seat.defChannel()]
    expect(await seat.ask((seq) => command.defChannel(seq))).toMatchObject({ status: status.QUOTA_EXCEEDED })
    const again = await small.seat()
    const metric = await again.collect('test.a')
    expect(await again.ask((seq) => command.subscribe(seq, metric))).toMatchObject({ status: status.QUOTA_EXCEEDED })
    expect(await again.ask((seq) => command.buffer(seq, metric))).toMatchObject({ status: status.QUOTA_EXCEEDED })
    await again.ok((seq) => command.subscribe(seq, metric, one))
    await again.ok((seq) => command.delChannel(seq, one))
    const other = await again.collect('test.a')
    expect(await again.ok((seq) => command.subscribe(seq, other))).toBe(0)
    await small.stop()
  })
})
