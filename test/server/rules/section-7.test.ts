import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ALL, args, command, frame, join, status, str, type, u32 } from '../../support/bytes.ts'
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
afterEach(() => {
  producer.store.manual = false
  producer.store.complete()
})
afterAll(() => producer.stop())

const sameUser = () => producer.seat(`user${users}`)
const window = (values: number) => ['window', type.uint32, u32(values)] as const
const statusesOf = async (...seqs: number[]): Promise<number[]> => {
  const found: number[] = []
  for (const seq of seqs) found.push((await seat.response(seq)).status)
  return found
}

describe('commands take effect in the order of arrival', () => {
  it('also when all of them come in one piece', async () => {
    const metric = await seat.collect('test.a', atH1)
    const channel = args(['channel', type.uint32, u32(0)])
    seat.peer.send(
      join(
        command.buffer(100, metric),
        command.stop(101, metric),
        command.subscribe(102, metric),
        command.execute(103, 'channel.purge', channel),
        command.delChannel(104, 0),
        command.nop(105),
      ),
    )
    expect(await statusesOf(100, 101, 102, 103, 104)).toEqual([0, 0, status.NO_SUCH_ID, 0, 0])
    await seat.closed()
    expect(seat.rest().filter(({ kind }) => kind === 'response')).toEqual([])
  })

  it('also after one that takes its time', async () => {
    const metric = await seat.hoard('test.a')
    const other = await seat.defChannel()
    producer.emit(1)
    await producer.settle()
    const read = producer.store.read.bind(producer.store)
    let goOn: () => void = () => {}
    producer.store.read = async (ids) => {
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
      return read(ids)
    }
    seat.peer.send(command.subscribe(100, metric, other), command.stop(101, metric, ALL), command.get(102, metric))
    await producer.settle()
    goOn()
    expect(await statusesOf(100, 101, 102)).toEqual([0, 0, status.NO_SUCH_ID])
    producer.store.read = read
  })
})

describe('a command is checked', () => {
  const unknown = 77
  it.each<[string, Uint8Array, number]>([
    ['its number before its fields', frame(u32(50), u32(1), u32(1)), status.UNKNOWN_COMMAND],
    ['the largest number too', command.unknown(1, 0xffffffff), status.UNKNOWN_COMMAND],
    ['its fields before the state', frame(u32(6), u32(1), u32(5)), status.INVALID_ARGUMENT],
    ['the state before what it says', command.auth(1, 'no-such-method', str('')), status.ALREADY_AUTHENTICATED],
    ['its fields before its ids', frame(u32(2), u32(1), u32(unknown)), status.INVALID_ARGUMENT],
    ['the metric id before the channel', command.subscribe(1, unknown, unknown), status.NO_SUCH_ID],
    ['the metric id of STOP before the channel', command.stop(1, unknown, unknown), status.NO_SUCH_ID],
    ['the metric id before what 0xffffffff may mean', command.buffer(1, unknown, ALL), status.NO_SUCH_ID],
    [
      'the metric before its arguments',
      command.collect(1, 'host.none', args(['x', 7, str('')])),
      status.NO_SUCH_METRIC,
    ],
    ['the control before its arguments', command.execute(1, 'none', args(['x', 7, str('')])), status.NO_SUCH_CONTROL],
    ['whether it may be run at all, before its arguments', command.execute(1, 'user.add'), status.NO_SUCH_CONTROL],
  ])('%s', async (_, bytes, expected) => {
    seat.peer.send(bytes)
    expect(await seat.response(1)).toMatchObject({ status: expected, result: 0 })
  })

  it('the channel of a metric id that is there', async () => {
    const metric = await seat.collect('test.a')
    for (const make of [command.stop, command.subscribe, command.buffer, command.get]) {
      expect(await seat.ask((seq) => make(seq, metric, unknown))).toMatchObject({ status: status.NO_SUCH_CHANNEL })
    }
  })
})

