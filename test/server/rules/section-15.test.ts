import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { command, join, str, type, u32 } from '../../support/bytes.ts'
import { DeafPeer } from '../../support/deaf-peer.ts'
import { TestProducer } from '../../support/producer.ts'
import { numberOf, type Seat } from '../../support/seat.ts'

let producer: TestProducer
let users = 0
let seat: Seat
beforeAll(async () => {
  producer = await TestProducer.start()
})
beforeEach(async () => {
  seat = await producer.seat(`user${++users}`)
})
afterAll(() => producer.stop())

const VALUES = 9_000

/** Stops reading, with more on the way than what lies between the two ends takes. */
async function stall(): Promise<void> {
  await seat.follow(`test.of${users}`)
  seat.peer.stream.pause()
  await emitValues()
}

/** Of a metric that only the user of this test follows. */
async function emitValues(): Promise<void> {
  for (let value = 0; value < VALUES; value++) producer.emit(value, `test.of${users}`)
  await producer.settle()
}

describe('a peer that takes no byte for 30 s while bytes wait', () => {
  it('is closed, and its channel stays', async () => {
    await stall()
    producer.clock.advance(29_999)
    await producer.settle()
    expect(seat.peer.stream.destroyed).toBe(false)
    producer.clock.advance(1)
    await producer.settle()
    expect(seat.peer.stream.destroyed).toBe(true)
    const again = await producer.seat(`user${users}`)
    expect(await again.ledger(seat.channel)).toMatchObject({ state: 'waiting', accepted: VALUES, queued: VALUES })
    await again.setChannel(seat.channel)
    expect((await again.values(VALUES)).map(numberOf)).toEqual(Array.from({ length: VALUES }, (_, value) => value))
  })

  it('is not closed while it takes some from time to time', async () => {
    await stall()
    for (let minute = 0; minute < 5; minute++) {
      producer.clock.advance(29_000)
      seat.peer.stream.resume()
      await producer.settle()
      seat.peer.stream.pause()
      await emitValues()
    }
    expect(seat.peer.stream.destroyed).toBe(false)
    seat.peer.stream.resume()
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
    expect(await seat.values(VALUES * 6)).toHaveLength(VALUES * 6)
  })

  it('leaves no timer when it ends by itself', async () => {
    const timers = producer.clock.timers
    seat = await producer.seat(`user${users}`)
    await stall()
    expect(producer.clock.timers).toBeGreaterThan(timers)
    seat.peer.destroy()
    await producer.settle()
    expect(producer.clock.timers).toBe(timers)
  })

  it('is also given up when the connection has ended already and it does not take the last words', async () => {
    await stall()
    const sessions = producer.server.sessions.count
    seat.peer.send(u32(3))
    await producer.settle()
    expect(producer.server.sessions.count).toBe(sessions - 1)
    expect(seat.peer.stream.destroyed).toBe(false)
    producer.clock.advance(30_000)
    await producer.settle()
    expect(seat.peer.stream.destroyed).toBe(true)
  })
})

describe('silence alone', () => {
  it('is no reason to close', async () => {
    producer.clock.advance(600_000)
    producer.clock.leap(86_400_000)
    await producer.settle()
    expect(seat.peer.closed).toBe(false)
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
  })
})

describe('NOP', () => {
  it('is answered, before AUTH and after', async () => {
    const peer = producer.connect()
    peer.send(command.nop(1))
    expect(await peer.response(1)).toMatchObject({ status: 0, result: 0 })
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
  })
})

describe('a user who is removed', () => {
  it('gets a notice and is closed within a second, on every connection', async () => {
    const second = await producer.seat(`user${users}`)
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    const name = ['user', type.string, str(`user${users}`)] as const
    expect(await boss.execute('user.remove', name)).toMatchObject({ outcome: 'ok' })
    for (const one of [seat, second]) {
      expect(await one.notice()).toMatchObject({ code: 4, channel: one.channel })
      await one.closed()
    }
  })
})

describe('a producer that stops', () => {
  it('tells every peer, authenticated or not', async () => {
    const mine = await TestProducer.start()
    const [one, two] = [await mine.seat(), mine.connect()]
    await mine.stop()
    expect(await one.notice()).toMatchObject({ code: 3, channel: one.channel })
    await one.closed()
    expect(await two.until('notice')).toMatchObject({ code: 3, channel: 0 })
    expect(await two.next()).toEqual({ kind: 'closed' })
  })
})

describe('a peer that closes its side', () => {
  it('still gets the responses it is owed, also those that wait for the disk', async () => {
    const metric = await seat.collect('test.a')
    producer.store.manual = true
    seat.peer.send(join(command.subscribe(100, metric), command.nop(101), command.defChannel(102)))
    seat.peer.stream.end()
    await producer.settle()
    expect(seat.peer.closed).toBe(false)
    producer.store.manual = false
    producer.store.complete()
    expect(await seat.response(101)).toMatchObject({ status: 0 })
    expect(await seat.response(100)).toMatchObject({ status: 0 })
    expect(await seat.response(102)).toMatchObject({ status: 0 })
    await seat.closed()
  })

  it('has all its commands handled, however many they are', async () => {
    const peer = await DeafPeer.login(producer, 'admin', 'admin-password')
    const before = peer.written.length
    peer.send(...Array.from({ length: 500 }, (_, seq) => command.query(seq, 'test.a')))
    peer.finish()
    while (!peer.ended) await producer.settle()
    const responses = Buffer.concat(peer.written.slice(before))
      .toString('hex')
      .match(/00000010ffffffff/g)
    expect(responses).toHaveLength(500)
  })

  it('in the middle of a frame is closed', async () => {
    seat.peer.send(u32(400))
    seat.peer.stream.end()
    await seat.closed()
  })
})
