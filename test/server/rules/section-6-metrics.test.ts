import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ALL, args, command, status, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { atH1, numberOf, type Seat } from '../../support/seat.ts'

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
const windowOfOne = (): Promise<number> => seat.defChannel(['window', type.uint32, u32(1)])

describe('rule 6: STOP', () => {
  const commands: [string, (seq: number, metric: number) => Uint8Array][] = [
    ['STOP', (seq, metric) => command.stop(seq, metric)],
    ['SUBSCRIBE', (seq, metric) => command.subscribe(seq, metric)],
    ['BUFFER', (seq, metric) => command.buffer(seq, metric)],
    ['GET', (seq, metric) => command.get(seq, metric)],
  ]

  it('no more values of that id come to that channel', async () => {
    const [stopped, other] = [await seat.follow('test.a'), await seat.follow('test.a')]
    expect(await seat.ok((seq) => command.stop(seq, stopped))).toBe(0)
    producer.emit(1)
    expect(await seat.value()).toMatchObject({ metric: other })
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  })

  it('those queued there are lost, those of other ids are not', async () => {
    await seat.setChannel(await windowOfOne())
    const [stopped, other] = [await seat.follow('test.a'), await seat.follow('test.b')]
    for (const value of [1, 2, 3]) producer.emit(value)
    producer.emit(4, 'test.b')
    const first = await seat.value()
    expect(first).toMatchObject({ metric: stopped })
    await seat.ok((seq) => command.stop(seq, stopped))
    const next = await seat.value()
    expect(next).toMatchObject({ metric: other })
    await seat.commit(next.transaction)
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value' || kind === 'gap')).toEqual([])
    expect(await seat.ledger()).toMatchObject({ accepted: 4, committed: 1, queued: 0, dropped: { stopped: 3 } })
  })

  it('those that wait for GET are lost', async () => {
    const metric = await seat.hoard('test.a')
    producer.emit(1)
    await seat.ok((seq) => command.stop(seq, metric))
    expect(await seat.ledger()).toMatchObject({ accepted: 1, queued: 0, dropped: { stopped: 1 } })
  })

  it('those in flight leave the window and count as stopped at once', async () => {
    await seat.setChannel(await windowOfOne())
    const [stopped, other] = [await seat.follow('test.a'), await seat.follow('test.b')]
    producer.emit(1)
    await seat.value()
    producer.emit(2, 'test.b')
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
    await seat.ok((seq) => command.stop(seq, stopped))
    expect(await seat.value()).toMatchObject({ metric: other })
    expect(await seat.ledger()).toMatchObject({ in_flight: 1, queued: 0, dropped: { stopped: 1 } })
  })

  it('a later COMMIT of one of them is OK and changes no count', async () => {
    const metric = await seat.follow('test.a')
    producer.emit(1)
    const { transaction } = await seat.value()
    await seat.ok((seq) => command.stop(seq, metric))
    const before = await seat.ledger()
    expect(await seat.commit(transaction)).toMatchObject({ status: status.OK })
    expect(await seat.ledger()).toEqual(before)
  })

  it.each(commands)('bound nowhere afterwards, the instance is destroyed: %s is NO_SUCH_ID', async (_, make) => {
    const metric = await seat.follow('test.a')
    await seat.ok((seq) => command.stop(seq, metric))
    expect(await seat.ask((seq) => make(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID, result: 0 })
  })

  it('an id that was never bound is destroyed too', async () => {
    const metric = await seat.collect('test.a')
    await seat.ok((seq) => command.stop(seq, metric))
    expect(await seat.ask((seq) => command.subscribe(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID })
  })

  it('still bound elsewhere, GET and SUBSCRIBE go on working', async () => {
    const other = await seat.defChannel()
    const metric = await seat.follow('test.a')
    await seat.ok((seq) => command.subscribe(seq, metric, other))
    await seat.ok((seq) => command.stop(seq, metric))
    await seat.ok((seq) => command.get(seq, metric))
    expect(await seat.value()).toMatchObject({ metric, transaction: 0 })
    await seat.ok((seq) => command.subscribe(seq, metric))
    producer.emit(5)
    expect(numberOf(await seat.value())).toBe(5)
    expect(await seat.ledger(other)).toMatchObject({ accepted: 1, dropped: { stopped: 0 } })
  })

  it('on a living id it is OK even where that was not bound, and leaves it where it is', async () => {
    const other = await seat.defChannel()
    const metric = await seat.follow('test.a')
    expect(await seat.ok((seq) => command.stop(seq, metric, other))).toBe(0)
    producer.emit(6)
    expect(numberOf(await seat.value())).toBe(6)
  })

  it('cancels an outstanding GET for that channel', async () => {
    const metric = await seat.collect('slow.value')
    await seat.ok((seq) => command.get(seq, metric))
    await seat.ok((seq) => command.stop(seq, metric))
    for (const answer of producer.slow.asked.splice(0)) answer({ value: { type: 2, value: 1 }, time: 1 })
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  })

  it('cancels a GET whose answer is there and not yet sent', async () => {
    const metric = await seat.collect('slow.value')
    await seat.ok((seq) => command.get(seq, metric))
    const [answer] = producer.slow.asked.splice(0)
    answer?.({ value: { type: 2, value: 1 }, time: 1 })
    // Still in the same turn of the event loop: nothing is written before its end.
    for (let step = 0; step < 50; step++) await Promise.resolve()
    await seat.ok((seq) => command.stop(seq, metric))
    await producer.settle()
    const kinds = seat.peer.log.map(({ kind }) => kind)
    expect(kinds.lastIndexOf('value')).toBeLessThan(kinds.lastIndexOf('response'))
  })

  it('does not cancel the GET of another channel', async () => {
    const [other, metric] = [await seat.defChannel(), await seat.collect('slow.value')]
    await seat.ok((seq) => command.subscribe(seq, metric, other))
    producer.slow.asked.splice(0)
    await seat.ok((seq) => command.get(seq, metric, 0))
    await seat.ok((seq) => command.stop(seq, metric, other))
    expect(await seat.ask((seq) => command.get(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID })
    const [answer] = producer.slow.asked.splice(0)
    answer?.({ value: { type: 2, value: 3 }, time: 1 })
    expect(numberOf(await seat.value())).toBe(3)
  })
})

describe('rule 7: SUBSCRIBE and BUFFER', () => {
  it('SUBSCRIBE: values go to that channel by themselves, also to one that is not current', async () => {
    const other = await sameUser()
    const metric = await seat.collect('test.a', atH1)
    await seat.ok((seq) => command.subscribe(seq, metric, other.channel))
    producer.emit(1)
    producer.emit(2)
    expect((await other.values(2)).map(numberOf)).toEqual([1, 2])
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  })

  it('several channels may subscribe to one id', async () => {
    const other = await sameUser()
    const metric = await seat.follow('test.a')
    await seat.ok((seq) => command.subscribe(seq, metric, other.channel))
    producer.emit(3)
    expect(await seat.value()).toMatchObject({ metric })
    expect(await other.value()).toMatchObject({ metric })
  })

  it('values queued for the id on the current channel are copied to the destination, in order, with their times', async () => {
    const other = await sameUser()
    const metric = await seat.hoard('test.a')
    for (const value of [1, 2, 3]) producer.emit(value)
    await seat.ok((seq) => command.subscribe(seq, metric, other.channel))
    producer.emit(4)
    const copies = await other.values(4)
    expect(copies.map(numberOf)).toEqual([1, 2, 3, 4])
    expect(copies.map(({ time }) => time % 10)).toEqual([1, 2, 3, 4])
    expect(await seat.ledger()).toMatchObject({ accepted: 4, queued: 4 })
  })

  it('BUFFER: values wait on that channel', async () => {
    const metric = await seat.hoard('test.a')
    producer.emit(1)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    expect(await seat.ledger()).toMatchObject({ queued: 1, bindings: [{ metric, mode: 'buffer' }] })
  })

  it('both may be used for one id on different channels', async () => {
    const other = await seat.defChannel()
    const metric = await seat.follow('test.a')
    await seat.ok((seq) => command.buffer(seq, metric, other))
    producer.emit(7)
    expect(numberOf(await seat.value())).toBe(7)
    expect(await seat.ledger(other)).toMatchObject({ queued: 1 })
  })

  it('give the result 0', async () => {
    const metric = await seat.collect('test.a')
    expect(await seat.ok((seq) => command.subscribe(seq, metric))).toBe(0)
    expect(await seat.ok((seq) => command.buffer(seq, metric))).toBe(0)
  })
})

describe('rule 8: GET', () => {
  it('on an event-like metric sends what is queued, in order, and nothing else', async () => {
    const metric = await seat.collect('events.thing')
    await seat.ok((seq) => command.buffer(seq, metric))
    for (const value of [1, 2]) producer.things.happen(value, value)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    expect(await seat.ok((seq) => command.get(seq, metric))).toBe(0)
    const values = await seat.values(2)
    expect(values.map(numberOf)).toEqual([1, 2])
    expect(values[0]?.transaction).toBeGreaterThan(0)
    producer.things.happen(3, 3)
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })

  it('on an event-like metric of which nothing waits gives nothing', async () => {
    const metric = await seat.collect('events.thing')
    await seat.ok((seq) => command.buffer(seq, metric))
    await seat.ok((seq) => command.get(seq, metric))
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })

  it('on a continuous one asks for a new measurement, which is sent when it is ready', async () => {
    producer.slow.asked.splice(0)
    const metric = await seat.collect('slow.value')
    expect(await seat.ok((seq) => command.get(seq, metric))).toBe(0)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    const [answer] = producer.slow.asked.splice(0)
    answer?.({ value: { type: 2, value: 8 }, time: 1_000 })
    expect(await seat.value()).toMatchObject({ metric, transaction: 0, time: 1_000, type: type.uint32 })
    await seat.ok((seq) => command.get(seq, metric))
    expect(producer.slow.asked).toHaveLength(1)
  })

  it('sends it on the channel that was named', async () => {
    const other = await sameUser()
    const metric = await seat.collect('test.a', atH1)
    producer.emit(9)
    await seat.ok((seq) => command.get(seq, metric, other.channel))
    expect(numberOf(await other.value())).toBe(9)
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })
})

describe('rule 11: QUERY', () => {
  it('is COLLECT, GET and STOP in one: a value of an id that is then gone', async () => {
    producer.emit(4)
    const metric = await seat.ok((seq) => command.query(seq, 'test.a', atH1))
    const value = await seat.value()
    expect(value).toMatchObject({ metric, transaction: 0 })
    expect(numberOf(value)).toBe(4)
    producer.emit(5)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    for (const make of [command.stop, command.get, command.subscribe, command.buffer]) {
      expect(await seat.ask((seq) => make(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID })
    }
  })

  it('of an event-like metric is UNSUPPORTED, of an unknown one NO_SUCH_METRIC', async () => {
    expect(await seat.ask((seq) => command.query(seq, 'events.thing'))).toMatchObject({ status: status.UNSUPPORTED })
    expect(await seat.ask((seq) => command.query(seq, 'events.none'))).toMatchObject({ status: status.NO_SUCH_METRIC })
    const wrong = args(['which', type.boolean, u32(1)])
    expect(await seat.ask((seq) => command.query(seq, 'slow.value', wrong))).toMatchObject({
      status: status.INVALID_ARGUMENT,
    })
  })

  it('its id accepts only STOP, after which nothing comes', async () => {
    producer.slow.asked.splice(0)
    const metric = await seat.ok((seq) => command.query(seq, 'slow.value'))
    for (const make of [command.get, command.subscribe, command.buffer]) {
      expect(await seat.ask((seq) => make(seq, metric))).toMatchObject({ status: status.UNSUPPORTED })
    }
    expect(await seat.ok((seq) => command.stop(seq, metric))).toBe(0)
    expect(await seat.ask((seq) => command.stop(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID })
    const [answer] = producer.slow.asked.splice(0)
    answer?.({ value: { type: 2, value: 8 }, time: 1 })
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })

  it('its id accepts STOP on all channels, and on none that is not there', async () => {
    producer.slow.asked.splice(0)
    const metric = await seat.ok((seq) => command.query(seq, 'slow.value'))
    expect(await seat.ask((seq) => command.stop(seq, metric, 5))).toMatchObject({ status: status.NO_SUCH_CHANNEL })
    expect(await seat.ok((seq) => command.stop(seq, metric, ALL))).toBe(0)
  })

  it('gives at most one value: VOID after the deadline, and nothing when the measurement comes after it', async () => {
    producer.slow.asked.splice(0)
    const metric = await seat.ok((seq) => command.query(seq, 'slow.value'))
    producer.clock.advance(9_999)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    producer.clock.advance(1)
    expect(await seat.value()).toMatchObject({ metric, type: type.void })
    const [answer] = producer.slow.asked.splice(0)
    answer?.({ value: { type: 2, value: 8 }, time: 1 })
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })
})
