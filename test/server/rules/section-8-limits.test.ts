/** Section 8, Limits: what a full channel drops, what is too old, and what no limit touches. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { balance, decoded } from '../../support/records.ts'
import { numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

/** Of a uint32 without labels. */
const FRAME_BYTES = 32
const MAX_BYTES = 8192
const FITTING = MAX_BYTES / FRAME_BYTES
const DAY_MS = 86_400_000
const OVERFLOW = 1
const EXPIRED = 2

type Setting = readonly [string, number, Uint8Array]
const maxBytes: Setting = ['max_bytes', type.uint32, u32(MAX_BYTES)]
const overflow = (policy: string): Setting => ['overflow', type.string, str(policy)]

describe('Limits', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  async function everything(of: Seat): Promise<{ values: ValueMessage[]; order: (number | string)[] }> {
    await producer.settle()
    const values: ValueMessage[] = []
    const order: (number | string)[] = []
    for (const message of of.rest()) {
      if (message.kind === 'gap') order.push(`${message.count} lost by ${message.reason}`)
      if (message.kind !== 'value') continue
      values.push(message)
      order.push(numberOf(message))
    }
    return { values, order }
  }

  function emit(from: number, to: number): void {
    for (let value = from; value < to; value++) producer.emit(value)
  }

  const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index)

  it('drop-oldest: the oldest values go, an eighth of the limit at a time, and a GAP stands in their place', async () => {
    const channel = await seat.defChannel(maxBytes)
    await seat.follow('test.a', channel)
    emit(0, FITTING)
    expect(await seat.ledger(channel)).toMatchObject({ queued: FITTING, dropped: { overflow: 0 } })
    emit(FITTING, 1000)
    const ledger = await seat.ledger(channel)
    const lost = ledger.dropped.overflow as number
    expect(balance(ledger)).toBe(0)
    expect(ledger.queued_bytes).toBeLessThanOrEqual(MAX_BYTES)
    expect(ledger.queued).toBeGreaterThanOrEqual((FITTING * 7) / 8)
    const reader = await producer.seat()
    await reader.setChannel(channel)
    const { order } = await everything(reader)
    expect(order).toEqual([`${lost} lost by ${OVERFLOW}`, ...range(lost, 1000)])
  })

  it('drop-newest: what arrives is dropped, and a GAP follows what is there', async () => {
    const channel = await seat.defChannel(maxBytes, overflow('drop-newest'))
    await seat.follow('test.a', channel)
    emit(0, 1000)
    expect(await seat.ledger(channel)).toMatchObject({ queued: FITTING, dropped: { overflow: 1000 - FITTING } })
    const reader = await producer.seat()
    await reader.setChannel(channel)
    const { values, order } = await everything(reader)
    expect(order).toEqual(range(0, FITTING))
    // The GAP takes part in the window, and that is as large as the channel.
    await reader.commit(values[0]?.transaction ?? 0)
    expect(await reader.gap()).toMatchObject({ reason: OVERFLOW, count: 1000 - FITTING, from: EPOCH + FITTING })
  })

  it('values that wait for GET count, and the GAP of their loss waits with them', async () => {
    const channel = await seat.defChannel(maxBytes)
    const id = await seat.hoard('test.a', channel)
    emit(0, 1000)
    const { queued, dropped } = await seat.ledger(channel)
    expect(queued * FRAME_BYTES).toBeLessThanOrEqual(MAX_BYTES)
    const reader = await producer.seat()
    await reader.setChannel(channel)
    expect((await everything(reader)).order).toEqual([])
    await reader.ok((seq) => command.get(seq, id))
    const { order } = await everything(reader)
    // The fresh answer may stand anywhere.
    const released = order.filter((entry, index) => entry !== 999 || index === order.length - 1)
    expect(released).toEqual([`${dropped.overflow} lost by ${OVERFLOW}`, ...range(dropped.overflow, 1000)])
  })

  it('never touch a value in flight on an open connection: if nothing unsent is left, what arrives goes', async () => {
    const channel = await seat.defChannel(maxBytes)
    await seat.setChannel(channel)
    await seat.follow('test.a')
    emit(0, FITTING)
    const sent = await seat.values(FITTING)
    emit(FITTING, FITTING + 10)
    expect(await seat.ledger()).toMatchObject({ in_flight: FITTING, queued: 0, dropped: { overflow: 10 } })
    await seat.ask((seq) => command.commitThrough(seq, sent[FITTING - 1]?.transaction ?? 0))
    expect(await seat.gap()).toMatchObject({ reason: OVERFLOW, count: 10, metric: sent[0]?.metric })
    producer.emit(5000)
    expect(numberOf(await seat.value())).toBe(5000)
    expect(balance(await seat.ledger())).toBe(0)
  })

  it('nor one in flight when they drop what comes after it', async () => {
    const channel = await seat.defChannel(maxBytes, ['window', type.uint32, u32(3)])
    await seat.setChannel(channel)
    await seat.follow('test.a')
    emit(0, 3)
    const sent = await seat.values(3)
    emit(3, 1000)
    const { dropped } = await seat.ledger()
    await seat.ask((seq) => command.commitThrough(seq, sent[2]?.transaction ?? 0))
    expect(await seat.gap()).toMatchObject({ reason: OVERFLOW, count: dropped.overflow, from: EPOCH + 3 })
    expect(numberOf(await seat.value())).toBe(3 + dropped.overflow)
  })

  it('a value larger than the limit goes, whatever the policy', async () => {
    for (const policy of ['drop-oldest', 'drop-newest', 'keep-latest']) {
      const channel = await seat.defChannel(maxBytes, overflow(policy))
      const id = await seat.follow('test.a', channel)
      producer.emit(1)
      const large = { type: 7 as const, value: Buffer.alloc(MAX_BYTES, 0x61).toString() }
      producer.push.push('test.a', large, EPOCH)
      const ledger = await seat.ledger(channel)
      expect(balance(ledger)).toBe(0)
      expect(ledger.dropped.overflow).toBe(1)
      await seat.ok((seq) => command.stop(seq, id, channel))
    }
  })

  describe('max_age', () => {
    /** A channel of its own, without a connection, with one value on it. */
    async function aging(...settings: Setting[]): Promise<number> {
      const channel = await seat.defChannel(...settings)
      await seat.follow('test.a', channel)
      producer.emit(1)
      await producer.settle()
      return channel
    }

    it('drops what is older, and tells it', async () => {
      const channel = await aging(['max_age_ms', type.uint32, u32(60_000)])
      producer.clock.advance(30_000)
      producer.emit(2)
      await producer.settle()
      producer.clock.advance(31_000)
      expect(await seat.ledger(channel)).toMatchObject({ queued: 1, dropped: { expired: 1 } })
      const reader = await producer.seat()
      await reader.setChannel(channel)
      expect((await everything(reader)).order).toEqual([`1 lost by ${EXPIRED}`, 2])
    })

    it('is 7 days if nobody says otherwise', async () => {
      const channel = await aging()
      // A consumer that takes the channel now and then, and commits nothing.
      for (let day = 0; day < 6; day++) {
        producer.clock.leap(DAY_MS)
        const visitor = await producer.seat()
        await visitor.setChannel(channel)
        visitor.peer.destroy()
        await producer.settle()
      }
      producer.clock.leap(DAY_MS - 5000)
      expect(await seat.ledger(channel)).toMatchObject({ queued: 1 })
      producer.clock.advance(7000)
      expect(await seat.ledger(channel)).toMatchObject({ queued: 0, dropped: { expired: 1 } })
    })

    it('is not counted by the wall clock while the producer runs', async () => {
      const channel = await aging(['max_age_ms', type.uint32, u32(60_000)])
      for (const jump of [10 * DAY_MS, -20 * DAY_MS]) {
        producer.clock.jumpWall(jump)
        producer.clock.advance(10_000)
        expect(await seat.ledger(channel)).toMatchObject({ queued: 1, dropped: { expired: 0 } })
      }
      producer.clock.advance(45_000)
      expect(await seat.ledger(channel)).toMatchObject({ queued: 0 })
    })

    it.each([
      ['counts the time the producer was down by the wall clock', 61_000, 0],
      ['does not count a wall clock that was set back as time', 60_000, 1],
    ])('%s', async (_, expiring, left) => {
      const channel = await aging(['max_age_ms', type.uint32, u32(60_000)])
      if (left === 1) producer.clock.jumpWall(-DAY_MS)
      producer = await producer.restart(left === 1 ? 0 : expiring)
      producer.clock.advance(1000)
      const next = await producer.seat()
      expect((await next.ledger(channel)).queued).toBe(left)
      producer.clock.advance(expiring)
      expect((await next.ledger(channel)).queued).toBe(0)
    })

    it('touches neither a value in flight nor what is committed', async () => {
      const channel = await seat.defChannel(['max_age_ms', type.uint32, u32(60_000)], ['window', type.uint32, u32(1)])
      await seat.setChannel(channel)
      await seat.follow('test.a')
      emit(1, 3)
      const [first] = await seat.values(1)
      await producer.settle()
      producer.clock.advance(120_000)
      expect(await seat.ledger()).toMatchObject({ in_flight: 1, queued: 0, dropped: { expired: 1 } })
      await seat.commit(first?.transaction ?? 0)
      expect(await seat.gap()).toMatchObject({ reason: EXPIRED, count: 1, to: EPOCH + 2 })
      expect((await seat.ledger()).committed).toBe(1)
    })
  })

  describe('keep-latest', () => {
    it('keeps one unsent value per metric id; the new one goes to the end with a new id, and there is no GAP', async () => {
      const channel = await seat.defChannel(overflow('keep-latest'))
      const a = await seat.follow('test.a', channel)
      const b = await seat.follow('test.b', channel)
      producer.emit(1)
      producer.emit(10, 'test.b')
      producer.emit(2)
      producer.emit(3)
      producer.emit(11, 'test.b')
      producer.emit(4)
      expect(await seat.ledger(channel)).toMatchObject({
        accepted: 6,
        queued: 2,
        gaps: 0,
        dropped: { superseded: 4, overflow: 0 },
      })
      const reader = await producer.seat()
      await reader.setChannel(channel)
      const { values, order } = await everything(reader)
      expect(order).toEqual([11, 4])
      expect(values.map(({ metric }) => metric)).toEqual([b, a])
      expect(balance(await reader.ledger())).toBe(0)
    })

    it('keeps one per metric that a pattern matches', async () => {
      const channel = await seat.defChannel(overflow('keep-latest'))
      const id = await seat.collect('test.*')
      await seat.ok((seq) => command.subscribe(seq, id, channel))
      for (const value of [1, 2]) {
        producer.emit(value)
        producer.emit(value * 10, 'test.b')
        producer.push.push('test.a', { type: 2, value: value * 100 }, EPOCH, 'h2')
      }
      const reader = await producer.seat()
      await reader.setChannel(channel)
      await producer.settle()
      const values = reader.rest().filter((message): message is ValueMessage => message.kind === 'value')
      expect(values.map(decoded)).toEqual([
        { name: 'test.a', host: 'h1', value: 2 },
        { name: 'test.b', host: 'h1', value: 20 },
        { name: 'test.a', host: 'h2', value: 200 },
      ])
      expect((await reader.ledger()).dropped.superseded).toBe(3)
    })

    it('a value in flight stays; it is superseded when the connection ends and a newer one is there', async () => {
      const channel = await seat.defChannel(overflow('keep-latest'), ['window', type.uint32, u32(2)])
      await seat.setChannel(channel)
      await seat.follow('test.a')
      await seat.follow('test.b')
      producer.emit(1)
      producer.emit(10, 'test.b')
      const sent = await seat.values(2)
      producer.emit(2)
      producer.emit(3)
      expect(await seat.ledger()).toMatchObject({ in_flight: 2, queued: 1, dropped: { superseded: 1 } })
      seat.peer.destroy()
      await producer.settle()
      const next = await producer.seat()
      await next.setChannel(channel)
      const { values, order } = await everything(next)
      expect(order).toEqual([10, 3])
      expect(values[0]?.bytes).toEqual(sent[1]?.bytes)
      const ledger = await next.ledger()
      expect(ledger).toMatchObject({ accepted: 4, dropped: { superseded: 2 } })
      expect(balance(ledger)).toBe(0)
      // What was in flight then may still be committed.
      expect((await next.commit(sent[0]?.transaction ?? 0)).status).toBe(0)
    })

    it('a value from before a crash gives way to a newer one of its series, in a pattern too', async () => {
      const channel = await seat.defChannel(overflow('keep-latest'))
      const id = await seat.collect('test.*')
      await seat.ok((seq) => command.subscribe(seq, id, channel))
      producer.emit(1)
      producer.emit(10, 'test.b')
      await producer.settle()
      producer = await producer.crash()
      producer.emit(2)
      const next = await producer.seat()
      await next.setChannel(channel)
      await producer.settle()
      const values = next.rest().filter((message): message is ValueMessage => message.kind === 'value')
      expect(values.map(decoded)).toEqual([
        { name: 'test.b', host: 'h1', value: 10 },
        { name: 'test.a', host: 'h1', value: 2 },
      ])
      const ledger = await next.ledger()
      expect(ledger).toMatchObject({ accepted: 3, dropped: { superseded: 1 } })
      expect(balance(ledger)).toBe(0)
    })

    it('the newest of each is there after a crash', async () => {
      const channel = await seat.defChannel(overflow('keep-latest'))
      await seat.follow('test.a', channel)
      emit(0, 50)
      await producer.settle()
      producer.clock.advance(1000)
      await producer.settle()
      producer = await producer.crash()
      const next = await producer.seat()
      await next.setChannel(channel)
      expect(numberOf(await next.value())).toBe(49)
    })
  })

  it('0 is the operator’s maximum, and above it is QUOTA_EXCEEDED', async () => {
    const limits: readonly (readonly [string, number])[] = [
      ['window', 65_536],
      ['window_bytes', 8 << 20],
      ['max_bytes', 64 << 20],
      ['max_age_ms', 7 * DAY_MS],
      ['expire_ms', 7 * DAY_MS],
    ]
    for (const [name, most] of limits) {
      for (const [value, status] of [
        [0, 0],
        [most, 0],
        [most + 1, 16],
      ] as const) {
        const setting = args([name, type.uint64, u64(value)])
        expect([name, value, (await seat.ask((seq) => command.defChannel(seq, '', setting))).status]).toEqual([
          name,
          value,
          status,
        ])
      }
    }
  })
})
