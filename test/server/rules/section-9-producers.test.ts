/** Section 9.13 where no other producer is consumed: the argument and label `producer`, and what PRODUCER_CAPS says. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done } from '../../support/administration.ts'
import { args, command, join, status, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'
import type { Seat } from '../../support/seat.ts'

const NAME = 'n1'
const MICROSECONDS = 1000

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(() => producer.stop())

type Argument = readonly [name: string, type: number, value: Uint8Array]
const of = (text: string): Argument => ['producer', type.string, str(text)] as const
const h1: Argument = ['host', type.string, str('h1')]
const label = (name: string, text: string) => join(str(name), u32(type.string), str(text))
const value = (number: number) => join(str('value'), u32(type.uint32), u32(number))
const time = (of: number) => join(str('time'), u32(type.uint64), u64(EPOCH + of))
const rec = (...fields: readonly Uint8Array[]) => join(u32(type.rec), u32(fields.length), ...fields)
/** An ARRAY of one REC. */
const list = (...fields: readonly Uint8Array[]) =>
  join(u32(type.array), u32(type.rec), u32(1), u32(fields.length), ...fields)
const nothing = join(u32(type.array), u32(type.rec), u32(0))

/** The bytes after the times of an answer. */
async function typed(metric: string, ...list: readonly Argument[]): Promise<string> {
  const { bytes } = await seat.query(metric, args(...list))
  return toHex(bytes.subarray(20))
}

async function refusal(metric: string, ...list: readonly Argument[]): Promise<number> {
  const collected = await seat.ask((seq) => command.collect(seq, metric, args(...list)))
  const asked = await seat.ask((seq) => command.query(seq, metric, args(...list)))
  expect(asked.status).toBe(collected.status)
  return collected.status
}

describe('by an exact text', () => {
  it('values of this one are as without it', async () => {
    producer.emit(5)
    expect(await typed('test.a', of(NAME), h1)).toBe(toHex(join(u32(type.uint32), u32(5))))
    expect(await typed('test.a', of(NAME))).toBe(toHex(list(label('host', 'h1'), time(5), value(5))))
    expect(await typed('test.*', of(NAME), h1)).toBe(toHex(list(label('name', 'test.a'), time(5), value(5))))
  })

  it('of nobody there is nothing', async () => {
    producer.emit(5)
    for (const text of ['nobody', '', 'N1', 'n1/', '/n1']) {
      expect(await typed('test.*', of(text))).toBe(toHex(nothing))
      expect(await refusal('test.a', of(text), h1)).toBe(status.NO_SUCH_METRIC)
    }
  })

  it('a binding gets the values, and no label', async () => {
    const id = await seat.collect('test.a', args(of(NAME)))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    producer.emit(7)
    const { transaction, bytes } = await seat.value()
    const expected = join(u32(id), u64(transaction), u64(EPOCH + 7), rec(label('host', 'h1'), value(7)))
    expect(toHex(bytes)).toBe(toHex(expected))
  })
})

describe('by a pattern', () => {
  it.each([
    ['test.a', [of('*')], [label('producer', NAME), label('host', 'h1')]],
    ['test.a', [h1, of('n*')], [label('producer', NAME)]],
    ['test.*', [of('*1'), h1], [label('name', 'test.a'), label('producer', NAME)]],
    ['test.*', [of('*')], [label('name', 'test.a'), label('producer', NAME), label('host', 'h1')]],
  ])('each value says of which it is, after its name: %s', async (metric, list_, labels) => {
    producer.emit(5)
    expect(await typed(metric, ...list_)).toBe(toHex(list(...labels, time(5), value(5))))
    const id = await seat.collect(metric, args(...list_))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    producer.emit(6)
    const { transaction, bytes } = await seat.value()
    expect(toHex(bytes)).toBe(toHex(join(u32(id), u64(transaction), u64(EPOCH + 6), rec(...labels, value(6)))))
    const got = seat.send((seq) => command.get(seq, id))
    expect(await seat.response(got)).toMatchObject({ status: status.OK })
    expect(toHex((await seat.value()).bytes)).toBe(
      toHex(join(u32(id), u64(0), u64(EPOCH + 6), list(...labels, time(6), value(6)))),
    )
  })

  it('so does what is measured on request, and what happens', async () => {
    const slow = await seat.collect('slow.value', args(of('*')))
    await seat.ok((seq) => command.subscribe(seq, slow, 0))
    producer.slow.asked[0]?.({ value: { type: 2, value: 8 }, time: EPOCH + 8 })
    const measured = await seat.value()
    expect(toHex(measured.bytes.subarray(12))).toBe(toHex(join(u64(EPOCH + 8), rec(label('producer', NAME), value(8)))))
    const event = await seat.collect('events.thing', args(of('*')))
    await seat.ok((seq) => command.subscribe(seq, event, 0))
    producer.things.happen(9, EPOCH + 9)
    const happened = await seat.value()
    expect(toHex(happened.bytes.subarray(12))).toBe(toHex(join(u64(EPOCH + 9), rec(label('producer', NAME), value(9)))))
  })

  it('that does not match this one there is nothing', async () => {
    producer.emit(5)
    expect(await typed('test.*', of('e*'))).toBe(toHex(nothing))
    expect(await refusal('test.a', of('e*'))).toBe(status.NO_SUCH_METRIC)
  })

  it('a list is refused: it would be nested too deep', async () => {
    for (const metric of ['producer.channels', 'producer.metrics', 'producer.sensors']) {
      expect(await refusal(metric, of('*'))).toBe(status.INVALID_ARGUMENT)
      expect(await refusal(metric, of(NAME))).toBe(status.OK)
    }
    expect(await typed('producer.s*', of('*'))).toMatch(toHex(label('producer', NAME)))
  })
})

