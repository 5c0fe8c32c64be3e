/** Section 8, Life: what a channel outlives, and when it disappears. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { numberOf, type Seat } from '../../support/seat.ts'

const NO_SUCH_CHANNEL = 9
const NO_SUCH_ID = 8
const DAY_MS = 86_400_000
const no = u32(0)

describe('Life', () => {
  let producer: TestProducer
  beforeEach(async () => {
    producer = await TestProducer.start()
  })
  afterEach(() => producer.stop())

  /** Ends the connection; what it causes has happened. */
  async function leave(seat: Seat): Promise<void> {
    seat.peer.destroy()
    await producer.settle()
  }

  async function statusOfTaking(channel: number): Promise<number> {
    const seat = await producer.seat()
    const { status } = await seat.ask((seq) => command.setChannel(seq, channel))
    await leave(seat)
    return status
  }

  it('what is not committed comes again after SET_CHANNEL, in order, with the same ids, then the new values', async () => {
    const first = await producer.seat()
    await first.follow('test.a')
    for (const value of [1, 2, 3, 4]) producer.emit(value)
    const sent = await first.values(4)
    expect((await first.commit((sent[1] as { transaction: number }).transaction)).status).toBe(0)
    await leave(first)
    producer.emit(5)

    const second = await producer.seat()
    await second.setChannel(first.channel)
    producer.emit(6)
    const again = await second.values(5)
    expect(again.map(numberOf)).toEqual([1, 3, 4, 5, 6])
    const ids = again.map(({ transaction }) => transaction)
    expect(ids.slice(0, 3)).toEqual([0, 2, 3].map((index) => sent[index]?.transaction))
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
    expect(again[0]?.bytes).toEqual(sent[0]?.bytes)
  })

  it('values that wait for GET go on waiting', async () => {
    const first = await producer.seat()
    const id = await first.hoard('test.a')
    producer.emit(1)
    await leave(first)
    const second = await producer.seat()
    await second.setChannel(first.channel)
    await producer.settle()
    expect(second.rest()).toEqual([])
    await second.ok((seq) => command.get(seq, id))
    const released = await second.value()
    expect(released.transaction).toBeGreaterThan(0)
    expect(numberOf(released)).toBe(1)
  })

  describe('disposable', () => {
    it('is a channel with nothing on it: it disappears with its connection', async () => {
      const seat = await producer.seat()
      await leave(seat)
      expect(await statusOfTaking(seat.channel)).toBe(NO_SUCH_CHANNEL)
    })

    it('disappears when its connection leaves it by SET_CHANNEL', async () => {
      const seat = await producer.seat()
      const other = await seat.defChannel()
      await seat.setChannel(other)
      const { status } = await seat.ask((seq) => command.setChannel(seq, seat.channel))
      expect(status).toBe(NO_SUCH_CHANNEL)
    })

    it('stays when another connection took it', async () => {
      const [one, two] = [await producer.seat(), await producer.seat()]
      await two.setChannel(one.channel)
      expect(await one.notice()).toMatchObject({ code: 2, channel: one.channel })
      await one.closed()
      expect((await two.ledger(one.channel)).state).toBe('connected')
      expect((await two.ask((seq) => command.setChannel(seq, two.channel))).status).toBe(NO_SUCH_CHANNEL)
    })

    it('is again a channel whose last binding was stopped and whose values are gone', async () => {
      const seat = await producer.seat()
      const id = await seat.follow('test.a')
      producer.emit(1)
      await seat.value()
      await seat.ok((seq) => command.stop(seq, id))
      await leave(seat)
      expect(await statusOfTaking(seat.channel)).toBe(NO_SUCH_CHANNEL)
    })

    it('is not in the store before its first binding', async () => {
      const seat = await producer.seat()
      await producer.settle()
      producer = await producer.crash()
      expect(await statusOfTaking(seat.channel)).toBe(NO_SUCH_CHANNEL)
    })

    it.each([
      ['a binding', (seat: Seat) => seat.follow('test.a')],
      ['DEF_CHANNEL', async (seat: Seat) => seat.setChannel(await seat.defChannel())],
      ['a configuration', (seat: Seat) => seat.execute('channel.configure', ['channel', type.uint32, u32(0)])],
    ])('is not a channel with %s, which survives its connection and a crash', async (_, keep) => {
      const seat = await producer.seat()
      await keep(seat)
      const current = (await seat.ledger()).channel as number
      await leave(seat)
      expect(await statusOfTaking(current)).toBe(0)
      producer = await producer.crash()
      expect(await statusOfTaking(current)).toBe(0)
    })

    it('is not a channel with a result to come, nor one with a result that is not committed', async () => {
      await producer.addUser('root', { role: 'admin' })
      const first = await producer.seat('root')
      const add = args(['user', type.string, str('new')], ['password', type.string, str('secret words')])
      const result = await first.ok((seq) => command.execute(seq, 'user.add', add))
      await leave(first)
      const second = await producer.seat('root')
      await second.setChannel(first.channel)
      const value = await second.value()
      expect(value.metric).toBe(result)
      await leave(second)
      const third = await producer.seat('root')
      await third.setChannel(first.channel)
      expect(await third.value()).toEqual(value)
      await third.commit(value.transaction)
      await leave(third)
      const fourth = await producer.seat('root')
      expect((await fourth.ask((seq) => command.setChannel(seq, first.channel))).status).toBe(NO_SUCH_CHANNEL)
    })

    it('is a channel with durable = false, whatever is bound on it, and the ids bound there alone die with it', async () => {
      const seat = await producer.seat()
      await seat.execute('channel.configure', ['channel', type.uint32, u32(0)], ['durable', type.boolean, no])
      const id = await seat.follow('test.a')
      const watcher = await producer.seat()
      await leave(seat)
      expect(await statusOfTaking(seat.channel)).toBe(NO_SUCH_CHANNEL)
      expect((await watcher.ask((seq) => command.subscribe(seq, id))).status).toBe(NO_SUCH_ID)
    })

    it('is not a DEF_CHANNELed one with durable = false', async () => {
      const seat = await producer.seat()
      const channel = await seat.defChannel(['durable', type.boolean, no])
      await seat.setChannel(channel)
      await leave(seat)
      expect(await statusOfTaking(channel)).toBe(0)
      producer = await producer.crash()
      expect(await statusOfTaking(channel)).toBe(0)
    })
  })

  describe('expiry', () => {
    async function abandoned(): Promise<number> {
      const seat = await producer.seat()
      const channel = await seat.defChannel()
      await seat.setChannel(channel)
      await leave(seat)
      return channel
    }

    it('comes 7 days after the connection ended, and not while there is one', async () => {
      const channel = await abandoned()
      producer.clock.leap(7 * DAY_MS - 5000)
      const seat = await producer.seat()
      await seat.setChannel(channel)
      producer.clock.leap(8 * DAY_MS)
      expect(seat.peer.closed).toBe(false)
      await leave(seat)
      producer.clock.leap(7 * DAY_MS - 5000)
      expect(await statusOfTaking(channel)).toBe(0)
      producer.clock.leap(7 * DAY_MS + 2000)
      expect(await statusOfTaking(channel)).toBe(NO_SUCH_CHANNEL)
    })

    it('takes the channel, its values and the ids bound to nothing else', async () => {
      const seat = await producer.seat()
      const channel = await seat.defChannel()
      const id = await seat.follow('test.a', channel)
      await seat.setChannel(channel)
      await leave(seat)
      producer.emit(1)
      await producer.settle()
      producer.clock.leap(7 * DAY_MS + 2000)
      await producer.settle()
      expect(await statusOfTaking(channel)).toBe(NO_SUCH_CHANNEL)
      const other = await producer.seat()
      expect((await other.ask((seq) => command.get(seq, id))).status).toBe(NO_SUCH_ID)
      producer = await producer.crash()
      expect(await statusOfTaking(channel)).toBe(NO_SUCH_CHANNEL)
    })

    it('counts anew from a connection that lasted less than a second', async () => {
      const channel = await abandoned()
      producer.clock.leap(7 * DAY_MS - 5000)
      const seat = await producer.seat()
      await seat.setChannel(channel)
      await leave(seat)
      producer.clock.leap(DAY_MS)
      expect(await statusOfTaking(channel)).toBe(0)
    })

    it('does not come when somebody sets the wall clock', async () => {
      const channel = await abandoned()
      producer.clock.jumpWall(30 * DAY_MS)
      producer.clock.advance(5000)
      expect(await statusOfTaking(channel)).toBe(0)
    })

    it('counts the time the producer was down', async () => {
      const channel = await abandoned()
      producer = await producer.restart(8 * DAY_MS)
      producer.clock.advance(2000)
      expect(await statusOfTaking(channel)).toBe(NO_SUCH_CHANNEL)
    })

    it('does not come upon a crash after a connection that lasted longer than it', async () => {
      const seat = await producer.seat()
      const channel = await seat.defChannel()
      await seat.setChannel(channel)
      producer.clock.leap(8 * DAY_MS)
      await producer.settle()
      producer = await producer.crash()
      producer.clock.advance(2000)
      expect(await statusOfTaking(channel)).toBe(0)
    })

    it('is `expire_ms` where the channel says so', async () => {
      const seat = await producer.seat()
      const channel = await seat.defChannel(['expire_ms', type.uint32, u32(10_000)])
      await seat.setChannel(channel)
      await leave(seat)
      producer.clock.advance(9000)
      expect(await statusOfTaking(channel)).toBe(0)
      producer.clock.advance(12_000)
      expect(await statusOfTaking(channel)).toBe(NO_SUCH_CHANNEL)
    })
  })

  it('`producer.channels` tells the ids bound on a channel', async () => {
    const seat = await producer.seat()
    const one = await seat.follow('test.a')
    const two = await seat.hoard('test.b')
    const { bindings } = await seat.ledger()
    expect(bindings).toEqual(
      expect.arrayContaining([
        { metric: one, name: 'test.a', mode: 'subscribe' },
        { metric: two, name: 'test.b', mode: 'buffer' },
      ]),
    )
    expect(bindings).toHaveLength(2)
  })
})
