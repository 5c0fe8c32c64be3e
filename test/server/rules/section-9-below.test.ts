/** Section 9.13 with another producer below: the bytes of values, losses and PRODUCER_CAPS above, and of what is asked below. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Value } from '../../../protocol/monitor/value.ts'
import { offering } from '../../conformance/mutations.ts'
import { done } from '../../support/administration.ts'
import { args, command, join, status, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { GapMessage, Seat, ValueMessage } from '../../support/seat.ts'
import { Tree } from '../../support/tree.ts'

const [COLLECT, QUERY] = [1, 12]
const PURGED = 4
const REPLACED = 9

let tree: Tree
let seat: Seat
beforeEach(async () => {
  tree = await Tree.start()
  await tree.connected()
  seat = await tree.upper.seat('watcher')
})
afterEach(() => tree.stop())

type Argument = readonly [name: string, type: number, value: Uint8Array]
const of = (text: string): Argument => ['producer', type.string, str(text)]
const h1: Argument = ['host', type.string, str('h1')]
const label = (name: string, text: string) => join(str(name), u32(type.string), str(text))
const bare = (number: number) => join(u32(type.uint32), u32(number))
const value = (number: number) => join(str('value'), bare(number))
const time = (of: number) => join(str('time'), u32(type.uint64), u64(EPOCH + of))
const rec = (...fields: readonly Uint8Array[]) => join(u32(type.rec), u32(fields.length), ...fields)
/** An ARRAY of RECs. */
const list = (...records: readonly (readonly Uint8Array[])[]) =>
  join(
    u32(type.array),
    u32(type.rec),
    u32(records.length),
    ...records.flatMap((fields) => [u32(fields.length), ...fields]),
  )

/** The whole payload of a VALUE, except for its transaction id, which is the one that came. */
function expectValue({ transaction, bytes }: ValueMessage, id: number, time: number, typed: Uint8Array): void {
  expect(toHex(bytes)).toBe(toHex(join(u32(id), u64(transaction), u64(EPOCH + time), typed)))
}

function expectGap(
  { transaction, bytes }: GapMessage,
  ...rest: readonly [number, number, number, number, number]
): void {
  const [id, count, from, to, reason] = rest
  const times = [from, to].map((at) => u64(at === 0 ? 0 : EPOCH + at))
  expect(toHex(bytes)).toBe(toHex(join(u32(0xfffffffc), u64(transaction), u32(id), u64(count), ...times, u32(reason))))
}

/** The answer to a QUERY. */
async function asked(metric: string, ...list_: readonly Argument[]): Promise<ValueMessage> {
  return tree.inTime(seat.query(metric, args(...list_)))
}

async function follow(of: Seat, metric: string, ...list_: readonly Argument[]): Promise<number> {
  const id = await of.collect(metric, args(...list_))
  await of.ok((seq) => command.subscribe(seq, id, 0))
  return id
}

const notDurable = (of: Seat) =>
  of.execute('channel.configure', ['channel', type.uint32, u32(0)], ['durable', type.boolean, u32(0)])

/** The commands that the lower server has got, of one number, without their lengths and seqs: but for the changes of its catalogue. */
const commands = (number: number): string[] =>
  tree.commands
    .filter((frame) => frame.readUInt32BE(4) === number && !frame.includes('producer.catalogue'))
    .map((frame) => frame.toString('hex', 12))

