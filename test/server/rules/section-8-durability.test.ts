/** Section 8, Durability: what is sent before it is stored, what survives, what a crash skips and tells. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { balance } from '../../support/records.ts'
import { numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

const BUSY = 13
const NO_SUCH_TRANSACTION = 14
const RESTART = 5
const no = u32(0)

describe('Durability', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  async function unread(of: Seat, kind: 'value' | 'gap'): Promise<unknown[]> {
    await producer.settle()
    return of.rest().filter((message) => message.kind === kind)
  }

  async function resume(channel = seat.channel): Promise<Seat> {
    const next = await producer.seat()
    await next.setChannel(channel)
    return next
  }

  it('delivery need not wait for the disk; `stored` and `unstored` say how far it is', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    const first = await seat.value()
    await producer.settle()
    producer.store.manual = true
    producer.emit(2)
    const second = await seat.value()
    expect(numberOf(second)).toBe(2)
    expect(await seat.ledger()).toMatchObject({ accepted: 2, in_flight: 2, unstored: 1, stored: first.transaction })
    producer.store.complete()
    await producer.settle()
    expect(await seat.ledger()).toMatchObject({ accepted: 2, unstored: 0, stored: second.transaction })
  })

  it('what is committed already counts as stored', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    await seat.value()
    await producer.settle()
    producer.store.manual = true
    producer.emit(2)
    producer.emit(3)
    const [second, third] = await seat.values(2)
    seat.send((seq) => command.commit(seq, (second as ValueMessage).transaction))
    await producer.settle()
    expect(await seat.ledger()).toMatchObject({ stored: second?.transaction, unstored: 1 })
    seat.send((seq) => command.commit(seq, (third as ValueMessage).transaction))
    await producer.settle()
    expect(await seat.ledger()).toMatchObject({ stored: third?.transaction, unstored: 0 })
  })

  it('an id is not used before its range is reserved on disk', async () => {
    await seat.follow('test.a')
    await producer.settle()
    producer.store.manual = true
    producer.emit(1)
    expect(await unread(seat, 'value')).toEqual([])
    producer.store.complete()
    expect(numberOf(await seat.value())).toBe(1)
  })

  it('a stored value survives a crash; one that was not stored is reported by one GAP, reason 5, count 0', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    await seat.value()
    await producer.settle()
    producer.store.manual = true
    producer.emit(2)
    const lost = await seat.value()
    producer = await producer.crash()
    const next = await resume()
    expect(numberOf(await next.value())).toBe(1)
    const gap = await next.gap()
    expect(gap).toMatchObject({ reason: RESTART, count: 0, metric: 0, from: 0, to: 0 })
    expect(gap.transaction).toBeGreaterThan(lost.transaction)
    producer.emit(3)
    const after = await next.value()
    expect(after.transaction).toBe(gap.transaction + 1)
    expect(await unread(next, 'gap')).toEqual([])
    // The id that nobody has stored was given all the same.
    expect((await next.commit(lost.transaction)).status).toBe(0)
    expect((await next.commit(gap.transaction)).status).toBe(0)
    expect(balance(await next.ledger())).toBe(0)
  })

  it('a crash tells a GAP on each channel that was active, and on no other', async () => {
    const quiet = await seat.defChannel()
    const still = await seat.follow('test.b', quiet)
    const active = await seat.defChannel()
    await seat.follow('test.a', active)
    const never = await seat.defChannel()
    producer.emit(1, 'test.b')
    await producer.settle()
    producer.clock.advance(12_000)
    await producer.settle()
    producer.emit(1)
    await producer.settle()
    producer = await producer.crash()
    const reported = []
    for (const channel of [quiet, active, never]) {
      const next = await resume(channel)
      reported.push((await unread(next, 'gap')).length)
    }
    expect(reported).toEqual([0, 1, 0])
    expect(still).toBeGreaterThan(0)
  })

  it('a channel that was quiet for 10 s waits for a new range with its next value', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    const first = await seat.value()
    await producer.settle()
    producer.clock.advance(12_000)
    await producer.settle()
    producer.store.manual = true
    producer.emit(2)
    expect(await unread(seat, 'value')).toEqual([])
    producer.store.complete()
    await producer.settle()
    expect((await seat.value()).transaction).toBe(first.transaction + 1)
  })

  it('a clean stop loses nothing and tells no GAP', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    const first = await seat.value()
    producer.store.manual = true
    producer.emit(2)
    const second = await seat.value()
    producer = await producer.restart(1000)
    const next = await resume()
    expect((await next.values(2)).map(({ bytes }) => bytes)).toEqual([first.bytes, second.bytes])
    expect(await unread(next, 'gap')).toEqual([])
    producer.emit(3)
    expect((await next.value()).transaction).toBe(second.transaction + 1)
  })

  it('no id is given twice, not even after crashes with an empty queue', async () => {
    await seat.follow('test.a')
    const seen: number[] = []
    let current = seat
    for (let round = 0; round < 4; round++) {
      producer.emit(round)
      const value = await current.value()
      seen.push(value.transaction)
      // Not waited for: the crash may or may not have seen it.
      current.send((seq) => command.commit(seq, value.transaction))
      if (round % 2 === 0) await producer.settle()
      producer = await producer.crash()
      current = await resume()
      await producer.settle()
      current.rest()
    }
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
  })

  it('the ledger goes on from the last stored state', async () => {
    await seat.follow('test.a')
    for (const value of [1, 2, 3]) producer.emit(value)
    const [first] = await seat.values(3)
    await seat.commit((first as ValueMessage).transaction)
    producer = await producer.crash()
    const next = await resume()
    await next.values(2)
    expect(await next.ledger()).toMatchObject({ accepted: 3, committed: 1, in_flight: 2, queued: 0, unstored: 0 })
    producer.emit(4)
    await next.value()
    expect(await next.ledger()).toMatchObject({ accepted: 4, committed: 1, in_flight: 3 })
  })

  it('stops in force survive a crash: what was queued of a stopped id is passed over', async () => {
    await seat.execute('channel.configure', ['channel', type.uint32, u32(0)], ['window', type.uint32, u32(2)])
    const kept = await seat.follow('test.b')
    const stopped = await seat.follow('test.a')
    const result = await seat.ledger()
    expect(result.in_flight).toBe(1)
    for (const value of [1, 2, 3]) {
      producer.emit(value, 'test.b')
      producer.emit(value)
    }
    expect((await seat.value()).metric).toBe(kept)
    await seat.ok((seq) => command.stop(seq, stopped))
    producer = await producer.crash()
    const next = await resume()
    const seen: number[] = []
    for (let i = 0; i < 4; i++) {
      const value = await next.value()
      seen.push(value.metric)
      await next.commit(value.transaction)
    }
    expect(seen.slice(1)).toEqual([kept, kept, kept])
    expect(await unread(next, 'value')).toEqual([])
    expect((await next.ledger()).dropped.stopped).toBe(3)
  })

  describe('durable = false', () => {
    it('gives transaction id 0 and no window, counts sent as committed, and knows no COMMIT', async () => {
      await seat.execute(
        'channel.configure',
        ['channel', type.uint32, u32(0)],
        ['durable', type.boolean, no],
        ['window', type.uint32, u32(1)],
      )
      await seat.follow('test.a')
      for (const value of [1, 2, 3]) producer.emit(value)
      const values = await seat.values(3)
      expect(values.map(({ transaction }) => transaction)).toEqual([0, 0, 0])
      expect(values.map(numberOf)).toEqual([1, 2, 3])
      // The result of the configuration was already the first such value.
      expect(await seat.ledger()).toMatchObject({ durable: false, accepted: 4, committed: 4, in_flight: 0, queued: 0 })
      expect((await seat.commit(1)).status).toBe(NO_SUCH_TRANSACTION)
      expect((await seat.commit(0)).status).toBe(0)
    })

    it('keeps at most 1 MiB, and its values survive nothing', async () => {
      const channel = await seat.defChannel(['durable', type.boolean, no])
      await seat.follow('test.a', channel)
      for (let value = 0; value < 40_000; value++) producer.emit(value)
      const full = await seat.ledger(channel)
      expect(full.queued_bytes).toBeGreaterThan(900_000)
      expect(full.queued_bytes).toBeLessThanOrEqual(1 << 20)
      expect(balance(full)).toBe(0)
      await producer.settle()
      producer = await producer.crash()
      const next = await resume(channel)
      expect(await unread(next, 'value')).toEqual([])
      expect(await next.ledger()).toMatchObject({ queued: 0, bindings: [{ name: 'test.a', mode: 'subscribe' }] })
      producer.emit(1)
      expect(await next.value()).toMatchObject({ transaction: 0 })
    })

    it('may be changed only while nothing is queued or in flight, else BUSY', async () => {
      const channel = await seat.defChannel()
      const id = await seat.follow('test.a', channel)
      const configure = (durable: Uint8Array) =>
        seat.ask((seq) =>
          command.execute(
            seq,
            'channel.configure',
            args(['channel', type.uint32, u32(channel)], ['durable', type.boolean, durable]),
          ),
        )
      producer.emit(1)
      expect((await configure(no)).status).toBe(BUSY)
      expect((await seat.ledger(channel)).durable).toBe(true)
      // What says nothing new is no change.
      expect((await configure(u32(1))).status).toBe(0)
      const reader = await resume(channel)
      const value = await reader.value()
      expect((await configure(no)).status).toBe(BUSY)
      await reader.commit(value.transaction)
      expect((await configure(no)).status).toBe(0)
      producer.emit(2)
      expect((await reader.value()).transaction).toBe(0)
      expect(id).toBeGreaterThan(0)
    })

    it('and back: bindings and values survive a crash again, and ids go on', async () => {
      await seat.follow('test.a')
      producer.emit(1)
      const first = await seat.value()
      await seat.commit(first.transaction)
      const configure = async (durable: Uint8Array): Promise<void> => {
        await seat.execute(
          'channel.configure',
          ['channel', type.uint32, u32(seat.channel)],
          ['durable', type.boolean, durable],
        )
      }
      await configure(no)
      await seat.follow('test.b')
      await producer.settle()
      await configure(u32(1))
      producer.emit(2)
      const second = await seat.value()
      expect(second.transaction).toBeGreaterThan(first.transaction)
      await producer.settle()
      producer = await producer.crash()
      const next = await resume()
      expect((await next.ledger()).bindings).toHaveLength(2)
      expect((await next.values(2)).map(({ bytes }) => bytes)).toContainEqual(second.bytes)
      producer.emit(3)
      producer.emit(4, 'test.b')
      expect((await next.values(2)).map(numberOf).sort()).toEqual([3, 4])
    })

    it('of a DEF_CHANNELed channel over a crash, and back: no id is given twice', async () => {
      const channel = await seat.defChannel()
      await seat.setChannel(channel)
      await seat.follow('test.a')
      producer.emit(1)
      const first = await seat.value()
      await seat.commit(first.transaction)
      const configure = (of: Seat, durable: Uint8Array) =>
        of.execute('channel.configure', ['channel', type.uint32, u32(channel)], ['durable', type.boolean, durable])
      await configure(seat, no)
      await producer.settle()
      producer = await producer.crash()
      const next = await resume(channel)
      await configure(next, u32(1))
      producer.emit(2)
      await next.value()
      // The result of the configuration is one of them.
      const ids = next.peer.log.flatMap((message) => (message.kind === 'value' ? [message.transaction] : []))
      const given = ids.filter((id) => id > 0)
      expect(given).toHaveLength(2)
      for (const id of given) expect(id).toBeGreaterThan(first.transaction)
    })
  })
})
