import { describe, expect, test } from 'vitest'
import { ClientConnection } from '../../client/connection.ts'
import type { ConnectionError } from '../../client/errors.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeProducer, loggedIn, settle } from './fake-producer.ts'
import { caps, gap, large, notice, response, value, values } from './wire.ts'

function connection(deadlineMs = 30_000) {
  const producer = new FakeProducer()
  const clock = new FakeClock()
  const closed: { reason: ConnectionError; isOurs: boolean }[] = []
  const received: string[] = []
  const connection = new ClientConnection(producer, {
    clock,
    peer: 'tcp://far:1 as tc',
    deadlineMs,
    listener: {
      message: ({ kind, transaction }) => received.push(`${kind} ${transaction}`),
      notice: ({ code }) => received.push(`notice ${code}`),
      closed: (_, reason, isOurs) => closed.push({ reason, isOurs }),
    },
  })
  return { producer, clock, closed, received, connection }
}

/** The same, logged in. */
async function admitted(deadlineMs?: number) {
  const made = connection(deadlineMs)
  made.producer.say(caps('password'))
  const step = made.connection.authenticate('password', new Uint8Array(0), true)
  await made.producer.grant('AUTH password', 9)
  await step
  return made
}

test('messages are delivered in their order', async () => {
  const { producer, received } = await admitted()
  producer.say(caps('password'), value(7, 1), gap(2, 7), notice(1, 'window full'), value(7, 3))
  expect(received).toEqual(['value 1', 'gap 2', 'notice 1', 'value 3'])
})

test('what a response changes is changed before the messages after it are delivered', async () => {
  const { producer, received, connection: ours } = await admitted()
  void ours.request('SET_CHANNEL', { channel: 12 }, () => received.push('switched'))
  const { seq } = await producer.next()
  producer.say(value(7, 1), response(seq, 0, 0), value(7, 2))
  expect(received).toEqual(['value 1', 'switched', 'value 2'])
})

test('values larger than 64 KiB are taken after the login', async () => {
  const { producer, consumer } = await loggedIn()
  producer.say(large(7, 1, 100_000))
  const { value } = await consumer[Symbol.asyncIterator]().next()
  expect(value).toMatchObject({ kind: 'value', value: { type: 8, value: { length: 100_000 } } })
})

test('and not before it', () => {
  const { producer, closed } = connection()
  producer.say(caps('password'), Buffer.from('00010004', 'hex'))
  expect(closed).toMatchObject([{ reason: { code: 'PROTOCOL', message: expect.stringContaining('65540') } }])
})

test('capabilities are the latest ones', async () => {
  const { producer, consumer } = await loggedIn()
  expect(consumer.capabilities).toMatchObject({ auth: ['password'], maxFrameBytes: 65536 })
  producer.say(caps('scram-sha-256'))
  expect(consumer.capabilities?.auth).toEqual(['scram-sha-256'])
})