it.each([
  ['a UINT32', type.uint32, u32(1)],
  ['a BOOLEAN', type.boolean, u32(1)],
  ['an OPAQUE', type.opaque, str(NAME)],
  ['VOID', type.void, new Uint8Array(0)],
  ['no UTF-8', type.string, join(u32(1), Uint8Array.of(0xff, 0, 0, 0))],
  ['nine stars', type.string, str('*********')],
])('is no text: %s', async (_, of, bytes) => {
  for (const metric of ['test.a', 'test.*', 'producer.stats', 'producer.controls', 'producer.series'])
    expect(await refusal(metric, ['producer', of, bytes])).toBe(status.INVALID_ARGUMENT)
})

it('EXECUTE with it is NO_SUCH_CONTROL, whatever it names, and never runs here', async () => {
  const channel = await seat.defChannel()
  for (const text of [NAME, 'nobody', '*', '']) {
    const list = args(['channel', type.uint32, u32(channel)], of(text))
    const { status: answered } = await seat.ask((seq) => command.execute(seq, 'channel.delete', list))
    expect(answered).toBe(status.NO_SUCH_CONTROL)
  }
  const wrong = args(['channel', type.uint32, u32(channel)], ['producer', type.uint32, u32(1)])
  const { status: answered } = await seat.ask((seq) => command.execute(seq, 'channel.delete', wrong))
  expect(answered).toBe(status.INVALID_ARGUMENT)
  expect(await seat.setChannel(channel)).toBe(0)
})

describe('`on_behalf_of`', () => {
  const given = (text: string) => args(['channel', type.uint32, u32(1)], ['on_behalf_of', type.string, str(text)])

  it('stands in the audit record, and in nothing else', async () => {
    expect(await seat.ask((seq) => command.execute(seq, 'channel.delete', given('carol')))).toMatchObject({
      status: status.NO_SUCH_CHANNEL,
    })
    await producer.settle()
    const record = (await producer.store.audit(0, 100)).find(({ object }) => object === 'channel.delete')
    expect(record).toMatchObject({ actor: 'tester', args: '{"channel":1,"on_behalf_of":"carol"}' })
  })

  it('has at most 1,024 bytes', async () => {
    const answered = async (text: string) =>
      (await seat.ask((seq) => command.execute(seq, 'channel.delete', given(text)))).status
    expect(await answered('c'.repeat(1024))).toBe(status.NO_SUCH_CHANNEL)
    expect(await answered('c'.repeat(1025))).toBe(status.INVALID_ARGUMENT)
    // Two bytes each.
    expect(await answered('é'.repeat(513))).toBe(status.INVALID_ARGUMENT)
  })
})

describe('PRODUCER_CAPS', () => {
  const all = (peer: RawPeer): string[] =>
    peer.log.flatMap((message) => {
      return message.kind === 'caps' ? [message.bytes.toString('latin1')] : []
    })

  it('says after AUTH who the producer is, at the end, and before nothing of it', async () => {
    const [before, after] = all(seat.peer)
    expect(before).not.toMatch(/producer|below/)
    const id = /(\w+) n1\0*$/.exec(after ?? '')?.[1] ?? ''
    expect(id.length).toBeGreaterThanOrEqual(16)
    const expected = Buffer.from(label('producer', `${id} ${NAME}`)).toString('latin1')
    expect(after?.endsWith(expected)).toBe(true)
    expect(after).not.toContain('below')
  })

  it('names the same id after a restart', async () => {
    const [, before] = all(seat.peer)
    producer = await producer.restart(MICROSECONDS)
    const [, after] = all((await producer.seat()).peer)
    const end = (text: string | undefined) => text?.slice(text.lastIndexOf('producer'))
    expect(end(after)).toBe(end(before))
  })
})

it('rules judge values of this one without an argument `producer`', async () => {
  await producer.addUser('root', { role: 'admin' })
  const root = await producer.seat('root')
  const rule = { role: 'night', command: 'COLLECT', object: 'test.a' }
  await done(root, 'role.deny', { ...rule, where: `producer=${NAME}` })
  await producer.addUser('owl', { role: 'night' })
  seat = await producer.seat('owl')
  producer.emit(5)
  for (const text of [NAME, '*'])
    expect((await seat.query('test.a', args(of(text), h1))).bytes.length).toBeGreaterThan(24)
  await done(root, 'role.deny', rule)
  expect(await refusal('test.a', of(NAME), h1)).toBe(status.NO_SUCH_METRIC)
})
