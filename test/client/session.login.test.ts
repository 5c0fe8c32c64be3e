import { describe, expect, test } from 'vitest'
import { type Credentials, connect } from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeProducer } from './fake-producer.ts'
import { auth, authOf, caps, offers, response, scramServer } from './wire.ts'

const pencil: Credentials = { identity: 'user', password: 'pencil' }

async function open(producer: FakeProducer, credentials = pencil) {
  const opening = connect('tcp://far:1', credentials, { clock: new FakeClock(), dial: async () => producer })
  opening.catch(() => {})
  await producer.opened
  return { opening }
}

/** Goes as far as the client-final-message, and returns what the producer would answer to it. */
async function proven(producer: FakeProducer) {
  const first = await producer.next()
  const scram = scramServer(authOf(first).data)
  producer.say(response(first.seq, 1, 0), auth(scram.serverFirst))
  const final = await producer.next()
  return { first, final, ...scram.final(authOf(final).data) }
}

describe('scram-sha-256', () => {
  test('is used if it is offered, whatever else is, and does not reveal the password', async () => {
    const producer = new FakeProducer({ loopback: false })
    const { opening } = await open(producer)
    producer.say(caps('password', 'scram-sha-256'))
    const { first, final, isProven, serverFinal } = await proven(producer)
    expect(authOf(first)).toMatchObject({ method: 'scram-sha-256', data: expect.stringMatching(/^n,,n=user,r=/) })
    expect(authOf(final).method).toBe('')
    expect(isProven).toBe(true)
    producer.say(response(final.seq, 1, 0), auth(serverFinal))
    const last = await producer.next()
    expect(authOf(last)).toEqual({ method: '', data: '' })
    producer.say(response(last.seq, 0, 9), offers({}))
    const consumer = await opening
    expect(consumer.channel).toBe(9)
    expect(consumer.isConfidential).toBe(false)
    expect(producer.hex).not.toContain(Buffer.from('pencil').toString('hex'))
  })

  test('ends the connection if the producer has not proven that it knows the password', async () => {
    const producer = new FakeProducer()
    const { opening } = await open(producer)
    producer.say(caps('scram-sha-256'))
    const { final } = await proven(producer)
    producer.say(response(final.seq, 1, 0), auth(`v=${Buffer.alloc(32).toString('base64')}`))
    await expect(opening).rejects.toMatchObject({ name: 'ConnectionError', code: 'SERVER_NOT_PROVEN' })
    expect(producer.isClosed).toBe(true)
    expect(producer.sent).toHaveLength(2)
  })

  test.each([
    ['at once', 1],
    ['in place of its signature', 2],
  ])('rejects an OK %s, which is an admission without proof', async (_, steps) => {
    const producer = new FakeProducer()
    const { opening } = await open(producer)
    producer.say(caps('scram-sha-256'))
    const { seq } = steps === 1 ? await producer.next() : (await proven(producer)).final
    producer.say(response(seq, 0, 9), offers({}))
    await expect(opening).rejects.toMatchObject({ code: 'SERVER_NOT_PROVEN' })
    expect(producer.isClosed).toBe(true)
  })
})

describe('a password', () => {
  test('is two XDR strings, and is sent to this machine if nothing better is offered', async () => {
    const producer = new FakeProducer()
    const { opening } = await open(producer, { identity: 'tc', password: 's3' })
    producer.say(caps('password'))
    const { seq } = await producer.next()
    // The AUTH of the specification, but for its seq.
    expect(producer.hex).toBe(
      `0000002800000006${seq.toString(16).padStart(8, '0')}0000000870617373776f726400000010000000027463000000000002733300`.concat(
        '00',
      ),
    )
    producer.say(response(seq, 0, 5), offers({}))
    expect((await opening).channel).toBe(5)
  })

  test('is never sent to another machine in the clear', async () => {
    const producer = new FakeProducer({ loopback: false })
    const { opening } = await open(producer)
    producer.say(caps('password'))
    await expect(opening).rejects.toMatchObject({ code: 'NO_METHOD', message: expect.stringContaining('password') })
    expect(producer.sent).toEqual([])
  })

  test('is sent to another machine under encryption', async () => {
    const producer = new FakeProducer({ loopback: false, encrypted: true })
    const { opening } = await open(producer)
    producer.say(caps('password'))
    producer.say(response((await producer.next()).seq, 0, 5), offers({}))
    expect((await opening).isConfidential).toBe(true)
  })

  test('is not sent if the credentials are for scram-sha-256 only', async () => {
    const producer = new FakeProducer()
    const { opening } = await open(producer, { ...pencil, methods: ['scram-sha-256'] })
    producer.say(caps('password'))
    await expect(opening).rejects.toMatchObject({ code: 'NO_METHOD' })
    expect(producer.sent).toEqual([])
  })
})

test('a refusal names the producer and the user, and not the password', async () => {
  const producer = new FakeProducer()
  const { opening } = await open(producer)
  producer.say(caps('password'))
  producer.say(response((await producer.next()).seq, 2, 0, 'nobody gets in'))
  const error = await opening.catch((reason: Error) => reason)
  expect(error).toMatchObject({ code: 'LOGIN_FAILED', cause: { status: 'AUTH_FAILED', detail: 'nobody gets in' } })
  expect(String(error)).toContain('tcp://far:1 as user')
  expect(String(error)).not.toContain('pencil')
  expect(producer.isClosed).toBe(true)
})

test('a producer that asks for more than a password is disconnected', async () => {
  const producer = new FakeProducer()
  const { opening } = await open(producer)
  producer.say(caps('password'))
  producer.say(response((await producer.next()).seq, 1, 0), auth('more'))
  await expect(opening).rejects.toMatchObject({ code: 'LOGIN_FAILED' })
  expect(producer.isClosed).toBe(true)
})