test.each([
  ['begins with something other than its capabilities', [value(7, 0, 1)], /instead of its capabilities/],
  ['sends values before the login', [caps('password'), value(7, 1)], /values before the login/],
  ['sends GAPs before the login', [caps('password'), gap(2, 7)], /values before the login/],
  [
    'sends AUTH unasked',
    [caps('password'), Buffer.from('00000008fffffffd00000000', 'hex')],
    /without being asked for it/,
  ],
  ['answers what was not sent', [caps('password'), response(77, 0, 0)], /never sent \(seq 77\)/],
  ['speaks another protocol', [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')], /Is it a Monitoring Protocol/],
  [
    'sends a message that is none',
    [caps('password'), Buffer.from('0000000880000000ffffffff', 'hex')],
    /80000000|2147483648/,
  ],
])('a producer that %s is disconnected, and whatever waits is rejected with the reason', async (_, frames, message) => {
  const { producer, clock, closed, connection: ours } = connection()
  const waiting = ours.request('NOP', {}).catch((error: unknown) => error)
  await settle()
  producer.say(...frames)
  expect(closed).toMatchObject([
    { isOurs: false, reason: { code: 'PROTOCOL', message: expect.stringMatching(message) } },
  ])
  expect(await waiting).toBe(closed[0]?.reason)
  expect(producer.isClosed).toBe(true)
  expect(clock.timers).toBe(0)
  producer.say(value(7, 1))
  producer.hangUp()
  expect(closed).toHaveLength(1)
})

test('values after an OK to a step that is not the last one are not delivered: the producer has proven nothing', async () => {
  const { producer, received, closed, connection: ours } = connection()
  producer.say(caps('scram-sha-256'))
  const step = ours.authenticate('scram-sha-256', new Uint8Array(0), false)
  await producer.grant('AUTH scram-sha-256', 9, value(7, 1))
  expect(await step).toEqual({ channel: 9 })
  expect(received).toEqual([])
  expect(closed).toMatchObject([{ reason: { code: 'PROTOCOL' } }])
})

test('nothing after an error in the same piece is delivered', async () => {
  const { producer, received } = await admitted()
  producer.say(value(7, 1), response(77, 0, 0), value(7, 2))
  expect(received).toEqual(['value 1'])
})

test.each([
  [undefined, 'CLOSED'],
  [2, 'SUPERSEDED'],
  [3, 'CLOSED'],
  [4, 'WITHDRAWN'],
  [5, 'CHANNEL_GONE'],
  [6, 'PROTOCOL'],
])('after NOTICE %s the end means %s, in the words of the producer', (code, meaning) => {
  const { producer, closed } = connection()
  producer.say(caps('password'), notice(1, 'window full'))
  if (code !== undefined) producer.say(notice(code, 'because'), notice(1, 'window full'))
  producer.hangUp()
  const message = `tcp://far:1 as tc: the producer closed the connection${code === undefined ? '' : ': because'}`
  expect(closed).toMatchObject([{ isOurs: false, reason: { code: meaning, message } }])
})

test('what broke the connection is the cause', () => {
  const { producer, closed } = connection()
  const cause = new Error('ECONNRESET')
  producer.hangUp(cause)
  expect(closed).toMatchObject([{ reason: { code: 'CLOSED', cause, message: expect.stringContaining('ECONNRESET') } }])
})

test('closing first sends what was written, and rejects later commands', async () => {
  const { producer, clock, closed, connection: ours } = connection()
  producer.say(caps('password'))
  const waiting = ours.request('COMMIT', { transaction: 5, through: false }).catch((error: unknown) => error)
  ours.close()
  ours.close()
  expect(closed).toMatchObject([{ isOurs: true, reason: { code: 'CLOSED' } }])
  expect(await waiting).toBe(ours.ended)
  await expect(ours.request('NOP', {})).rejects.toBe(ours.ended)
  expect(await producer.rest()).toEqual(['COMMIT 5'])
  expect(producer.isClosed).toBe(true)
  expect(clock.timers).toBe(0)
})

test('the capabilities are not awaited beyond the end', async () => {
  const { producer, connection: ours } = connection()
  producer.hangUp()
  await expect(ours.ready).rejects.toMatchObject({ code: 'CLOSED' })
})

test('reading pauses only while no response is due, since the reader may be waiting for it', async () => {
  const { producer, connection: ours } = connection()
  producer.say(caps('password'))
  ours.hold(true, true)
  expect(producer.isPaused).toBe(true)
  const nop = ours.request('NOP', {})
  expect(producer.isPaused).toBe(false)
  await producer.grant('NOP')
  await nop
  expect(producer.isPaused).toBe(true)
  ours.hold(false, true)
  expect(producer.isPaused).toBe(false)
})

test('while reading is paused, 256 KiB are read every 10 s if a window bounds what comes', async () => {
  const { producer, clock, connection: ours } = await admitted()
  ours.hold(true, true)
  clock.advance(9_999)
  expect(producer.isPaused).toBe(true)
  clock.advance(1)
  expect(producer.isPaused).toBe(false)
  const one = values(7, ...Array.from({ length: 1_000 }, (_, i) => i + 1))
  let taken = 0
  for (; !producer.isPaused; taken += one.length) producer.say(one)
  expect(taken).toBeGreaterThanOrEqual(256 << 10)
  expect(taken).toBeLessThan((256 << 10) + one.length)
})

test('no timer is left of a connection that is closed while reading is paused', () => {
  const { clock, connection: ours } = connection()
  ours.hold(true, true)
  ours.close()
  expect(clock.timers).toBe(0)
})

test('and nothing at all if there is no window', () => {
  const { producer, clock, connection: ours } = connection()
  producer.say(caps('password'))
  ours.hold(true, false)
  clock.advance(60_000)
  expect(producer.isPaused).toBe(true)
})

describe('the response to a command', () => {
  /** Sends a NOP; `received` has its number and what came of it. */
  function sender({ connection: ours, received }: Awaited<ReturnType<typeof admitted>>) {
    let count = 0
    return () => {
      const number = ++count
      ours
        .request('NOP', {}, () => received.push(`${number} answered`))
        .catch(({ code }) => received.push(`${number} ${code}`))
    }
  }
  const ok = (seq: number) => response(seq, 0, 0)

  test('goes to its own command, once', async () => {
    const made = await admitted()
    const send = sender(made)
    send()
    send()
    const [a, b] = [await made.producer.next(), await made.producer.next()]
    made.producer.say(ok(b.seq), ok(a.seq))
    expect(made.received).toEqual(['2 answered', '1 answered'])
    made.producer.say(ok(a.seq))
    expect(made.closed).toMatchObject([
      { reason: { code: 'PROTOCOL', message: expect.stringContaining('never sent') } },
    ])
  })

  test('may take the whole deadline for each command', async () => {
    const made = await admitted(1_000)
    const { clock, received } = made
    const send = sender(made)
    const receivedAfter = async (ms: number) => {
      clock.advance(ms)
      await settle()
      return received
    }
    send()
    clock.advance(600)
    send()
    expect(await receivedAfter(399)).toEqual([])
    expect(await receivedAfter(1)).toEqual(['1 TIMEOUT'])
    expect(await receivedAfter(599)).toEqual(['1 TIMEOUT'])
    expect(await receivedAfter(1)).toEqual(['1 TIMEOUT', '2 TIMEOUT'])
    // The one that is left watches for silence.
    expect(clock.timers).toBe(1)
  })

  test('may take it also after commands that were answered', async () => {
    const made = await admitted(1_000)
    const { clock, producer, received } = made
    const send = sender(made)
    send()
    producer.say(ok((await producer.next()).seq))
    clock.advance(5_000)
    send()
    clock.advance(1_000)
    await settle()
    expect(received).toEqual(['1 answered', '2 TIMEOUT'])
  })

  test('is ignored if it is late, but only once', async () => {
    const made = await admitted(1_000)
    const { clock, producer, received, closed } = made
    sender(made)()
    const { seq } = await producer.next()
    clock.advance(1_000)
    producer.say(ok(seq))
    await settle()
    expect([received, closed]).toEqual([['1 TIMEOUT'], []])
    producer.say(ok(seq))
    expect(closed).toMatchObject([{ reason: { code: 'PROTOCOL' } }])
  })

  test('is not awaited after the end, and no timer is left', async () => {
    const made = await admitted()
    const send = sender(made)
    send()
    send()
    made.connection.close()
    await settle()
    expect(made.received).toEqual(['1 CLOSED', '2 CLOSED'])
    expect(made.clock.timers).toBe(0)
  })
})

test.each([
  ['whose length is missing', undefined],
  ['that is no bytes', {}],
  ['that is null', null],
])('a command that cannot be written, with a value %s, is rejected, and those beside it are sent', async (_, value) => {
  const { producer, connection: ours } = await admitted()
  const arg = { name: 'after', type: BasicType.OPAQUE, value: value as unknown as Uint8Array }
  const bad = ours.request('QUERY', { metric: 'producer.channels', args: [arg] })
  const beside = ours.request('NOP', {})
  await expect(bad).rejects.toThrow(TypeError)
  await producer.grant('NOP', 0)
  await expect(beside).resolves.toBe(0)
  const later = ours.request('NOP', {})
  await producer.grant('NOP', 0)
  await expect(later).resolves.toBe(0)
})
