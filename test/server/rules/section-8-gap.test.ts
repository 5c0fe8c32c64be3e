/** Section 8, GAP: how a loss is reported, where, and as what. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, join, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { balance } from '../../support/records.ts'
import { numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

const OVERFLOW = 1
const DAMAGED = 3
const PURGED = 4
const NO_SUCH_TRANSACTION = 14
const LARGE = { type: 7 as const, value: Buffer.alloc(70_000, 0x61).toString() }

describe('GAP', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  /** A channel where a LARGE value is always too much; it is the current one. */
  async function narrow(...settings: readonly (readonly [string, number, Uint8Array])[]): Promise<number> {
    const channel = await seat.defChannel(['max_bytes', type.uint32, u32(1 << 16)], ...settings)
    await seat.setChannel(channel)
    return channel
  }

  function lose(time: number, name = 'test.a'): void {
    producer.push.push(name, LARGE, EPOCH + time)
  }

  async function resume(channel: number): Promise<Seat> {
    const next = await producer.seat()
    await next.setChannel(channel)
    return next
  }

  async function unread(of: Seat): Promise<(number | string)[]> {
    await producer.settle()
    return of.rest().flatMap((message): (number | string)[] => {
      if (message.kind === 'gap') return [`${message.count} by ${message.reason}`]
      return message.kind === 'value' ? [numberOf(message)] : []
    })
  }

  it('stands in the place of what is missing, with an id of its own between those of its neighbours', async () => {
    await narrow()
    const metric = await seat.follow('test.a')
    producer.emit(1)
    lose(2)
    lose(3)
    producer.emit(4)
    const [before, after] = await seat.values(2)
    const gap = await seat.gap()
    const first = before?.transaction ?? 0
    expect([gap.transaction, after?.transaction]).toEqual([first + 1, first + 2])
    const expected = join(
      u32(0xfffffffc),
      u64(first + 1),
      u32(metric),
      u64(2),
      u64(EPOCH + 2),
      u64(EPOCH + 3),
      u32(OVERFLOW),
    )
    expect(toHex(gap.bytes)).toBe(toHex(expected))
  })

  it('is sent again with the same bytes until it is committed, over connections and crashes', async () => {
    const channel = await narrow()
    await seat.follow('test.a')
    lose(1)
    const reported = await seat.gap()
    seat.peer.destroy()
    await producer.settle()
    const second = await resume(channel)
    expect((await second.gap()).bytes).toEqual(reported.bytes)
    await producer.settle()
    producer = await producer.crash()
    const third = await resume(channel)
    expect((await third.gap()).bytes).toEqual(reported.bytes)
    expect((await third.commit(reported.transaction)).status).toBe(0)
    expect((await third.commit(reported.transaction)).status).toBe(0)
    const restart = await third.gap()
    expect(restart.reason).toBe(5)
    await third.commit(restart.transaction)
    third.peer.destroy()
    await producer.settle()
    expect(await unread(await resume(channel))).toEqual([])
  })

  it('takes part in the window and in `through`', async () => {
    await narrow(['window', type.uint32, u32(1)])
    await seat.follow('test.a')
    lose(1)
    const gap = await seat.gap()
    producer.emit(2)
    expect(await unread(seat)).toEqual([])
    await seat.commit(gap.transaction)
    const value = await seat.value()
    lose(3)
    producer.emit(4)
    expect(await unread(seat)).toEqual([])
    await seat.commit(value.transaction)
    expect(await seat.gap()).toMatchObject({ count: 1 })

    const wide = await narrow()
    await seat.follow('test.b')
    lose(1, 'test.b')
    producer.emit(2, 'test.b')
    const last = await seat.value()
    await seat.ok((seq) => command.commitThrough(seq, last.transaction))
    seat.peer.destroy()
    await producer.settle()
    expect(await unread(await resume(wide))).toEqual([])
  })

  it('merges with its neighbour of the same reason while unsent, metric 0 if there are several', async () => {
    const channel = await narrow()
    const one = await seat.follow('test.a')
    await seat.follow('test.b')
    seat.peer.destroy()
    await producer.settle()
    lose(5)
    lose(3, 'test.b')
    lose(4)
    const next = await resume(channel)
    expect(await next.gap()).toMatchObject({ metric: 0, count: 3, from: EPOCH + 3, to: EPOCH + 5 })
    expect(one).toBeGreaterThan(0)
  })

  it('never changes once it was sent, not even on another connection', async () => {
    const channel = await narrow()
    await seat.follow('test.a')
    lose(1)
    const reported = await seat.gap()
    lose(2)
    const next = await seat.gap()
    expect(next).toMatchObject({ count: 1, from: EPOCH + 2 })
    seat.peer.destroy()
    await producer.settle()
    lose(3)
    const again = await resume(channel)
    expect((await again.gap()).bytes).toEqual(reported.bytes)
    expect((await again.gap()).bytes).toEqual(next.bytes)
    expect(await again.gap()).toMatchObject({ count: 1, from: EPOCH + 3 })
  })

  it('at most 1,024 unsent ones are kept: beyond that the two oldest merge', async () => {
    const channel = await narrow()
    await seat.follow('test.a')
    seat.peer.destroy()
    await producer.settle()
    for (let value = 0; value < 1100; value++) {
      producer.emit(2 * value)
      lose(2 * value + 1)
    }
    const next = await resume(channel)
    await producer.settle()
    const rest = next.rest()
    const gaps = rest.flatMap((message) => (message.kind === 'gap' ? [message] : []))
    expect(gaps).toHaveLength(1024)
    expect(gaps.map(({ count }) => count)).toEqual([77, ...Array.from({ length: 1023 }, () => 1)])
    expect(gaps[0]).toMatchObject({ from: EPOCH + 1, to: EPOCH + 153 })
    expect(rest.filter(({ kind }) => kind === 'value')).toHaveLength(1100)
    expect(balance(await next.ledger())).toBe(0)
  })

  it('of values that wait is reported at their release, in their place', async () => {
    await narrow()
    const id = await seat.hoard('test.a')
    producer.emit(1)
    lose(2)
    producer.emit(3)
    expect(await unread(seat)).toEqual([])
    await seat.ok((seq) => command.get(seq, id))
    const gap = await seat.gap()
    await producer.settle()
    const values = seat.rest().filter((message): message is ValueMessage => message.kind === 'value')
    const released = values.filter(({ transaction }) => transaction > 0)
    expect(released.map(numberOf)).toEqual([1, 3])
    expect(gap.transaction).toBe((released[0]?.transaction ?? 0) + 1)
    expect(released[1]?.transaction).toBe(gap.transaction + 1)
  })

  it('on a channel with durable = false has transaction id 0 and is reported once', async () => {
    const channel = await narrow(['durable', type.boolean, u32(0)])
    await seat.follow('test.a')
    seat.peer.destroy()
    await producer.settle()
    lose(1)
    const next = await resume(channel)
    expect(await next.gap()).toMatchObject({ transaction: 0, count: 1 })
    expect((await next.commit(1)).status).toBe(NO_SUCH_TRANSACTION)
    next.peer.destroy()
    await producer.settle()
    expect(await unread(await resume(channel))).toEqual([])
  })

  it('is not told of what STOP discards', async () => {
    const channel = await narrow()
    const queued = await seat.follow('test.a')
    const waiting = await seat.hoard('test.b')
    seat.peer.destroy()
    await producer.settle()
    producer.emit(1)
    producer.emit(2, 'test.b')
    const next = await resume(channel)
    for (const id of [queued, waiting]) await next.ok((seq) => command.stop(seq, id))
    next.rest()
    next.peer.destroy()
    await producer.settle()
    expect(await unread(await resume(channel))).toEqual([])
  })

  it('reason 3 tells blocks that the disk has damaged, with the count that was kept outside them', async () => {
    const channel = await narrow()
    await seat.follow('test.a')
    seat.peer.destroy()
    await producer.settle()
    for (const value of [1, 2, 3]) producer.emit(value)
    await producer.settle()
    producer = await producer.crash()
    for (let id = 1; id < 1000; id++) producer.store.damage(id)
    const next = await resume(channel)
    expect(await next.gap()).toMatchObject({ reason: DAMAGED, count: 3, from: EPOCH + 1, to: EPOCH + 3 })
    const ledger = await next.ledger()
    expect(ledger).toMatchObject({ accepted: 3, queued: 0, in_flight: 0, dropped: { damaged: 3 } })
    expect(balance(ledger)).toBe(0)
  })

  describe('channel.purge', () => {
    const purge = (of: Seat, ...list: readonly (readonly [string, number, Uint8Array])[]) =>
      of.execute('channel.purge', ['channel', type.uint32, u32(0)], ...list)

    it('drops what is queued, in flight and waiting, and tells it as reason 4', async () => {
      const channel = await narrow(['window', type.uint32, u32(2)])
      await seat.follow('test.a')
      const waiting = await seat.hoard('test.b')
      for (const value of [1, 2, 3]) producer.emit(value)
      producer.emit(4, 'test.b')
      const sent = await seat.values(2)
      const { outcome, value } = await purge(seat)
      expect([outcome, value]).toEqual(['ok', 4])
      const gap = await seat.gap()
      expect(gap).toMatchObject({ reason: PURGED, count: 3, from: EPOCH + 1, to: EPOCH + 3 })
      for (const { transaction } of sent) expect((await seat.commit(transaction)).status).toBe(0)
      await seat.ok((seq) => command.get(seq, waiting))
      await seat.commit(gap.transaction)
      expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 1, metric: waiting })
      const ledger = await seat.ledger(channel)
      expect(ledger).toMatchObject({ committed: 0, dropped: { purged: 4 } })
      expect(balance(ledger)).toBe(0)
    })

    it('drops only one metric’s values, or only those up to an id', async () => {
      const a = await seat.follow('test.a')
      await seat.follow('test.b')
      for (const value of [1, 2]) {
        producer.emit(value)
        producer.emit(10 * value, 'test.b')
      }
      const sent = await seat.values(4)
      expect((await purge(seat, ['metric', type.uint32, u32(a)])).value).toBe(2)
      expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 2, metric: a })
      const through = sent[1]?.transaction ?? 0
      expect((await purge(seat, ['through', type.uint64, u64(through)])).value).toBe(1)
      expect(await seat.ledger()).toMatchObject({ dropped: { purged: 3 } })
      seat.peer.destroy()
      await producer.settle()
      const next = await resume(seat.channel)
      expect(numberOf(await next.value())).toBe(20)
    })

    it('is stored when OK is answered: nothing comes again after a crash', async () => {
      const channel = await narrow()
      await seat.follow('test.a')
      for (const value of [1, 2]) producer.emit(value)
      await seat.values(2)
      await producer.settle()
      await seat.ok((seq) => command.execute(seq, 'channel.purge', args(['channel', type.uint32, u32(0)])))
      producer = await producer.crash()
      const next = await resume(channel)
      expect(await next.gap()).toMatchObject({ reason: PURGED, count: 2 })
      await producer.settle()
      const values = next.rest().filter(({ kind }) => kind === 'value')
      // The result of the purge, if it was stored; else `unknown`.
      expect(values).toHaveLength(1)
    })

    it('of another identity’s channel is NO_SUCH_CHANNEL, as is one that is not there', async () => {
      const stranger = await producer.seat('stranger')
      const refusals = []
      for (const channel of [stranger.channel, 12345]) {
        const list = args(['channel', type.uint32, u32(channel)])
        const { status, detail } = await seat.ask((seq) => command.execute(seq, 'channel.purge', list))
        refusals.push({ status, detail })
      }
      expect(refusals[0]).toEqual(refusals[1])
      expect(refusals[0]?.status).toBe(9)
      const bad = args(['channel', type.string, str('x')])
      expect((await seat.ask((seq) => command.execute(seq, 'channel.purge', bad))).status).toBe(6)
    })
  })
})