describe('QUERY and GET', () => {
  it.each([
    ['test.a', [of('east'), h1], bare(2)],
    ['test.a', [of('east')], list([label('host', 'h1'), time(2), value(2)])],
    ['test.*', [of('east'), h1], list([label('name', 'test.a'), time(2), value(2)])],
    ['test.a', [of('e*'), h1], list([label('producer', 'east'), time(2), value(2)])],
    [
      'test.*',
      [of('*')],
      list(
        [label('name', 'test.a'), label('producer', 'east'), label('host', 'h1'), time(2), value(2)],
        [label('name', 'test.a'), label('producer', 'n1'), label('host', 'h1'), time(1), value(1)],
      ),
    ],
    ['test.*', [of('nobody')], list()],
  ] as [string, Argument[], Uint8Array][])('%s', async (metric, given, expected) => {
    tree.upper.emit(1)
    tree.lower.emit(2)
    const answer = await asked(metric, ...given)
    expect(toHex(answer.bytes.subarray(20))).toBe(toHex(expected))
    expect(answer.transaction).toBe(0)
    if (expected.length > 12) expect(answer.time).toBe(EPOCH + 2)
    const id = await seat.collect(metric, args(...given))
    await seat.ok((seq) => command.get(seq, id))
    const got = await tree.inTime(seat.value())
    expect([got.metric, toHex(got.bytes.subarray(20))]).toEqual([id, toHex(expected)])
  })

  it('of a name that has come after the catalogue was read, values stand as they come from there, too', async () => {
    await tree.connected()
    tree.lower.emit(2, 'test.new')
    const { bytes } = await asked('test.new', of('east'))
    expect(toHex(bytes.subarray(20))).toBe(toHex(list([label('host', 'h1'), time(2), value(2)])))
  })

  it('leave out what a REC of a list would nest too deep', async () => {
    const nested = (depth: number): Value =>
      depth === 0 ? { type: 2, value: 1 } : { type: 9, value: [{ name: 'in', ...nested(depth - 1) }] }
    tree.lower.push.push('test.a', nested(3), EPOCH + 1)
    expect(decoded(await asked('test.a', of('east'), h1))).toEqual({ in: { in: { in: 1 } } })
    expect(decoded(await asked('test.a', of('*'), h1))).toEqual([])
    tree.lower.push.push('test.a', nested(2), EPOCH + 2)
    expect(decoded(await asked('test.a', of('*'), h1))).toMatchObject([{ producer: 'east', value: { in: { in: 1 } } }])
  })

  it('ask within the deadline, and who does not answer has no part in a list, and is VOID otherwise', async () => {
    const deadline = ['deadline_ms', type.uint32, u32(1000)] as const
    expect(decoded(await asked('slow.value', of('east'), deadline))).toBeNull()
    expect(decoded(await asked('slow.value', of('e*'), deadline))).toEqual([])
    // A part of the time is left for the way.
    const there = join(str('slow.value'), args(['deadline_ms', type.uint32, u32(800)]))
    expect(commands(QUERY)).toContain(toHex(there))
  })

  it('of one that is not connected are VOID at once, and it has no part in a list', async () => {
    tree.lower.emit(2)
    tree.upper.emit(1)
    await tree.stopLower()
    await tree.until(async () => expect(await tree.state()).toMatchObject({ state: 'failed' }))
    expect(decoded(await seat.query('test.a', args(of('east'), h1)))).toBeNull()
    expect(decoded(await seat.query('test.a', args(of('*'), h1)))).toMatchObject([{ producer: 'n1', value: 1 }])
  })
})

