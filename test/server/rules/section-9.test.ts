/** Section 9: kinds of metrics, open families, patterns, instances that nobody bound. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, join, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { atH1, numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

const INVALID_ARGUMENT = 6
const NO_SUCH_METRIC = 7
const NO_SUCH_ID = 8
const UNSUPPORTED = 12

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(() => producer.stop())

async function values(of: Seat = seat): Promise<ValueMessage[]> {
  await producer.settle()
  return of.rest().flatMap((message) => (message.kind === 'value' ? [message] : []))
}

const status = async (make: (seq: number) => Uint8Array, of: Seat = seat) => (await of.ask(make)).status

describe('Kinds', () => {
  it('event-like: comes when subscribed, and there is nothing to measure', async () => {
    expect(await status((seq) => command.query(seq, 'events.thing'))).toBe(UNSUPPORTED)
    const id = await seat.collect('events.thing')
    await seat.ok((seq) => command.get(seq, id))
    producer.things.happen(1, EPOCH)
    expect(await values()).toEqual([])
    await seat.ok((seq) => command.subscribe(seq, id))
    producer.things.happen(2, EPOCH + 2)
    const value = await seat.value()
    expect([numberOf(value), value.time]).toEqual([2, EPOCH + 2])
  })

  it('pushed: each arrival is sent when subscribed, and GET gives the last with its own time', async () => {
    producer.emit(1)
    const id = await seat.collect('test.a', atH1)
    expect(numberOf(await seat.query('test.a', atH1))).toBe(1)
    await seat.ok((seq) => command.subscribe(seq, id))
    for (const value of [2, 3]) producer.emit(value)
    expect((await seat.values(2)).map(numberOf)).toEqual([2, 3])
    producer.clock.advance(5000)
    await seat.ok((seq) => command.get(seq, id))
    const answer = await seat.value()
    expect([numberOf(answer), answer.time, answer.transaction]).toEqual([3, EPOCH + 3, 0])
  })

  it('pushed: GET is VOID if none is there', async () => {
    const value = await seat.query('test.never', atH1)
    expect([value.type, value.value.length]).toEqual([type.void, 0])
  })

  it('polled: measured at once when bound and then every `interval_ms`; unbound never', async () => {
    const list = args(['interval_ms', type.uint32, u32(250)])
    const id = await seat.collect('slow.value', list)
    producer.clock.advance(10_000)
    expect(producer.slow.asked).toHaveLength(0)
    for (const [bind, other] of [
      [command.subscribe, command.stop],
      [command.buffer, command.stop],
    ] as const) {
      const fresh = bind === command.subscribe ? id : await seat.collect('slow.value', list)
      const before = producer.slow.asked.length
      await seat.ok((seq) => bind(seq, fresh))
      expect(producer.slow.asked).toHaveLength(before + 1)
      for (let step = 0; step < 3; step++) {
        producer.slow.asked.at(-1)?.({ value: { type: 2, value: step }, time: EPOCH + step })
        await producer.settle()
        producer.clock.advance(250)
      }
      expect(producer.slow.asked).toHaveLength(before + 4)
      if (bind === command.subscribe) expect((await values()).map(numberOf)).toEqual([0, 1, 2])
      await seat.ok((seq) => other(seq, fresh))
      producer.clock.advance(10_000)
      expect(producer.slow.asked).toHaveLength(before + 4)
    }
  })

  it('VOID is sent once to subscribers when a source goes; when it comes back its values do', async () => {
    const id = await seat.follow('test.a')
    const pattern = await seat.collect('test.*')
    await seat.ok((seq) => command.subscribe(seq, pattern))
    producer.emit(1)
    await seat.values(2)
    producer.push.die('test.a')
    producer.push.die('test.a')
    const gone = await values()
    expect(gone).toHaveLength(2)
    const plain = gone.find(({ metric }) => metric === id)
    expect([plain?.type, plain?.value.length, plain?.time]).toEqual([type.void, 0, producer.clock.microseconds()])
    expect(decoded(gone.find(({ metric }) => metric === pattern) as ValueMessage)).toEqual({
      name: 'test.a',
      host: 'h1',
      value: null,
    })
    await seat.ok((seq) => command.get(seq, id))
    expect((await seat.value()).type).toBe(type.void)
    producer.emit(2)
    expect((await values()).map(({ metric }) => metric).sort()).toEqual([id, pattern].sort())
  })

  it('what was not measured while the producer was down is no loss', async () => {
    const channel = await seat.defChannel()
    const id = await seat.collect('host.load.one', args(['interval_ms', type.uint32, u32(1000)]))
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    await producer.settle()
    producer = await producer.restart(60_000)
    const next = await producer.seat()
    await next.setChannel(channel)
    await producer.settle()
    const rest = next.rest().filter(({ kind }) => kind === 'value' || kind === 'gap')
    // One of before, one that was measured when the binding came back.
    expect(rest.map(({ kind }) => kind)).toEqual(['value', 'value'])
    producer.clock.advance(1000)
    expect((await next.value()).metric).toBe(id)
  })
})

describe('Open families', () => {
  it('every well-formed name can be collected before it is ever seen', async () => {
    for (const name of ['test.never.seen', 'gmetric.never.seen', 'gmetric.ünï cödé']) {
      expect([name, await status((seq) => command.collect(seq, name))]).toEqual([name, 0])
    }
    const id = await seat.collect('test.late', atH1)
    await seat.ok((seq) => command.subscribe(seq, id))
    producer.emit(1, 'test.late')
    expect(numberOf(await seat.value())).toBe(1)
  })

  it('a family itself is no metric', async () => {
    for (const name of ['gmetric.', 'host.', 'producer.', 'gmetric', 'host']) {
      expect([name, await status((seq) => command.collect(seq, name))]).toEqual([name, NO_SUCH_METRIC])
    }
  })

  it('an unknown name of a closed one, and of none, is NO_SUCH_METRIC, to COLLECT and QUERY', async () => {
    for (const name of ['host.nonsense', 'producer.nonsense', 'nonsense', 'events.other', 'Host.load.one']) {
      for (const make of [command.collect, command.query]) {
        expect([name, await status((seq) => make(seq, name))]).toEqual([name, NO_SUCH_METRIC])
      }
    }
  })

  it('what an identity may not read is not there: the same status and words as for an unknown name', async () => {
    await producer.addUser('abroad', { tenant: 'other' })
    const abroad = await producer.seat('abroad', 'other')
    producer.emit(1)
    for (const make of [command.collect, command.query]) {
      const refused = await abroad.ask((seq) => make(seq, 'test.a'))
      const unknown = await abroad.ask((seq) => make(seq, 'nest.a'))
      expect(refused.status).toBe(NO_SUCH_METRIC)
      expect(refused.detail).toBe(unknown.detail.replace('nest.a', 'test.a'))
    }
  })
})

describe('Patterns', () => {
  function push(name: string, value: number, host: string): void {
    producer.push.push(name, { type: 2, value }, EPOCH + value, host)
  }
  const rec = (...fields: readonly (readonly [string, number, Uint8Array])[]): Uint8Array => args(...fields)
  const name = (text: string) => ['name', type.string, str(text)] as const
  const host = (text: string) => ['host', type.string, str(text)] as const
  const time = (microseconds: number) => ['time', type.uint64, u64(microseconds)] as const
  const number = (value: number) => ['value', type.uint32, u32(value)] as const

  it('values are RECs of what is open, in the order name, host, then value', async () => {
    const cases = [
      ['test.*', undefined, rec(name('test.a'), host('h1'), number(5))],
      ['test.*', 'h*', rec(name('test.a'), host('h1'), number(5))],
      ['test.*', 'h1', rec(name('test.a'), number(5))],
      ['test.a', undefined, rec(host('h1'), number(5))],
      ['test.a', '*1', rec(host('h1'), number(5))],
    ] as const
    for (const [metric, from, expected] of cases) {
      const list = from === undefined ? args() : args(['host', type.string, str(from)])
      const id = await seat.collect(metric, list)
      await seat.ok((seq) => command.subscribe(seq, id))
      push('test.a', 5, 'h1')
      const value = await seat.value()
      expect([metric, from, value.type, toHex(value.value)]).toEqual([metric, from, type.rec, toHex(expected)])
      await seat.ok((seq) => command.stop(seq, id))
    }
  })

  it('one id stands for all that match, now and later, and for nothing else', async () => {
    push('test.a.x', 1, 'h1')
    push('test.b.x', 1, 'h2')
    const id = await seat.collect('test.*.x', args(['host', type.string, str('h*')]))
    await seat.ok((seq) => command.subscribe(seq, id))
    push('test.a.x', 2, 'h1')
    push('test.b.x', 3, 'h2')
    push('test.born.later.x', 4, 'h3')
    push('test.b.y', 5, 'h1')
    push('test.b.x', 6, 'elsewhere')
    const seen = await values()
    expect(new Set(seen.map(({ metric }) => metric))).toEqual(new Set([id]))
    expect(seen.map(decoded)).toEqual([
      { name: 'test.a.x', host: 'h1', value: 2 },
      { name: 'test.b.x', host: 'h2', value: 3 },
      { name: 'test.born.later.x', host: 'h3', value: 4 },
    ])
  })

  it('a star is any run of bytes, dots too, and none', async () => {
    push('test.a', 1, 'h1')
    push('test.a.b.ü', 1, 'h1')
    const matching = async (pattern: string): Promise<string[]> =>
      decoded(await seat.query(pattern)).map((record: { name: string }) => record.name)
    expect(await matching('test.a*')).toEqual(['test.a', 'test.a.b.ü'])
    expect(await matching('test.*ü')).toEqual(['test.a.b.ü'])
    expect(await matching('test.a**')).toEqual(['test.a', 'test.a.b.ü'])
    expect(await matching('*.a')).toEqual(['test.a'])
    expect(await matching('test.*.a.*')).toEqual([])
  })

  it('at most 8 stars, in names and in parameters', async () => {
    const eight = `test.${'*a'.repeat(8)}`
    for (const [pattern, expected] of [
      [eight, 0],
      [`${eight}*`, INVALID_ARGUMENT],
    ] as const) {
      expect(await status((seq) => command.collect(seq, pattern))).toBe(expected)
      const list = args(['host', type.string, str(pattern)])
      expect(await status((seq) => command.collect(seq, 'test.a', list))).toBe(expected)
    }
  })

  it('a selecting parameter left out is *; `host` of `host.*` is this producer', async () => {
    const plain = await seat.query('host.cpu.number')
    expect(plain.type).toBe(type.uint32)
    const mine = await seat.query('host.cpu.number', args(['host', type.string, str('n1')]))
    expect(mine.value).toEqual(plain.value)
    const any = await seat.query('host.cpu.number', args(['host', type.string, str('*')]))
    const one = rec(host('n1'), time(any.time), ['value', type.uint32, plain.value])
    expect(toHex(any.value)).toBe(toHex(join(u32(type.rec), u32(1), one)))
    const foreign = args(['host', type.string, str('n2')])
    expect(await status((seq) => command.query(seq, 'host.cpu.number', foreign))).toBe(INVALID_ARGUMENT)
    const loads = decoded(await seat.query('host.load.*'))
    expect(loads.map((record: { name: string }) => record.name).sort()).toEqual([
      'host.load.fifteen',
      'host.load.five',
      'host.load.one',
    ])
    expect(Object.keys(loads[0])).toEqual(['name', 'time', 'value'])
  })

  it('a part of the host that is left out is the whole; `*` is every part, and stands after `host`', async () => {
    const { value: cpus } = await seat.query('host.cpu.number')
    const each = decoded(await seat.query('host.cpu.user', args(['cpu', type.string, str('*')])))
    expect(each).toHaveLength(Number(Buffer.from(cpus as Uint8Array).readUInt32BE()))
    expect(Object.keys(each[0])).toEqual(['cpu', 'time', 'value'])
    const both = args(['cpu', type.string, str('*')], ['host', type.string, str('*')])
    expect(Object.keys(decoded(await seat.query('host.cpu.us*', both))[0])).toEqual([
      'name',
      'host',
      'cpu',
      'time',
      'value',
    ])
    const first = each[0].cpu as string
    for (const cpu of [str(first), u32(Number(first))]) {
      const kind = cpu.length === 4 ? type.uint32 : type.string
      expect((await seat.query('host.cpu.user', args(['cpu', kind, cpu]))).type).toBe(type.double)
    }
    expect((await seat.query('host.cpu.user')).type).toBe(type.double)
  })

  it('is OK even if nothing matches yet; its answer is then an empty ARRAY', async () => {
    const id = await seat.collect('nothing.*')
    await seat.ok((seq) => command.subscribe(seq, id))
    await seat.ok((seq) => command.get(seq, id))
    const empty = toHex(join(u32(type.rec), u32(0)))
    for (const answer of [await seat.value(), await seat.query('nothing.*')]) {
      expect([answer.type, toHex(answer.value)]).toEqual([type.array, empty])
    }
  })

  it('QUERY and GET give one value, an ARRAY of such RECs, each with the time of its value before it', async () => {
    push('test.a', 1, 'h1')
    push('test.b', 2, 'h2')
    const expected = join(
      u32(type.rec),
      u32(2),
      rec(name('test.a'), host('h1'), time(EPOCH + 1), number(1)),
      rec(name('test.b'), host('h2'), time(EPOCH + 2), number(2)),
    )
    const id = await seat.collect('test.*')
    await seat.ok((seq) => command.get(seq, id))
    for (const answer of [await seat.value(), await seat.query('test.*')]) {
      expect(answer.type).toBe(type.array)
      expect(toHex(answer.value)).toBe(toHex(expected))
      expect(answer.time).toBe(EPOCH + 2)
    }
    expect(await values()).toEqual([])
  })

  it('what does not fit one frame is left out, and the last REC is {more = true}', async () => {
    const text = 'x'.repeat(1000)
    for (let i = 0; i < 1500; i++) producer.push.push(`test.${i}`, { type: 7, value: text }, EPOCH)
    const answer = await seat.query('test.*')
    expect(answer.bytes.length).toBeLessThanOrEqual(1 << 20)
    expect(answer.bytes.length).toBeGreaterThan((1 << 20) - 1200)
    const more = rec(['more', type.boolean, u32(1)])
    expect(toHex(answer.value.subarray(answer.value.length - more.length))).toBe(toHex(more))
    expect(answer.value.readUInt32BE(4)).toBe(decoded(answer).length)
  })

  it('only what the identity may read matches', async () => {
    await producer.addUser('abroad', { tenant: 'other' })
    const abroad = await producer.seat('abroad', 'other')
    const id = await abroad.collect('test.*')
    await abroad.ok((seq) => command.subscribe(seq, id))
    push('test.a', 1, 'h1')
    expect(await values(abroad)).toEqual([])
    expect(decoded(await abroad.query('test.*'))).toEqual([])
    expect(decoded(await abroad.query('host.load.one*'))).toHaveLength(1)
    await producer.addUser('root', { tenant: 'other', role: 'admin' })
    const root = await producer.seat('root', 'other')
    expect(decoded(await root.query('test.*'))).toHaveLength(1)
  })

  it('of event-like metrics sends RECs too', async () => {
    const id = await seat.collect('events.*')
    await seat.ok((seq) => command.subscribe(seq, id))
    producer.things.happen(7, EPOCH)
    expect(toHex((await seat.value()).value)).toBe(toHex(rec(name('events.thing'), number(7))))
    expect(await status((seq) => command.query(seq, 'events.*'))).toBe(UNSUPPORTED)
  })
})

describe('Unbound instances', () => {
  it('COLLECT always makes a new id', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => seat.collect('test.a', atH1)))
    expect(new Set(ids).size).toBe(10)
    for (const id of ids) expect(id >= 1 && id <= 0x7fffffff).toBe(true)
  })

  it('die with the connection that made them, and no other does', async () => {
    const maker = await producer.seat()
    const unbound = await maker.collect('test.a')
    const bound = await maker.collect('test.a')
    await maker.ok((seq) => command.subscribe(seq, bound, seat.channel))
    const stopped = await maker.collect('test.a')
    await maker.ok((seq) => command.subscribe(seq, stopped, seat.channel))
    await seat.ok((seq) => command.stop(seq, stopped))
    expect(await status((seq) => command.get(seq, unbound))).toBe(0)
    maker.peer.destroy()
    await producer.settle()
    expect(await status((seq) => command.get(seq, unbound))).toBe(NO_SUCH_ID)
    expect(await status((seq) => command.get(seq, stopped))).toBe(NO_SUCH_ID)
    expect(await status((seq) => command.get(seq, bound))).toBe(0)
  })
})
