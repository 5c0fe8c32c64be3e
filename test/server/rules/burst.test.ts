import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command, join, status, str } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import { mixedCommands, pieces, prepareMix } from '../../support/mixed-commands.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

let producer: TestProducer
beforeEach(async () => {
  producer = await TestProducer.start({ config: { listen: { tcp: { host: '127.0.0.1', port: 0 } } } })
})
afterEach(() => meanwhile(producer.stop()))

async function overTcp(): Promise<Seat> {
  const { host, port } = producer.server.tcp as { host: string; port: number }
  const peer = new RawPeer(connect({ host, port }))
  peer.send(command.auth(0xfff00000, 'password', join(str('admin'), str('admin-password'))))
  const { result } = await peer.response(0xfff00000)
  return new Seat(peer, result)
}

/** Reads until there are so many responses to seqs below `count`; gives how often each seq was answered. */
async function answersTo(seat: Seat, count: number): Promise<Map<number, number>> {
  const answers = new Map<number, number>()
  for (let left = count; left > 0; ) {
    const message = await seat.peer.next()
    if (message.kind === 'closed') throw new Error(`the connection ended with ${left} responses missing`)
    if (message.kind !== 'response') continue
    answers.set(message.seq, (answers.get(message.seq) ?? 0) + 1)
    left--
  }
  return answers
}

function expectEachOnce(answers: ReadonlyMap<number, number>, count: number): void {
  expect(answers.size).toBe(count)
  expect([...answers.values()].every((times) => times === 1)).toBe(true)
  expect([...answers.keys()].every((seq) => seq >= 0 && seq < count)).toBe(true)
}

async function expectNothingMore(seat: Seat): Promise<void> {
  await producer.settle()
  expect(seat.peer.pending().filter(({ kind }) => kind === 'response')).toEqual([])
  seat.peer.send(command.nop(0xffffffff))
  expect(await seat.peer.response(0xffffffff)).toMatchObject({ status: status.OK })
}

const MANY = times({ short: 10_000, long: 20_000 })
const FEWER = times({ short: 3_000, long: 10_000 })

describe('a pipelined burst of mixed commands', () => {
  const cut: [string, () => Promise<Seat>, number, number][] = [
    ['over TCP in one piece', overTcp, Number.POSITIVE_INFINITY, MANY],
    ['over TCP in pieces of any size', overTcp, 60_000, FEWER],
    ['over a pair of streams in one piece', () => producer.seat(), Number.POSITIVE_INFINITY, FEWER],
    ['over a pair of streams in small pieces', () => producer.seat(), 700, FEWER],
  ]
  it.each(cut)('%s gets exactly one response to each, with the right seq', async (_, open, most, count) => {
    const seat = await open()
    const frames = mixedCommands(count, 1, await prepareMix(seat))
    const sending =
      most === Number.POSITIVE_INFINITY ? write(seat.peer.stream, [join(...frames)]) : sendCut(seat, frames, most)
    expectEachOnce(await answersTo(seat, count), count)
    await sending
    await expectNothingMore(seat)
  })
})

const sendCut = (seat: Seat, frames: readonly Uint8Array[], most: number): Promise<void> =>
  write(seat.peer.stream, pieces(frames, most, 2))

async function write(stream: Duplex, chunks: Iterable<Uint8Array>): Promise<void> {
  for (const chunk of chunks) {
    if (!stream.write(chunk)) await new Promise((resolve) => stream.once('drain', resolve))
  }
}

/** Lets a millisecond pass in each turn: after a batch of many channels the next one waits. */
async function meanwhile(done: Promise<unknown>): Promise<void> {
  let isDone = false
  const over = done.finally(() => {
    isDone = true
  })
  while (!isDone) {
    producer.clock.advance(1)
    await Promise.race([over, new Promise((resolve) => setImmediate(resolve))])
  }
  await over
}

describe('the same commands', () => {
  it('get the same answers, in one piece or byte by byte', async () => {
    const count = times({ short: 1_000, long: 4_000 })
    const reported: string[][] = []
    for (const most of [Number.POSITIVE_INFINITY, 1]) {
      const seat = await producer.seat(`cut${most}`)
      const frames = mixedCommands(count, 3, await prepareMix(seat))
      const from = seat.peer.log.length
      const chunks = most === 1 ? pieces(frames, most, 2) : [join(...frames)]
      await meanwhile(Promise.all([write(seat.peer.stream, chunks), answersTo(seat, count)]))
      const answers = new Array<string>(count)
      for (const message of seat.peer.log.slice(from)) {
        if (message.kind === 'response') answers[message.seq] = `${message.status} ${message.detail}`
      }
      reported.push(answers)
    }
    expect(reported[1]).toEqual(reported[0])
    expect(new Set(reported[0]?.map((answer) => answer.split(' ')[0])).size).toBeGreaterThan(8)
  })
})

describe('while the values of many connections wait for the next round', () => {
  it('every answer comes, and the values of other tenants do', async () => {
    const seats: Seat[] = []
    for (let n = 0; n < 40; n++) seats.push(await producer.seat('many'))
    for (const seat of seats) await seat.follow('test.a')
    const push = new PushSensor(producer.server.parts.hub, 'other.', { tenant: 'globex' })
    const other = await producer.seat('one', 'globex')
    push.push('other.tick', { type: 2, value: 0 }, EPOCH)
    const tick = await other.collect('other.tick')
    await other.ok((seq) => command.subscribe(seq, tick))
    const came = () =>
      seats.map(({ peer }) => {
        return peer.log.filter((message) => message.kind === 'value' && message.transaction > 0).length
      })
    // The first value of a channel waits for the disk.
    producer.emit(0)
    await meanwhile(Promise.all(seats.map((seat) => seat.value())))
    producer.clock.advance(10)
    for (let n = 1; n <= 3; n++) {
      producer.emit(n)
      push.push('other.tick', { type: 2, value: n }, EPOCH + n)
      await other.value()
      for (const seat of [other, seats[0] as Seat]) await seat.query('producer.channels')
    }
    await producer.settle()
    expect(came()).toEqual(new Array(40).fill(2))
    producer.clock.advance(10)
    await producer.settle()
    expect(came()).toEqual(new Array(40).fill(4))
  })
})