describe('SUBSCRIBE', () => {
  it.each([
    ['test.a', [of('east'), h1], bare(5)],
    ['test.a', [of('east')], rec(label('host', 'h1'), value(5))],
    ['test.a', [of('*'), h1], rec(label('producer', 'east'), value(5))],
    ['test.*', [of('e*')], rec(label('name', 'test.a'), label('producer', 'east'), label('host', 'h1'), value(5))],
  ] as [string, Argument[], Uint8Array][])('%s, durable and not', async (metric, given, expected) => {
    const [durable, other] = [await follow(seat, metric, ...given), await tree.upper.seat('watcher')]
    await notDurable(other)
    const live = await follow(other, metric, ...given)
    await tree.bound(1)
    await tree.boundLive(1)
    tree.lower.emit(5)
    const [kept, fresh] = [await tree.inTime(seat.value()), await tree.inTime(other.value())]
    expectValue(kept, durable, 5, expected)
    expectValue(fresh, live, 5, expected)
    expect([kept.transaction > 0, fresh.transaction]).toEqual([true, 0])
  })

  it('asks for nothing that is not bound here, and without the argument', async () => {
    const names = new Set(['producer.metrics', 'producer.bindings'].map((name) => toHex(str(name))))
    expect(commands(COLLECT)).toEqual([])
    const asked = commands(QUERY)
    expect(asked.filter((query) => ![...names].some((name) => query.startsWith(name)))).toEqual([])
    const id = await follow(seat, 'test.a', of('*'), h1)
    await tree.bound(1)
    expect(commands(COLLECT)).toEqual([toHex(join(str('test.a'), args(h1)))])
    await seat.ok((seq) => command.stop(seq, id, 0))
    await tree.bound(0)
  })

  it('of what nobody has seen there is OK, and brings it when it comes', async () => {
    const id = await follow(seat, 'test.later', of('east'), h1)
    await tree.bound(1)
    tree.lower.emit(3, 'test.later')
    expectValue(await tree.inTime(seat.value()), id, 3, bare(3))
  })

  it('of a producer that there is not is OK, and brings its values when it is there', async () => {
    const id = await follow(seat, 'test.a', of('west'), h1)
    expect(decoded(await asked('test.a', of('west'), h1))).toBeNull()
    tree.consume('east', 'west')
    await tree.bound(1)
    tree.lower.emit(4)
    expectValue(await tree.inTime(seat.value()), id, 4, bare(4))
  })

  it('where nobody is consumed is NO_SUCH_METRIC by a name, and OK by a pattern', async () => {
    tree.consume()
    const answered = async (metric: string) =>
      (await seat.ask((seq) => command.collect(seq, metric, args(of('east'))))).status
    expect([await answered('test.a'), await answered('test.*')]).toEqual([status.NO_SUCH_METRIC, status.OK])
  })

  it('survives a start at which nobody is consumed, with what waits', async () => {
    const channel = await seat.defChannel()
    const id = await seat.collect('test.a', args(of('east'), h1))
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    await tree.bound(1)
    tree.lower.emit(1)
    const ledger = (): Promise<Json> => tree.inTime(seat.ledger(channel))
    await tree.until(async () => expect(await ledger()).toMatchObject({ queued: 1 }))
    const waiting = { queued: 1, dropped: { purged: 0 }, bindings: [{ metric: id, name: 'test.a' }] }
    for (const names of [[], ['east']]) {
      await tree.restartUpper(names)
      seat = await tree.upper.seat('watcher')
      expect(await ledger()).toMatchObject(waiting)
    }
    await tree.bound(1)
    tree.lower.emit(2)
    await tree.inTime(seat.setChannel(channel))
    expectValue(await tree.inTime(seat.value()), id, 1, bare(1))
    expectValue(await tree.inTime(seat.value()), id, 2, bare(2))
  })

  it('survives that its producer is consumed no more, also when rules change', async () => {
    const id = await follow(seat, 'test.a', of('east'), h1)
    await tree.bound(1)
    tree.consume()
    await tree.upper.addUser('root', { role: 'admin' })
    const root = await tree.upper.seat('root')
    await done(root, 'role.deny', { role: 'night', command: 'COLLECT', object: 'events.thing' })
    tree.consume('east')
    await tree.bound(1)
    tree.lower.emit(6)
    expectValue(await tree.inTime(seat.value()), id, 6, bare(6))
  })

  it('on a channel that is not durable gets one VOID for each series when the producer is gone', async () => {
    await notDurable(seat)
    const id = await follow(seat, 'test.*', of('*'))
    await tree.boundLive(1)
    tree.lower.emit(1)
    tree.lower.emit(2, 'test.b')
    expect([await tree.inTime(seat.value()), await tree.inTime(seat.value())]).toHaveLength(2)
    await tree.stopLower()
    const gone = [await tree.inTime(seat.value()), await tree.inTime(seat.value())]
    const nothing = join(str('value'), u32(type.void))
    const labels = (name: string) => [label('name', name), label('producer', 'east'), label('host', 'h1')]
    const expected = ['test.a', 'test.b'].map((name) => toHex(join(u32(id), u64(0), rec(...labels(name), nothing))))
    const came = gone.map(({ bytes }) => toHex(join(bytes.subarray(0, 12), bytes.subarray(20))))
    expect(came.toSorted()).toEqual(expected.toSorted())
    await tree.until(() => expect(seat.rest()).toEqual([]))
  })
})

