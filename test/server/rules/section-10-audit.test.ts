/** Section 10, `producer.audit`: the log itself as values of a channel, from `after` on, also over restarts. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, type, u32, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat, ValueMessage } from '../../support/seat.ts'

const above = (number: number) => args(['after', type.uint64, u64(number)])

describe('producer.audit', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    await producer.addUser('root', { role: 'admin' })
    seat = await producer.seat('root')
  })
  afterEach(() => producer.stop())

  /** Records that hold a number of their own, whatever else is recorded. */
  function record(...marks: readonly number[]): void {
    const { audit } = producer.server.parts.producer
    const entry = { action: 'test', identity: { tenant: 'default', name: 'x' }, address: 'a', outcome: 'ok' }
    for (const mark of marks) audit.record({ ...entry, object: String(mark) })
  }
  const marks = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

  const numberOf = (value: ValueMessage): number => Number(decoded(value).number)
  const marksOf = (values: readonly ValueMessage[]): number[] =>
    values
      .map(decoded)
      .filter(({ action }) => action === 'test')
      .map(({ object }) => Number(object))

  async function unread(of: Seat): Promise<ValueMessage[]> {
    await producer.settle()
    return of.rest().filter((message): message is ValueMessage => message.kind === 'value')
  }

  async function follow(list?: Uint8Array): Promise<number> {
    const id = await seat.collect('producer.audit', list)
    await seat.ok((seq) => command.subscribe(seq, id))
    return id
  }

  it('a record is a value with its number, its time, what was done, and its hash', async () => {
    await follow()
    record(7)
    const value = await seat.value()
    const [row] = await producer.store.audit(0, 1000).then((rows) => rows.slice(-1))
    expect(decoded(value)).toMatchObject({
      number: row?.number,
      action: 'test',
      actor: 'x',
      tenant: 'default',
      object: '7',
      outcome: 'ok',
      hash: Buffer.from(row?.hash ?? []).toString('base64'),
    })
  })

  it('is not sent before it is stored', async () => {
    await follow()
    await producer.settle()
    producer.store.manual = true
    record(1)
    expect(await unread(seat)).toEqual([])
    producer.store.manual = false
    producer.store.complete()
    expect(marksOf([await seat.value()])).toEqual([1])
  })

  it('without `after` a binding begins with what comes', async () => {
    record(1, 2)
    await producer.settle()
    await follow()
    record(3)
    await producer.settle()
    expect(marksOf(await unread(seat))).toEqual([3])
  })

  it('with `after` it begins with the first record above it, and goes on without hole or repeat', async () => {
    record(...marks(1, 300))
    await producer.settle()
    const first = (await producer.store.audit(0, 1000)).find(({ object }) => object === '5')
    await follow(above(first?.number as number))
    record(...marks(301, 320))
    const values: ValueMessage[] = []
    while (marksOf(values).length < 315) {
      values.push(await seat.value())
      if (values.length % 50 === 0) record(1000 + values.length)
    }
    values.push(...(await unread(seat)))
    const numbers = values.map(numberOf)
    expect(numbers[0]).toBe((first?.number as number) + 1)
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] as number) + index))
    expect(numbers.at(-1)).toBe((await producer.store.audit(0, 10_000)).at(-1)?.number)
  })

  it.each([0, 1])(
    'after a restart a durable channel gets what was recorded between, once (crash: %i)',
    async (crash) => {
      await follow(above(0))
      record(1, 2)
      await producer.settle()
      const before = await unread(seat)
      expect(marksOf(before)).toEqual([1, 2])
      for (const { transaction } of before) await seat.commit(transaction)
      seat.peer.destroy()
      await producer.settle()
      record(3)
      await producer.settle()
      producer.store.manual = true
      record(4)
      producer = crash ? await producer.crash() : await producer.restart()
      record(5)
      await producer.settle()
      const { channel } = seat
      seat = await producer.seat('root')
      await seat.setChannel(channel)
      record(6)
      const values = await unread(seat)
      expect(marksOf(values)).toEqual(crash ? [3, 5, 6] : [3, 4, 5, 6])
      const numbers = values.map(numberOf)
      expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] as number) + index))
    },
  )

  it('a binding that had no record yet begins after a restart where it was made', async () => {
    await follow()
    await producer.settle()
    producer.store.manual = true
    record(1)
    await producer.settle()
    producer.store.complete()
    const { channel } = seat
    producer = await producer.crash()
    seat = await producer.seat('root')
    await seat.setChannel(channel)
    expect(marksOf(await unread(seat))).toEqual([1])
  })

  it('that is BUFFERed keeps the past for GET, and goes on when it is SUBSCRIBEd', async () => {
    record(1, 2)
    await producer.settle()
    const id = await seat.collect('producer.audit', above(0))
    await seat.ok((seq) => command.buffer(seq, id))
    await producer.settle()
    expect(await unread(seat)).toEqual([])
    await seat.ok((seq) => command.subscribe(seq, id))
    record(3)
    expect(marksOf(await unread(seat))).toEqual([1, 2, 3])
  })

  it('a channel that becomes durable goes on after a restart where it was', async () => {
    await seat.setChannel(await seat.defChannel(['durable', type.boolean, u32(0)]))
    await follow(above(0))
    record(1)
    const before = await unread(seat)
    expect(marksOf(before)).toEqual([1])
    await seat.execute('channel.configure', ['channel', type.uint32, u32(0)], ['durable', type.boolean, u32(1)])
    await producer.settle()
    const channel = (await seat.ledger(0)).channel
    for (const { transaction } of before) await seat.commit(transaction)
    producer = await producer.crash()
    record(2)
    seat = await producer.seat('root')
    await seat.setChannel(channel)
    const marks = marksOf(await unread(seat))
    expect([marks.includes(1), marks.includes(2)]).toEqual([false, true])
  })

  it('shows a log of which the beginning went because of its age from where it begins', async () => {
    record(1, 2)
    await producer.settle()
    producer.clock.advance(1000)
    record(3)
    await producer.settle()
    await producer.server.parts.producer.audit.prune(500)
    await follow(above(0))
    expect(marksOf(await unread(seat))).toEqual([3])
  })

  describe('of the server itself', () => {
    const guess = { identity: 'eve', address: '192.0.2.9', method: 'password', throttled: true }
    const failed = async () => (await producer.store.audit(0, 1000)).filter(({ action }) => action === 'auth')

    it('has failures of AUTH that were refused unseen, counted, after a minute', async () => {
      for (let count = 0; count < 50; count++) producer.server.parts.producer.failures.failed(guess)
      producer.clock.advance(59_000)
      await producer.settle()
      expect(await failed()).toEqual([])
      producer.clock.advance(2_000)
      await producer.settle()
      expect(await failed()).toMatchObject([{ actor: 'eve', args: '{"count":50}', outcome: 'throttled' }])
    })

    it('has them at the latest when it stops', async () => {
      producer.server.parts.producer.failures.failed(guess)
      producer = await producer.restart()
      expect(await failed()).toMatchObject([{ args: '{"count":1}' }])
    })

    it('keeps records as long as it was reported, and looks once an hour', async () => {
      await producer.stop()
      producer = await TestProducer.start({ config: { audit: { keepMs: 3_600_000 } } })
      record(1, 2)
      await producer.settle()
      producer.clock.advance(3_600_000)
      await producer.settle()
      record(3)
      await producer.settle()
      const records = (await producer.store.audit(0, 10)).filter(({ action }) => action !== 'admin')
      expect(records.map(({ object }) => object)).toEqual(['1', '2', '3'])
      producer.clock.advance(3_600_000)
      await producer.settle()
      expect((await producer.store.audit(0, 10)).map(({ object }) => object)).toEqual(['3'])
    })
  })
})
