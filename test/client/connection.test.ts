import { expect, test } from 'vitest'
import { Connection } from '../../client/connection.ts'
import type { ConnectionError } from '../../client/errors.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeProducer, loggedIn, settle } from './fake-producer.ts'
import { caps, gap, large, notice, response, value, values } from './wire.ts'

function connection() {
  const producer = new FakeProducer()
  const clock = new FakeClock()
  const closed: { reason: ConnectionError; isOurs: boolean }[] = []
  const told: string[] = []
  const connection = new Connection(producer, {
    clock,
    peer: 'tcp://far:1 as tc',
    deadlineMs: 30_000,
    value: ({ transaction }) => told.push(`value ${transaction}`),
    gap: ({ transaction }) => told.push(`gap ${transaction}`),
    notice: ({ code }) => told.push(`notice ${code}`),
    closed: (reason, isOurs) => closed.push({ reason, isOurs }),
  })
  return { producer, clock, closed, told, connection }
}

/** The same, logged in. */
async function admitted() {
  const made = connection()
  made.producer.say(caps('password'))
  const step = made.connection.authenticate('password', new Uint8Array(0), true)
  await made.producer.grant('AUTH password', 9)
  await step
  return made
}

test('messages are told in their order', async () => {
  const { producer, told } = await admitted()
  producer.say(caps('password'), value(7, 1), gap(2, 7), notice(1, 'window full'), value(7, 3))
  expect(told).toEqual(['value 1', 'gap 2', 'notice 1', 'value 3'])
})

test('what a response changes is done before what stands behind it is told', async () => {
  const { producer, told, connection: ours } = await admitted()
  void ours.request('SET_CHANNEL', { channel: 12 }, () => told.push('turned'))
  const { seq } = await producer.next()
  producer.say(value(7, 1), response(seq, 0, 0), value(7, 2))
  expect(told).toEqual(['value 1', 'turned', 'value 2'])
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

test('capabilities are those that were told last', async () => {
  const { producer, consumer } = await loggedIn()
  expect(consumer.capabilities).toMatchObject({ auth: ['password'], maxFrameBytes: 65536 })
  producer.say(caps('scram-sha-256'))
  expect(consumer.capabilities?.auth).toEqual(['scram-sha-256'])
})

test.each([
  ['begins with something else than its capabilities', [value(7, 0, 1)], /capabilities have to stand/],
  ['sends values before the login', [caps('password'), value(7, 1)], /values before the login/],
  ['sends GAPs before the login', [caps('password'), gap(2, 7)], /values before the login/],
  ['sends AUTH unasked', [caps('password'), Buffer.from('00000008fffffffd00000000', 'hex')], /without being asked/],
  ['answers what was not sent', [caps('password'), response(77, 0, 0)], /never sent \(seq 77\)/],
  ['speaks another protocol', [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')], /is that a Monitoring Protocol/],
  [
    'sends a message that is none',
    [caps('password'), Buffer.from('0000000880000000ffffffff', 'hex')],
    /80000000|2147483648/,
  ],
])('a producer that %s is left, and everything that waits is told why', async (_, frames, message) => {
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

test('values that stand behind an OK to a step that is not the last one are nobody’s: the producer has proven nothing', async () => {
  const { producer, told, closed, connection: ours } = connection()
  producer.say(caps('scram-sha-256'))
  const step = ours.authenticate('scram-sha-256', new Uint8Array(0), false)
  await producer.grant('AUTH scram-sha-256', 9, value(7, 1))
  expect(await step).toEqual({ channel: 9 })
  expect(told).toEqual([])
  expect(closed).toMatchObject([{ reason: { code: 'PROTOCOL' } }])
})

test('nothing is told of what stands behind an error in the same piece', async () => {
  const { producer, told } = await admitted()
  producer.say(value(7, 1), response(77, 0, 0), value(7, 2))
  expect(told).toEqual(['value 1'])
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

test('closing sends first what was written, and what is asked afterwards is refused', async () => {
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

test('the capabilities are not waited for beyond the end', async () => {
  const { producer, connection: ours } = connection()
  producer.hangUp()
  await expect(ours.ready).rejects.toMatchObject({ code: 'CLOSED' })
})

test('reading rests only while no response is owed, for whoever reads may be waiting for it', async () => {
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

test('while reading rests, 256 KiB are taken every 10 s, where a window bounds what comes', async () => {
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

test('no timer is left behind a connection that is closed while reading rests', () => {
  const { clock, connection: ours } = connection()
  ours.hold(true, true)
  ours.close()
  expect(clock.timers).toBe(0)
})

test('and nothing at all where there is no window', () => {
  const { producer, clock, connection: ours } = connection()
  producer.say(caps('password'))
  ours.hold(true, false)
  clock.advance(60_000)
  expect(producer.isPaused).toBe(true)
})
