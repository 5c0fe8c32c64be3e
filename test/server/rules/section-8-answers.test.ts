/** Section 8, Answers: what QUERY and GET of a continuous metric give. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { atH1, numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

const INVALID_ARGUMENT = 6
const NO_SUCH_ID = 8
const BUSY = 13
const FLAT_WINDOW = [
  ['window', type.uint32, u32(1)],
  ['channel', type.uint32, u32(0)],
] as const

describe('Answers', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  const which = (number: number): Uint8Array => args(['which', type.uint32, u32(number)])
  const reading = (value: number) => ({ value: { type: 2 as const, value }, time: EPOCH + value })

  async function values(of: Seat = seat): Promise<ValueMessage[]> {
    await producer.settle()
    return of.rest().filter((message): message is ValueMessage => message.kind === 'value')
  }

  it('have transaction id 0, the time of the measurement, and are in no ledger', async () => {
    const id = await seat.collect('slow.value')
    await seat.ok((seq) => command.get(seq, id))
    const query = await seat.ok((seq) => command.query(seq, 'slow.value', which(2)))
    producer.slow.asked[0]?.(reading(1))
    producer.slow.asked[1]?.(reading(2))
    const answers = await seat.values(2)
    expect(answers).toMatchObject([
      { metric: id, transaction: 0, time: EPOCH + 1 },
      { metric: query, transaction: 0, time: EPOCH + 2 },
    ])
    expect(await seat.ledger()).toMatchObject({ accepted: 0, queued: 0, in_flight: 0 })
  })

  it('are outside the window, and overtake what it keeps back', async () => {
    await seat.execute('channel.configure', ...FLAT_WINDOW)
    const id = await seat.follow('test.a')
    const before = (await seat.ledger()).in_flight
    expect(before).toBe(1)
    producer.emit(1)
    producer.emit(2)
    await seat.ok((seq) => command.get(seq, id))
    expect(numberOf(await seat.value())).toBe(2)
    expect(numberOf(await seat.query('test.a', atH1))).toBe(2)
    expect(await seat.ledger()).toMatchObject({ in_flight: 1, queued: 2 })
  })

  it('are stored nowhere: after a crash they do not come again', async () => {
    const id = await seat.follow('test.a')
    producer.emit(1)
    await seat.ok((seq) => command.get(seq, id))
    const [first, answer] = await seat.values(2)
    expect([first?.transaction === 0, answer?.transaction === 0].sort()).toEqual([false, true])
    producer = await producer.crash()
    const next = await producer.seat()
    await next.setChannel(seat.channel)
    expect(await values(next)).toHaveLength(1)
  })

  it('GET for another channel is answered there alone', async () => {
    const other = await producer.seat()
    const id = await seat.collect('slow.value')
    await seat.ok((seq) => command.get(seq, id, other.channel))
    producer.slow.asked[0]?.(reading(1))
    expect(numberOf(await other.value())).toBe(1)
    expect(await values()).toEqual([])
  })

  it('GET is queued as any value if its channel has no connection by then, in the limits and in the ledger', async () => {
    const channel = await seat.defChannel()
    const id = await seat.follow('test.a', channel)
    const slow = await seat.collect('slow.value')
    await seat.ok((seq) => command.get(seq, slow, channel))
    producer.slow.asked[0]?.(reading(1))
    await producer.settle()
    expect(await seat.ledger(channel)).toMatchObject({ accepted: 1, queued: 1 })
    await seat.setChannel(channel)
    const value = await seat.value()
    expect(value).toMatchObject({ metric: slow, time: EPOCH + 1 })
    expect(value.transaction).toBeGreaterThan(0)
    expect(id).toBeGreaterThan(0)
    expect((await seat.commit(value.transaction)).status).toBe(0)
  })

  it('GET is queued, too, if the connection goes before the answer is handed over to it', async () => {
    const channel = await seat.defChannel()
    const slow = await seat.collect('slow.value')
    const other = await producer.seat()
    await seat.ok((seq) => command.get(seq, slow, channel))
    producer.store.manual = true
    // Its response waits for the disk, and nothing of the channel is sent before.
    other.send((seq) => command.setChannel(seq, channel))
    await producer.settle()
    producer.slow.asked[0]?.(reading(1))
    await producer.settle()
    other.peer.destroy()
    await producer.settle()
    producer.store.manual = false
    producer.store.complete()
    await producer.settle()
    expect(await seat.ledger(channel)).toMatchObject({ accepted: 1, queued: 1 })
  })

  it('QUERY is dropped if its channel has no connection by then', async () => {
    const channel = await seat.defChannel()
    await seat.setChannel(channel)
    await seat.ok((seq) => command.query(seq, 'slow.value'))
    seat.peer.destroy()
    await producer.settle()
    producer.slow.asked[0]?.(reading(1))
    const next = await producer.seat()
    await next.setChannel(channel)
    expect(await values(next)).toEqual([])
    expect(await next.ledger()).toMatchObject({ accepted: 0 })
  })

  it('is cancelled by STOP for that channel, and only for that one', async () => {
    const other = await producer.seat()
    const id = await seat.follow('test.a', other.channel)
    const slow = await seat.collect('slow.value')
    await other.ok((seq) => command.buffer(seq, slow))
    // Binding measures at once: that reading is not the GET's.
    await seat.ok((seq) => command.get(seq, slow))
    await seat.ok((seq) => command.get(seq, slow, other.channel))
    await seat.ok((seq) => command.stop(seq, slow))
    for (const answer of producer.slow.asked) answer(reading(1))
    expect(await values()).toEqual([])
    expect((await values(other)).map(({ metric, transaction }) => [metric, transaction])).toEqual([[slow, 0]])
    expect(id).toBeGreaterThan(0)
  })

  it('of an id that STOP destroyed never comes', async () => {
    const slow = await seat.collect('slow.value')
    await seat.ok((seq) => command.get(seq, slow))
    await seat.ok((seq) => command.stop(seq, slow, 0xffffffff))
    producer.slow.asked[0]?.(reading(1))
    expect(await values()).toEqual([])
    expect((await seat.ask((seq) => command.get(seq, slow))).status).toBe(NO_SUCH_ID)
  })

  it('of a QUERY that was stopped never comes', async () => {
    const id = await seat.ok((seq) => command.query(seq, 'slow.value'))
    await seat.ok((seq) => command.stop(seq, id))
    producer.slow.asked[0]?.(reading(1))
    expect(await values()).toEqual([])
  })

  describe('deadline', () => {
    it('is 10 s: then VOID comes, and the late value does not', async () => {
      const id = await seat.collect('slow.value')
      await seat.ok((seq) => command.get(seq, id))
      const query = await seat.ok((seq) => command.query(seq, 'slow.value', which(2)))
      producer.clock.advance(9_999)
      expect(await values()).toEqual([])
      const now = producer.clock.microseconds()
      producer.clock.advance(1)
      const answers = await seat.values(2)
      expect(answers.map(({ metric }) => metric).sort()).toEqual([id, query].sort())
      for (const answer of answers) {
        expect(answer).toMatchObject({ transaction: 0, type: type.void, time: now + 1000 })
        expect(answer.value).toHaveLength(0)
      }
      for (const answer of producer.slow.asked) answer(reading(1))
      expect(await values()).toEqual([])
    })

    it('is what `deadline_ms` says, of every continuous metric', async () => {
      const list = args(['deadline_ms', type.uint32, u32(250)])
      await seat.ok((seq) => command.query(seq, 'slow.value', list))
      producer.clock.advance(250)
      expect(await seat.value()).toMatchObject({ type: type.void })
      for (const metric of ['test.a', 'host.load.one', 'producer.stats', 'host.*']) {
        expect((await seat.ask((seq) => command.query(seq, metric, list))).status).toBe(0)
      }
      expect((await seat.ask((seq) => command.collect(seq, 'events.thing', list))).status).toBe(INVALID_ARGUMENT)
    })

    it('is at most 600,000 ms', async () => {
      for (const [limit, status] of [
        [600_000, 0],
        [600_001, INVALID_ARGUMENT],
      ] as const) {
        const list = args(['deadline_ms', type.uint32, u32(limit)])
        expect((await seat.ask((seq) => command.collect(seq, 'slow.value', list))).status).toBe(status)
      }
      const text = args(['deadline_ms', type.string, str('1000')])
      expect((await seat.ask((seq) => command.collect(seq, 'slow.value', text))).status).toBe(INVALID_ARGUMENT)
    })

    it('is each one’s own where a reading is shared', async () => {
      const soon = await seat.ok((seq) =>
        command.query(seq, 'slow.value', args(['deadline_ms', type.uint32, u32(1000)])),
      )
      const late = await seat.ok((seq) => command.query(seq, 'slow.value'))
      expect(producer.slow.asked).toHaveLength(1)
      producer.clock.advance(1000)
      expect(await seat.value()).toMatchObject({ metric: soon, type: type.void })
      producer.slow.asked[0]?.(reading(5))
      const answer = await seat.value()
      expect([answer.metric, numberOf(answer)]).toEqual([late, 5])
    })
  })

  describe('outstanding measurements', () => {
    async function fill(count: number, from = 0): Promise<void> {
      const seqs = Array.from({ length: count }, (_, index) =>
        seat.send((seq) => command.query(seq, 'slow.value', which(from + index))),
      )
      for (const seq of seqs) expect((await seat.response(seq)).status).toBe(0)
    }

    it('are at most 1,024 of an identity, on all its connections: then BUSY, until one is answered', async () => {
      await fill(1024)
      const other = await producer.seat()
      const more = (of: Seat) => of.ask((seq) => command.query(seq, 'slow.value', which(5000)))
      expect((await more(other)).status).toBe(BUSY)
      expect((await more(seat)).status).toBe(BUSY)
      const id = await seat.collect('slow.value', which(5001))
      expect((await seat.ask((seq) => command.get(seq, id))).status).toBe(BUSY)
      const stranger = await producer.seat('stranger')
      expect((await more(stranger)).status).toBe(0)
      producer.slow.asked[0]?.(reading(1))
      await seat.value()
      expect((await more(seat)).status).toBe(0)
      expect((await seat.ask((seq) => command.get(seq, id))).status).toBe(BUSY)
    })

    it('that are shared count once', async () => {
      await fill(1023)
      for (let i = 0; i < 5; i++) {
        expect((await seat.ask((seq) => command.query(seq, 'slow.value', which(0)))).status).toBe(0)
      }
      expect(producer.slow.asked).toHaveLength(1023)
      await fill(1, 2000)
      expect((await seat.ask((seq) => command.query(seq, 'slow.value', which(3000)))).status).toBe(BUSY)
    })

    it('end with their deadline, and their late values end nothing else', async () => {
      await fill(1024)
      producer.clock.advance(10_000)
      await seat.values(1024)
      await fill(1024)
      for (const answer of producer.slow.asked.slice(0, 1024)) answer(reading(1))
      await producer.settle()
      expect((await seat.ask((seq) => command.query(seq, 'slow.value', which(5000)))).status).toBe(BUSY)
    })
  })
})
