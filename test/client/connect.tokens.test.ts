/** New tokens, and tokens that a function provides for each connection. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { connect, newToken } from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeNetwork, FakeProducer, settle } from './fake-producer.ts'
import { authOf, caps, notice } from './wire.ts'

const WITHDRAWN = 4

test('a new token is 32 random bytes, and the producer gets only their hash', async () => {
  const { token, hash } = await newToken()
  expect(token).toMatch(/^cnb_[A-Za-z0-9_-]{43}$/)
  expect(hash).toBe(createHash('sha256').update(token).digest('hex'))
  expect((await newToken()).token).not.toBe(token)
})

describe('a function of tokens', () => {
  async function admit(producer: FakeProducer): Promise<string> {
    await producer.opened
    producer.say(caps('token'))
    const sent = await producer.next()
    const { data } = authOf(sent)
    producer.say(
      Buffer.from(`00000010ffffffff${sent.seq.toString(16).padStart(8, '0')}0000000000000009`, 'hex'),
      caps('token'),
    )
    return data
  }

  async function connected(token: () => string | Promise<string>) {
    const clock = new FakeClock()
    const network = new FakeNetwork()
    const first = new FakeProducer()
    network.add(first)
    const opening = connect('tcp://far:1', { token }, { clock, dial: network.dial })
    opening.catch(() => {})
    const shown = await admit(first)
    return { clock, network, first, consumer: await opening, shown }
  }

  test('is called for each connection', async () => {
    let made = 0
    const { clock, network, first, consumer, shown } = await connected(async () => `t${++made}`)
    const second = new FakeProducer()
    network.add(second)
    first.hangUp()
    await settle()
    clock.advance(10_000)
    expect([shown, await admit(second)]).toEqual(['t1', 't2'])
    await consumer.close()
  })

  test('continues with a new token after a withdrawal', async () => {
    let made = 0
    const { clock, network, first, consumer } = await connected(() => `t${++made}`)
    const second = new FakeProducer()
    network.add(second)
    first.say(notice(WITHDRAWN, 'the token has expired'))
    first.hangUp()
    await settle()
    clock.advance(10_000)
    expect(await admit(second)).toBe('t2')
    await consumer.close()
  })

  test('that returns the withdrawn token again ends the consumer', async () => {
    const { clock, network, first, consumer } = await connected(() => 'the same')
    const ended = new Promise((resolve) => consumer.on('closed', resolve))
    first.say(notice(WITHDRAWN, 'the token was revoked'))
    first.hangUp()
    await settle()
    clock.advance(10_000)
    expect(await ended).toMatchObject({ code: 'WITHDRAWN', message: expect.stringContaining('was revoked') })
    expect(network.calls).toBe(1)
  })

  test('that fails makes `connect` reject, and nothing is dialled', async () => {
    const network = new FakeNetwork()
    const cause = new Error('the issuer is down')
    const opening = connect('tcp://far:1', { token: () => Promise.reject(cause) }, { dial: network.dial })
    await expect(opening).rejects.toMatchObject({
      code: 'NO_TOKEN',
      cause,
      message: expect.stringContaining('is down'),
    })
    expect(network.calls).toBe(0)
  })

  test('that fails later is called again', async () => {
    let made = 0
    const token = () => (++made === 2 ? Promise.reject(new Error('down')) : `t${made}`)
    const { clock, network, first, consumer } = await connected(token)
    const second = new FakeProducer()
    network.add(second)
    first.hangUp()
    for (let tries = 0; tries < 2; tries++) {
      await settle()
      clock.advance(10_000)
    }
    expect(await admit(second)).toBe('t3')
    await consumer.close()
  })

  test('that never settles is abandoned at the deadline', async () => {
    const clock = new FakeClock()
    const opening = connect('tcp://far:1', { token: () => new Promise(() => {}) }, { clock })
    opening.catch(() => {})
    clock.advance(10_000)
    await expect(opening).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(clock.timers).toBe(0)
  })
})

test('a token as text is final: once withdrawn there is no other', async () => {
  const network = new FakeNetwork()
  const producer = new FakeProducer()
  network.add(producer)
  const opening = connect('tcp://far:1', { token: 't' }, { clock: new FakeClock(), dial: network.dial })
  await producer.opened
  producer.say(caps('token'))
  await producer.grant('AUTH token', 9, caps('token'))
  const consumer = await opening
  const ended = new Promise((resolve) => consumer.on('closed', resolve))
  producer.say(notice(WITHDRAWN, 'the token was revoked'))
  producer.hangUp()
  expect(await ended).toMatchObject({ code: 'WITHDRAWN' })
  expect(network.calls).toBe(1)
})
