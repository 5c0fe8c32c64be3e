import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { args, command, join, status, type, u32 } from '../../support/bytes.ts'
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

const sameUser = () => producer.seat(`user${users}`)

describe('rule 9: SET_CHANNEL', () => {
  it('keeps the network connection and makes the channel current', async () => {
    const other = await seat.defChannel()
    expect(await seat.setChannel(other)).toBe(0)
    expect(seat.peer.closed).toBe(false)
    expect(await seat.ledger(0)).toMatchObject({ channel: other, state: 'connected' })
    await seat.follow('test.a')
    producer.emit(1)
    expect(numberOf(await seat.value())).toBe(1)
    expect(await seat.ledger(other)).toMatchObject({ accepted: 1 })
  })

  it('closes the connection that the channel had, with a notice of the reason', async () => {
    const loser = await sameUser()
    await seat.setChannel(loser.channel)
    expect(await loser.notice()).toMatchObject({ code: 2, channel: loser.channel })
    await loser.closed()
    expect(await seat.ledger(0)).toMatchObject({ channel: loser.channel })
  })

  it('brings what is not committed again, in order, with the same transaction ids, then what is new', async () => {
    const first = await sameUser()
    await first.follow('test.a')
    for (const value of [1, 2, 3]) producer.emit(value)
    const sent = await first.values(3)
    await first.commit((sent[1] as (typeof sent)[0]).transaction)
    first.peer.destroy()
    await producer.settle()
    producer.emit(4)
    await seat.setChannel(first.channel)
    const again = await seat.values(3)
    expect(again.map(numberOf)).toEqual([1, 3, 4])
    expect(again.slice(0, 2).map(({ transaction }) => transaction)).toEqual([
      sent[0]?.transaction,
      sent[2]?.transaction,
    ])
  })
})

describe('rule 9: DEL_CHANNEL', () => {
  it('discards the queue and closes the connection, after the response; nothing after it is handled', async () => {
    await seat.follow('test.a')
    for (const value of [1, 2]) producer.emit(value)
    await seat.values(2)
    producer.emit(3)
    seat.peer.send(join(command.nop(100), command.delChannel(101, 0), command.nop(102), command.defChannel(103)))
    await seat.closed()
    const said = seat.peer.log.filter((message) => message.kind === 'notice' || message.kind === 'response').slice(-3)
    expect(said).toMatchObject([
      { kind: 'response', seq: 100 },
      { kind: 'response', seq: 101, status: status.OK, result: 0 },
      { kind: 'notice', code: 5, channel: seat.channel },
    ])
    const later = await sameUser()
    expect(await later.ask((seq) => command.setChannel(seq, seat.channel))).toMatchObject({
      status: status.NO_SUCH_CHANNEL,
    })
    expect(await later.ledger(seat.channel)).toBeUndefined()
  })

  it('is answered only when it is stored, and until then nothing that arrives is handled', async () => {
    const [later, metric] = [await sameUser(), await seat.follow('test.a')]
    producer.store.manual = true
    seat.peer.send(command.delChannel(100, 0))
    await producer.settle()
    expect(seat.peer.log.some((message) => message.kind === 'response' && message.seq === 100)).toBe(false)
    seat.peer.send(command.collect(101, 'test.a'), u32(3))
    await producer.settle()
    producer.store.manual = false
    producer.store.complete()
    await seat.closed()
    const last = seat.peer.log.slice(-2)
    expect(last).toMatchObject([
      { kind: 'response', seq: 100, status: status.OK },
      { kind: 'notice', code: 5 },
    ])
    expect(await later.ask((seq) => command.stop(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID })
  })

  it('of another channel closes the connection of that one, and this one goes on', async () => {
    const other = await sameUser()
    await other.follow('test.a')
    expect(await seat.ok((seq) => command.delChannel(seq, other.channel))).toBe(0)
    expect(await other.notice()).toMatchObject({ code: 5, channel: other.channel })
    await other.closed()
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
  })

  it('destroys the instances bound to nothing else, and those alone', async () => {
    const other = await seat.defChannel()
    const [only, both] = [await seat.follow('test.a', other), await seat.follow('test.b', other)]
    await seat.ok((seq) => command.subscribe(seq, both))
    await seat.ok((seq) => command.delChannel(seq, other))
    expect(await seat.ask((seq) => command.get(seq, only))).toMatchObject({ status: status.NO_SUCH_ID })
    expect(await seat.ask((seq) => command.get(seq, both))).toMatchObject({ status: status.OK })
    producer.emit(1, 'test.b')
    expect(await seat.value()).toMatchObject({ metric: both })
  })
})

describe('rule 10: COMMIT', () => {
  it('the value is processed and will not be sent again', async () => {
    const other = await sameUser()
    await other.follow('test.a')
    for (const value of [1, 2, 3]) producer.emit(value)
    const [first, second] = await other.values(3)
    expect(await other.commit(second?.transaction ?? 0)).toMatchObject({ status: status.OK, result: 0 })
    expect(await other.commit(first?.transaction ?? 0)).toMatchObject({ status: status.OK, result: 0 })
    await seat.setChannel(other.channel)
    expect(numberOf(await seat.value())).toBe(3)
    expect(await seat.ledger()).toMatchObject({ committed: 2, in_flight: 1 })
  })

  it('is not done before it is stored: a value whose COMMIT was not answered comes again', async () => {
    const mine = await TestProducer.start()
    const before = await mine.seat()
    await before.follow('test.a')
    mine.emit(1)
    const { transaction } = await before.value()
    mine.store.manual = true
    before.send((seq) => command.commit(seq, transaction))
    await mine.settle()
    const after = await mine.crash()
    const again = await after.seat()
    await again.setChannel(before.channel)
    expect(await again.value()).toMatchObject({ transaction })
    await after.stop()
  })
})

describe('rule 10: EXECUTE', () => {
  const purge = (seq: number) => command.execute(seq, 'channel.purge', args(['channel', type.uint32, u32(0)]))

  it('the result comes as a value whose metric id is the result of the response', async () => {
    const result = await seat.ok(purge)
    expect(result).toBeGreaterThan(0)
    const value = await seat.value()
    expect(value).toMatchObject({ metric: result, type: type.rec })
    expect(value.value.readUInt32BE(0)).toBe(3)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    await seat.commit(value.transaction)
    expect(await seat.ask((seq) => command.stop(seq, result))).toMatchObject({ status: status.NO_SUCH_ID })
  })

  it('comes on the channel that was current when EXECUTE arrived', async () => {
    const [old, other] = [seat.channel, await seat.defChannel()]
    seat.peer.send(join(purge(100), command.setChannel(101, other)))
    const { result } = await seat.response(100)
    await seat.response(101)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    await seat.setChannel(old)
    expect(await seat.value()).toMatchObject({ metric: result })
  })

  it('runs although the connection ended while it was judged', async () => {
    const later = await sameUser()
    seat.peer.send(purge(100))
    seat.peer.destroy()
    await producer.settle()
    await later.setChannel(seat.channel)
    expect((await later.value()).value.toString('latin1')).toContain('outcome')
  })
})
