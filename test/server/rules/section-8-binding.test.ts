/** Section 8, Binding: one binding per id and channel; what waits, what GET releases, what SUBSCRIBE copies. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL, command } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { atH1, numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

const NO_SUCH_ID = 8

describe('Binding', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  const queued = (values: readonly ValueMessage[]): number[] =>
    values.filter(({ transaction }) => transaction > 0).map(numberOf)

  /** Everything unread that is an entry of a queue. */
  async function entries(of: Seat = seat): Promise<number[]> {
    await producer.settle()
    return queued(of.rest().filter((message): message is ValueMessage => message.kind === 'value'))
  }

  it('a repetition is OK and changes nothing', async () => {
    const id = await seat.follow('test.a')
    producer.emit(1)
    expect(queued(await seat.values(1))).toEqual([1])
    for (const make of [command.subscribe, command.subscribe]) await seat.ok((seq) => make(seq, id))
    producer.emit(2)
    expect(await entries()).toEqual([2])
    const waiting = await seat.hoard('test.b')
    producer.emit(3, 'test.b')
    await seat.ok((seq) => command.buffer(seq, waiting))
    expect(await entries()).toEqual([])
    expect((await seat.ledger()).queued).toBe(1)
    expect((await seat.ledger()).bindings).toHaveLength(2)
  })

  it('BUFFER after SUBSCRIBE replaces it: values that come then wait', async () => {
    const id = await seat.follow('test.a')
    await seat.ok((seq) => command.buffer(seq, id))
    producer.emit(1)
    expect(await entries()).toEqual([])
    expect((await seat.ledger()).bindings).toEqual([{ metric: id, name: 'test.a', mode: 'buffer' }])
  })

  it('SUBSCRIBE after BUFFER replaces it and releases what waits, once', async () => {
    const id = await seat.hoard('test.a')
    producer.emit(1)
    producer.emit(2)
    await seat.ok((seq) => command.subscribe(seq, id))
    producer.emit(3)
    expect(await entries()).toEqual([1, 2, 3])
    expect((await seat.ledger()).bindings).toEqual([{ metric: id, name: 'test.a', mode: 'subscribe' }])
    expect((await seat.ledger()).accepted).toBe(3)
  })

  it('values that wait are outside the window and have no ids; GET gives them theirs, in order', async () => {
    const other = await seat.follow('test.b')
    const id = await seat.hoard('test.a')
    producer.emit(1)
    producer.emit(10, 'test.b')
    producer.emit(2)
    const sent = await seat.value()
    expect(sent.metric).toBe(other)
    expect(await seat.ledger()).toMatchObject({ in_flight: 1, queued: 2 })
    await seat.ok((seq) => command.get(seq, id))
    producer.emit(3)
    producer.emit(11, 'test.b')
    await producer.settle()
    const values = seat.rest().filter((message): message is ValueMessage => message.kind === 'value')
    expect(queued(values)).toEqual([1, 2, 11])
    const ids = values.filter(({ transaction }) => transaction > 0).map(({ transaction }) => transaction)
    expect([sent.transaction, ...ids]).toEqual([0, 1, 2, 3].map((step) => sent.transaction + step))
    expect(
      values.filter(({ metric, transaction }) => metric === id && transaction > 0).map(({ time }) => time),
    ).toEqual([1, 2].map((value) => EPOCH + value))
    // 3 came after the GET: it waits for the next one.
    await seat.ok((seq) => command.get(seq, id))
    expect(await entries()).toEqual([3])
  })

  it('GET of a polled metric that waits has a fresh answer too; of a pushed or event-like one it has not', async () => {
    const polled = await seat.collect('host.load.one')
    await seat.ok((seq) => command.buffer(seq, polled))
    await seat.ok((seq) => command.get(seq, polled))
    const [released, answer] = (await seat.values(2)).toSorted((a, b) => b.transaction - a.transaction)
    expect([released?.transaction, answer?.transaction]).toEqual([expect.any(Number), 0])
    expect(released?.transaction).toBeGreaterThan(0)

    const pushed = await seat.hoard('test.a')
    producer.emit(1)
    await seat.ok((seq) => command.get(seq, pushed))
    expect(numberOf(await seat.value())).toBe(1)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    // Nothing waits: the answer is the last value.
    await seat.ok((seq) => command.get(seq, pushed))
    const last = await seat.value()
    expect([last.transaction, numberOf(last)]).toEqual([0, 1])

    const events = await seat.collect('events.thing')
    await seat.ok((seq) => command.buffer(seq, events))
    producer.things.happen(7, EPOCH)
    await seat.ok((seq) => command.get(seq, events))
    await producer.settle()
    const rest = seat.rest()
    expect(rest).toHaveLength(1)
    expect(queued(rest as ValueMessage[])).toEqual([7])
  })

  it('GET of all channels releases on each one where the id waits', async () => {
    const one = await seat.defChannel()
    const two = await seat.defChannel()
    const id = await seat.collect('events.thing')
    for (const channel of [one, two]) await seat.ok((seq) => command.buffer(seq, id, channel))
    producer.things.happen(7, EPOCH)
    await seat.ok((seq) => command.get(seq, id, ALL))
    for (const channel of [one, two]) {
      const other = await producer.seat()
      await other.setChannel(channel)
      expect(numberOf(await other.value())).toBe(7)
    }
  })

  it('a released value is as any other: it comes again after a crash, and is committed', async () => {
    const id = await seat.hoard('test.a')
    producer.emit(1)
    producer.emit(2)
    await seat.ok((seq) => command.get(seq, id))
    const before = (await seat.values(2)).filter(({ transaction }) => transaction > 0)
    await seat.commit(before[0]?.transaction ?? 0)
    producer = await producer.crash()
    const next = await producer.seat()
    await next.setChannel(seat.channel)
    const again = await next.value()
    expect(again.bytes).toEqual(before[1]?.bytes)
    expect((await next.commit(again.transaction)).status).toBe(0)
    expect((await next.ledger()).committed).toBe(2)
  })

  describe('SUBSCRIBE and BUFFER of all channels', () => {
    it('bind the id on every channel of the identity and on no other', async () => {
      const others = [await seat.defChannel(), await seat.defChannel()]
      const ada = await producer.seat('bob')
      const id = await seat.collect('test.a', atH1)
      await seat.ok((seq) => command.subscribe(seq, id, ALL))
      producer.emit(1)
      expect(numberOf(await seat.value())).toBe(1)
      await seat.ok((seq) => command.buffer(seq, id, ALL))
      producer.emit(2)
      for (const channel of [seat.channel, ...others]) {
        const ledger = await seat.ledger(channel)
        expect([ledger.accepted, ledger.bindings]).toEqual([2, [{ metric: id, name: 'test.a', mode: 'buffer' }]])
      }
      expect((await ada.ledger()).bindings).toEqual([])
      await seat.ok((seq) => command.subscribe(seq, id, ALL))
      expect(await entries()).toEqual([2])
    })

    it('SUBSCRIBE copies the values of the current channel to each of the others', async () => {
      const others = [await seat.defChannel(), await seat.defChannel()]
      const id = await seat.follow('test.a')
      producer.emit(1)
      await seat.ok((seq) => command.buffer(seq, id, others[1]))
      producer.emit(2)
      await seat.ok((seq) => command.subscribe(seq, id, ALL))
      for (const channel of others) {
        const reader = await producer.seat()
        await reader.setChannel(channel)
        expect(await entries(reader)).toEqual([1, 2])
      }
    })

    it('copy values that are only on disk', async () => {
      const id = await seat.follow('test.a')
      for (const value of [1, 2]) producer.emit(value)
      const others = [await seat.defChannel(), await seat.defChannel()]
      await producer.settle()
      producer = await producer.crash()
      const again = await producer.seat()
      again.peer.send(command.setChannel(1001, seat.channel), command.subscribe(1002, id, ALL))
      expect((await again.response(1002)).status).toBe(0)
      for (const channel of others) {
        const reader = await producer.seat()
        await reader.setChannel(channel)
        expect(await entries(reader)).toEqual([1, 2])
      }
    })
  })

  describe('SUBSCRIBE to another channel', () => {
    let other: Seat
    beforeEach(async () => {
      other = await producer.seat()
      // So that it does not go with its connection.
      await other.follow('test.z')
    })

    it('copies what is in flight, queued and waiting, with new ids and the old times, before any new value', async () => {
      const id = await seat.follow('test.a')
      for (const value of [1, 2]) producer.emit(value)
      const sent = await seat.values(2)
      await seat.ok((seq) => command.buffer(seq, id))
      for (const value of [3, 4]) producer.emit(value)
      await seat.ok((seq) => command.subscribe(seq, id, other.channel))
      producer.emit(5)
      const copies = await other.values(5)
      expect(copies.map(numberOf)).toEqual([1, 2, 3, 4, 5])
      expect(copies.map(({ time }) => time)).toEqual([1, 2, 3, 4, 5].map((value) => EPOCH + value))
      const ids = copies.map(({ transaction }) => transaction)
      expect(ids).toEqual([0, 1, 2, 3, 4].map((step) => (ids[0] as number) + step))
      expect(ids).not.toContain(sent[0]?.transaction)
      // They are values of both: a COMMIT here changes nothing there.
      await other.commit(ids[0] as number)
      expect(await seat.ledger()).toMatchObject({ accepted: 5, committed: 0, in_flight: 2, queued: 3 })
      expect(await other.ledger()).toMatchObject({ accepted: 5, committed: 1, in_flight: 4, queued: 0 })
    })

    it('copies neither what was committed nor what is of another id', async () => {
      const id = await seat.follow('test.a')
      await seat.follow('test.b')
      producer.emit(1)
      producer.emit(10, 'test.b')
      producer.emit(2)
      const [first] = await seat.values(3)
      await seat.commit((first as ValueMessage).transaction)
      await seat.ok((seq) => command.subscribe(seq, id, other.channel))
      expect(await entries(other)).toEqual([2])
    })

    it('copies from the current channel alone', async () => {
      const third = await producer.seat()
      const id = await seat.follow('test.a', third.channel)
      producer.emit(1)
      await third.value()
      await seat.ok((seq) => command.subscribe(seq, id, other.channel))
      expect(await entries(other)).toEqual([])
    })

    it('copies nothing where it is subscribed already', async () => {
      const id = await seat.follow('test.a')
      producer.emit(1)
      await seat.ok((seq) => command.subscribe(seq, id, other.channel))
      expect(await entries(other)).toEqual([1])
      await seat.ok((seq) => command.subscribe(seq, id, other.channel))
      expect(await entries(other)).toEqual([])
    })

    describe('where the id is BUFFERed', () => {
      it('copies what came before that, then releases the rest: each value once and in order', async () => {
        const id = await seat.follow('test.a')
        for (const value of [1, 2]) producer.emit(value)
        await seat.values(2)
        await seat.ok((seq) => command.buffer(seq, id, other.channel))
        for (const value of [3, 4]) producer.emit(value)
        await seat.ok((seq) => command.subscribe(seq, id, other.channel))
        producer.emit(5)
        expect(await entries(other)).toEqual([1, 2, 3, 4, 5])
        expect(await other.ledger()).toMatchObject({ accepted: 5, in_flight: 5 })
      })

      it('copies nothing that was released there before', async () => {
        const id = await seat.hoard('test.a')
        producer.emit(1)
        await seat.ok((seq) => command.buffer(seq, id, other.channel))
        producer.emit(2)
        await seat.ok((seq) => command.get(seq, id, other.channel))
        expect(await entries(other)).toEqual([2])
        producer.emit(3)
        await seat.ok((seq) => command.subscribe(seq, id, other.channel))
        expect(await entries(other)).toEqual([1, 3])
      })

      it('copies nothing if the current channel was bound later', async () => {
        await seat.follow('test.b')
        producer.emit(10, 'test.b')
        const id = await seat.hoard('test.a', other.channel)
        producer.emit(1)
        await seat.ok((seq) => command.subscribe(seq, id))
        producer.emit(2)
        await seat.ok((seq) => command.subscribe(seq, id, other.channel))
        expect(await entries(other)).toEqual([1, 2])
      })

      it('knows after a crash what came before', async () => {
        const target = await seat.defChannel()
        const id = await seat.follow('test.a')
        producer.emit(1)
        await seat.ok((seq) => command.buffer(seq, id, target))
        await producer.settle()
        producer = await producer.crash()
        producer.emit(2)
        const again = await producer.seat()
        await again.setChannel(seat.channel)
        await again.ok((seq) => command.subscribe(seq, id, target))
        const reader = await producer.seat()
        await reader.setChannel(target)
        expect(await entries(reader)).toEqual([1, 2])
      })
    })

    it('copies values that are only on disk', async () => {
      const id = await seat.follow('test.a')
      for (const value of [1, 2]) producer.emit(value)
      await seat.ok((seq) => command.buffer(seq, id))
      for (const value of [3, 4]) producer.emit(value)
      await producer.settle()
      producer = await producer.crash()
      const again = await producer.seat()
      const target = await again.defChannel()
      // In one piece, so that nothing is read back for sending before the copy is made.
      again.peer.send(command.setChannel(1001, seat.channel), command.subscribe(1002, id, target))
      expect((await again.response(1001)).status).toBe(0)
      expect((await again.response(1002)).status).toBe(0)
      const reader = await producer.seat()
      await reader.setChannel(target)
      expect((await reader.values(4)).map(numberOf)).toEqual([1, 2, 3, 4])
    })

    it('is one transaction with the binding: a crash finds both or none', async () => {
      const id = await seat.follow('test.a')
      producer.emit(1)
      await producer.settle()
      const target = await seat.defChannel()
      producer.store.manual = true
      const seq = seat.send((next) => command.subscribe(next, id, target))
      await producer.settle()
      expect(seat.rest().some((message) => message.kind === 'response')).toBe(false)
      const before = producer.store.crash()
      expect(seq).toBeGreaterThan(0)
      const recovered = await before.open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })
      expect(recovered.bindings.filter(({ channel }) => channel === target)).toEqual([])
      producer = await producer.crash()
      const reader = await producer.seat()
      await reader.setChannel(target)
      await producer.settle()
      expect(reader.rest().filter(({ kind }) => kind === 'value')).toEqual([])
      expect((await reader.ledger(target)).bindings).toEqual([])
    })
  })

  it('an id bound on several channels brings its values to each', async () => {
    const other = await producer.seat()
    const id = await seat.collect('test.a', atH1)
    await seat.ok((seq) => command.subscribe(seq, id))
    await seat.ok((seq) => command.buffer(seq, id, other.channel))
    producer.emit(1)
    expect(numberOf(await seat.value())).toBe(1)
    expect(await other.ledger()).toMatchObject({ accepted: 1, queued: 1 })
    await seat.ok((seq) => command.stop(seq, id))
    producer.emit(2)
    expect(await other.ledger()).toMatchObject({ accepted: 2, queued: 2 })
    await seat.ok((seq) => command.stop(seq, id, other.channel))
    expect((await seat.ask((seq) => command.get(seq, id))).status).toBe(NO_SUCH_ID)
  })

  it('bindings, ids and what waits come back after a crash and after a stop', async () => {
    const channel = await seat.defChannel()
    await seat.setChannel(channel)
    const live = await seat.follow('test.a')
    const waiting = await seat.hoard('test.b')
    producer.emit(1)
    producer.emit(10, 'test.b')
    await producer.settle()
    let current = seat
    for (const again of [() => producer.crash(), () => producer.restart(1000)]) {
      producer = await again()
      current = await producer.seat()
      await current.setChannel(channel)
      expect(numberOf(await current.value())).toBe(1)
      expect((await current.ledger()).bindings).toHaveLength(2)
      expect(await entries(current)).toEqual([])
    }
    producer.emit(2)
    expect(await current.value()).toMatchObject({ metric: live })
    await current.ok((seq) => command.get(seq, waiting))
    expect(await entries(current)).toEqual([10])
  })
})