describe('while an AUTH is being decided', () => {
  it('nothing more is read: what follows is handled as the one who was admitted', async () => {
    const peer = producer.connect()
    await peer.until('caps')
    const auth = command.auth(1, 'password', join(str('admin'), str('admin-password')))
    peer.send(join(auth, command.nop(2), command.defChannel(3)))
    const order: unknown[] = []
    for (let i = 0; i < 4; i++) order.push(await peer.next())
    expect(order).toMatchObject([
      { kind: 'response', seq: 1, status: status.OK },
      { kind: 'caps' },
      { kind: 'response', seq: 2, status: status.OK },
      { kind: 'response', seq: 3, status: status.OK },
    ])
  })

  it('nothing more is read: what follows a wrong password is not authenticated', async () => {
    const peer = producer.connect()
    await peer.until('caps')
    const auth = command.auth(1, 'password', join(str('admin'), str('wrong')))
    peer.send(auth, command.nop(2), command.defChannel(3))
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 1, status: status.AUTH_FAILED })
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 2, status: status.OK })
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 3, status: status.NOT_AUTHENTICATED })
  })
})

describe('SET_CHANNEL takes effect at its place in the stream', () => {
  it('COMMITs before it belong to the old channel, those after it to the new one', async () => {
    const other = await seat.defChannel()
    await seat.follow('test.a')
    producer.emit(1)
    const { transaction } = await seat.value()
    seat.peer.send(
      join(
        command.commit(100, transaction),
        command.setChannel(101, other),
        command.commit(102, transaction),
        command.commitThrough(103, transaction),
        command.setChannel(104, seat.channel),
        command.commit(105, transaction),
      ),
    )
    const none = status.NO_SUCH_TRANSACTION
    expect(await statusesOf(100, 101, 102, 103, 104, 105)).toEqual([0, 0, none, none, 0, 0])
  })

  it('values before its response are the old channel’s, those after it the new one’s', async () => {
    const [other, old] = [await seat.defChannel(), await seat.follow('test.a')]
    const fresh = await seat.follow('test.b', other)
    producer.emit(1)
    await seat.value()
    producer.store.manual = true
    producer.emit(2)
    producer.emit(3, 'test.b')
    seat.peer.send(command.setChannel(100, other))
    await producer.settle()
    producer.emit(4)
    producer.emit(5, 'test.b')
    await producer.settle()
    producer.store.manual = false
    producer.store.complete()
    await producer.settle()
    const behind = seat.peer.log.findIndex((message) => message.kind === 'response' && message.seq === 100)
    const metricsOf = (from: number, to?: number) =>
      seat.peer.log.slice(from, to).flatMap((message) => (message.kind === 'value' ? [message.metric] : []))
    expect(new Set(metricsOf(0, behind))).toEqual(new Set([old]))
    expect(metricsOf(behind)).toEqual([fresh, fresh])
  })

  it('of several, each lets nothing go before its own response', async () => {
    const [other, third] = [await seat.defChannel(), await seat.defChannel()]
    const fresh = await seat.follow('test.b', other)
    producer.emit(1, 'test.b')
    await producer.settle()
    producer.store.manual = true
    seat.peer.send(command.setChannel(100, other), command.setChannel(101, third))
    await producer.settle()
    seat.peer.send(command.setChannel(102, other))
    for (let step = 0; step < 5; step++) {
      await producer.settle()
      producer.store.complete()
    }
    expect(await seat.value()).toMatchObject({ metric: fresh })
    expect(await statusesOf(100, 101, 102)).toEqual([0, 0, 0])
    const at = (seq: number) => seat.peer.log.findIndex((each) => each.kind === 'response' && each.seq === seq)
    expect(at(102)).toBeGreaterThan(at(101))
    expect(seat.peer.log.findIndex(({ kind }) => kind === 'value')).toBeGreaterThan(at(102))
  })

  it('a second one by another connection wins; the loser gets a notice, and its unhandled commands are dropped', async () => {
    const channel = await seat.defChannel()
    const winner = await sameUser()
    await seat.setChannel(channel)
    winner.send((seq) => command.setChannel(seq, channel))
    seat.peer.send(command.nop(100), command.defChannel(101))
    expect(await winner.response(1)).toMatchObject({ status: status.OK })
    expect(await seat.notice()).toMatchObject({ code: 2, channel })
    await seat.closed()
    expect(seat.rest().filter(({ kind }) => kind === 'response')).toEqual([])
    expect(await winner.ledger(0)).toMatchObject({ channel, state: 'connected' })
  })

  it('to 0 or to the current channel it is OK, and nothing happens', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    const { transaction } = await seat.value()
    for (const channel of [0, seat.channel]) expect(await seat.setChannel(channel)).toBe(0)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    expect(await seat.ledger()).toMatchObject({ in_flight: 1 })
    expect(await seat.commit(transaction)).toMatchObject({ status: status.OK })
  })
})