describe('GAP', () => {
  /** Values of 2, 3, 4 ... microseconds are purged at the lower server: the first on its way, and those that wait for it. */
  async function lose(...names: readonly string[]): Promise<void> {
    const { channel } = await tree.below()
    tree.upper.store.manual = true
    const main = await tree.lower.seat('main')
    await main.execute('channel.configure', ['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(1)])
    for (const [index, name] of names.entries()) tree.lower.emit(index + 2, name)
    await tree.until(async () => expect(await tree.below()).toMatchObject({ queued: names.length - 1 }))
    await main.execute('channel.purge', ['channel', type.uint32, u32(channel)])
    tree.upper.store.manual = false
    tree.upper.store.complete()
    main.peer.destroy()
  }

  it('goes to every binding of its id, with its reason, times and count, and the id here', async () => {
    const other = await tree.upper.seat('watcher')
    const ids = [await follow(seat, 'test.a', of('east'), h1), await follow(other, 'test.a', of('east'), h1)]
    await tree.bound(1)
    await lose('test.a', 'test.a', 'test.a', 'test.a')
    for (const [index, of] of [seat, other].entries())
      expectGap(await tree.inTime(of.gap()), ids[index] as number, 4, 2, 5, PURGED)
  })

  it('of several ids goes to all of them, with count 0', async () => {
    const other = await tree.upper.seat('watcher')
    const [a, b] = [await follow(seat, 'test.a', of('east'), h1), await follow(other, 'test.b', of('east'), h1)]
    await tree.bound(2)
    await lose('test.a', 'test.a', 'test.b')
    expectGap(await tree.inTime(seat.gap()), a, 0, 2, 4, PURGED)
    expectGap(await tree.inTime(other.gap()), b, 0, 2, 4, PURGED)
  })

  it('of several ids comes once, with its count, where one channel has them all', async () => {
    await follow(seat, 'test.a', of('east'), h1)
    await follow(seat, 'test.b', of('east'), h1)
    await tree.bound(2)
    await lose('test.a', 'test.a', 'test.b')
    expectGap(await tree.inTime(seat.gap()), 0, 3, 2, 4, PURGED)
    expect(seat.rest().filter(({ kind }) => kind === 'gap')).toEqual([])
  })

  it('says that another one is in the place of the producer, to each durable binding', async () => {
    const other = await tree.upper.seat('watcher')
    await notDurable(other)
    const id = await follow(seat, 'test.a', of('east'), h1)
    await follow(other, 'test.a', of('east'), h1)
    await tree.bound(1)
    tree.lower.emit(1)
    await tree.inTime(seat.value())
    await tree.replaceLower()
    await tree.bound(1)
    expectGap(await tree.inTime(seat.gap()), id, 0, 0, 0, REPLACED)
    expect(other.rest().filter(({ kind }) => kind === 'gap')).toEqual([])
  })

  it('of this producer and of another one do not merge', async () => {
    const own = await follow(seat, 'test.a', h1)
    const below = await follow(seat, 'test.b', of('east'), h1)
    await tree.bound(1)
    // The first value fills the window, and what comes after it waits.
    const other = await tree.upper.seat('watcher')
    const channel = ['channel', type.uint32, u32(seat.channel)] as const
    await other.execute('channel.configure', channel, ['window', type.uint32, u32(1)])
    tree.upper.emit(1)
    const { transaction } = await tree.inTime(seat.value())
    for (const number of [2, 3]) tree.upper.emit(number)
    await other.execute('channel.purge', channel, ['metric', type.uint32, u32(own)])
    await lose('test.b', 'test.b')
    await tree.until(async () => expect(await other.ledger(seat.channel)).toMatchObject({ gaps: 2 }))
    await seat.commit(transaction)
    await other.execute('channel.configure', channel, ['window', type.uint32, u32(100)])
    const gaps = [await tree.inTime(seat.gap()), await tree.inTime(seat.gap())]
    expect(gaps).toMatchObject([
      { metric: own, reason: PURGED },
      { metric: below, reason: PURGED },
    ])
  })
})

describe('PRODUCER_CAPS', () => {
  const texts = (peer: RawPeer): string[] =>
    peer.log.flatMap((message) => (message.kind === 'caps' ? [message.bytes.toString('latin1')] : []))
  const entry = (name: string, text: string) => Buffer.from(label(name, text)).toString('latin1')
  const idOf = (peer: RawPeer) => / *(\w+) n1\0*/.exec(texts(peer).at(-1) ?? '')?.[1] ?? ''

  it('names those below with the ids that they give themselves, and comes again when they have changed', async () => {
    const main = await tree.lower.seat('main')
    const here = entry('producer', `${idOf(seat.peer)} n1`)
    const below = entry('below', `${idOf(main.peer)} east`)
    expect(idOf(main.peer)).not.toBe(idOf(seat.peer))
    expect(
      texts(seat.peer)
        .at(-1)
        ?.endsWith(here + below),
    ).toBe(true)
    const before = texts(seat.peer).length
    tree.consume()
    await tree.until(() => expect(texts(seat.peer).at(-1)?.endsWith(here)).toBe(true))
    expect(texts(seat.peer)).toHaveLength(before + 1)
    tree.consume('west')
    await tree.until(() => expect(texts(seat.peer).at(-1)).toContain(entry('below', `${idOf(main.peer)} west`)))
  })

  it('comes at most once a second', async () => {
    await tree.upper.settle()
    const before = texts(seat.peer).length
    for (const names of [[], ['west'], ['west', 'south'], ['south'], []]) tree.consume(...names)
    expect(texts(seat.peer)).toHaveLength(before)
    tree.upper.clock.advance(1000)
    await tree.upper.settle()
    expect(texts(seat.peer)).toHaveLength(before + 1)
  })

  it('names nobody to those who may not read them', async () => {
    await tree.upper.addUser('abroad', { tenant: 'other' })
    const abroad = await tree.upper.seat('abroad', 'other')
    expect(texts(abroad.peer).join()).not.toContain('below')
  })
})

it('`producer.metrics` has the metrics of those below, and `producer.series` one REC without labels for each', async () => {
  tree.lower.emit(1, 'test.below')
  tree.consume('west')
  const match = ['match', type.string, str('test.below')] as const
  await tree.until(async () =>
    expect(decoded(await seat.query('producer.metrics', args(match)))).toMatchObject([{ name: 'test.below' }]),
  )
  const { bytes } = await seat.query('producer.series', args(match))
  const series = list([label('name', 'test.below'), join(str('time'), u32(type.uint64), u64(0))])
  expect(toHex(bytes.subarray(20))).toBe(toHex(series))
})

describe('a path', () => {
  const deep = (names: number) => offering('below', `id ${Array(names).fill('a').join('/')}`, 2)

  it('of more than seven names there closes the connection', async () => {
    await tree.stop()
    tree = await Tree.start({ mutation: deep(8) })
    await tree.until(async () => expect((await tree.state()).detail).toContain('levels'))
    await tree.stop()
    tree = await Tree.start({ mutation: deep(7) })
    await tree.connected()
    seat = await tree.upper.seat('watcher')
    expect(seat.peer.log.findLast(({ kind }) => kind === 'caps')).toMatchObject({
      bytes: expect.toSatisfy((bytes: Buffer) => bytes.includes('id east/a/a/a/a/a/a/a')),
    })
  })
})