describe('what survives is answered OK only when it is stored', () => {
  const purge = (seq: number) => command.execute(seq, 'channel.purge', args(['channel', type.uint32, u32(0)]))
  const narrow = args(['channel', type.uint32, u32(0)], window(3))
  let other: number
  let metric: number
  let bound: number
  let waiting: number
  let transaction: number
  beforeEach(async () => {
    other = await seat.defChannel()
    metric = await seat.collect('test.a')
    bound = await seat.follow('test.a')
    waiting = await seat.collect('events.thing')
    await seat.ok((seq) => command.buffer(seq, waiting))
    producer.things.happen(1, 1)
    producer.emit(1)
    transaction = (await seat.value()).transaction
    await producer.settle()
    producer.store.manual = true
  })

  it.each<[string, () => Uint8Array]>([
    ['SUBSCRIBE', () => command.subscribe(100, metric)],
    ['BUFFER', () => command.buffer(100, metric)],
    ['STOP', () => command.stop(100, bound)],
    ['COMMIT', () => command.commit(100, transaction)],
    ['COMMIT through', () => command.commitThrough(100, transaction)],
    ['DEF_CHANNEL', () => command.defChannel(100)],
    ['SET_CHANNEL', () => command.setChannel(100, other)],
    ['DEL_CHANNEL', () => command.delChannel(100, other)],
    ['EXECUTE', () => purge(100)],
    ['channel.configure', () => command.execute(100, 'channel.configure', narrow)],
    ['GET of waiting values', () => command.get(100, waiting)],
  ])('%s', async (_, make) => {
    seat.peer.send(make())
    await producer.settle()
    expect(seat.rest()).toEqual([])
    for (let step = 0; step < 3; step++) {
      producer.store.complete()
      await producer.settle()
    }
    expect(seat.rest()[0]).toMatchObject({ kind: 'response', seq: 100, status: status.OK })
  })

  it('and no other command waits for it', async () => {
    seat.peer.send(command.nop(100), command.collect(101, 'test.a'), command.query(102, 'test.a', atH1))
    seat.peer.send(command.get(103, metric), command.stop(104, 5), command.commit(105, 5))
    await producer.settle()
    const answered = seat.rest().flatMap((message) => (message.kind === 'response' ? [message.seq] : []))
    expect(answered).toEqual([100, 101, 102, 103, 104, 105])
  })

  it('its effect on delivery may begin earlier: the window opens when the COMMIT is read', async () => {
    producer.store.manual = false
    producer.store.complete()
    await seat.setChannel(await seat.defChannel(window(1)))
    await seat.follow('test.b')
    producer.emit(1, 'test.b')
    producer.emit(2, 'test.b')
    const first = await seat.value()
    await producer.settle()
    producer.store.manual = true
    seat.peer.send(command.commit(100, first.transaction))
    expect(numberOf(await seat.value())).toBe(2)
    expect(seat.rest()).toEqual([])
  })
})
