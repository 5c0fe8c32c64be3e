/** What is remembered, page by page, and of a server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HistoryReadOptions, type LossRange, readHistory, type SeriesHistory } from '../../client/history.ts'
import { BasicType, type Consumer, connect, type Field, publish, type Value, VOID } from '../../client/index.ts'
import { type Arguments, recordsOf } from '../../client/values.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const { ARRAY, DOUBLE, REC, STRING, UINT64 } = BasicType

function record(name: string, first: number, count: number): Field[] {
  const times = Array.from({ length: count }, (_, at) => BigInt(first + at))
  return [
    { name: 'tenant', type: STRING, value: 'default' },
    { name: 'metric', type: STRING, value: `test.${name}` },
    { name: 'name', type: STRING, value: `test_${name}` },
    { name: 'labels', type: REC, value: [{ name: 'host', type: STRING, value: 'h1' }] },
    { name: 'times', type: ARRAY, value: { element: UINT64, items: times } },
    { name: 'values', type: ARRAY, value: { element: DOUBLE, items: times.map(Number) } },
    { name: 'ended', type: ARRAY, value: { element: UINT64, items: [] } },
  ]
}

function page(records: readonly Field[][], after?: string): Value {
  const more: Field[] = [
    { name: 'more', type: BasicType.BOOLEAN, value: true },
    { name: 'after', type: STRING, value: after ?? '' },
  ]
  return { type: ARRAY, value: { element: REC, items: after === undefined ? records : [...records, more] } }
}

async function read(pages: readonly Value[], options: HistoryReadOptions = {}) {
  const asked: Arguments[] = []
  const seen: SeriesHistory[] = []
  const query = async (args: Arguments) => {
    const records = recordsOf(pages[asked.length] as Value)
    asked.push(args)
    if (records === undefined) throw new Error('unreadable')
    return records
  }
  const error = await (async () => {
    for await (const series of readHistory(query, 'test.*', options)) seen.push(series)
  })().catch((error: unknown) => error)
  return { asked, series: seen, seen: seen.map(({ name, times, values }) => ({ name, times, values })), error }
}

describe('pages', () => {
  const pages = [
    page([record('a', 1, 2)], 'x'),
    page([record('a', 3, 1), record('b', 1, 1)], 'y'),
    page([], 'z'),
    page([record('b', 2, 1)]),
  ]

  it('are asked for one after the other, and each series comes once', async () => {
    const { asked, seen } = await read(pages, { labels: { host: 'h*' }, since: 5, until: new Date(7) })
    expect(asked).toEqual([
      { metric: 'test.*', host: 'h*', from: 5, to: 7000 },
      { after: 'x' },
      { after: 'y' },
      { after: 'z' },
    ])
    expect(seen).toEqual([
      { name: 'test_a', times: [1, 2, 3], values: [1, 2, 3] },
      { name: 'test_b', times: [1, 2], values: [1, 2] },
    ])
  })

  it('are all asked of the same server below', async () => {
    const { asked } = await read(pages, { labels: { producer: 'rack1' } })
    expect(asked.map(({ producer, after }) => [producer, after])).toEqual([
      ['rack1', undefined],
      ['rack1', 'x'],
      ['rack1', 'y'],
      ['rack1', 'z'],
    ])
  })

  it('may have windows in place of samples, and ranges of loss', async () => {
    const uints = (name: string, items: readonly bigint[]): Field => ({
      name,
      type: ARRAY,
      value: { element: UINT64, items },
    })
    const doubles = (name: string, items: readonly number[]): Field => ({
      name,
      type: ARRAY,
      value: { element: DOUBLE, items },
    })
    const windows = (end: number): Field[] => [
      ...record('a', 1, 1).slice(0, 4),
      { name: 'step_ms', type: UINT64, value: 300_000n },
      ...['ends', 'count', 'first_times', 'last_times'].map((name) => uints(name, [BigInt(end)])),
      ...['min', 'max', 'sum', 'first', 'last', 'resets'].map((name, at) => doubles(name, [end + at])),
    ]
    const loss: Field[] = [
      { name: 'tenant', type: STRING, value: 'default' },
      { name: 'metric', type: STRING, value: 'test.*' },
      ...['from', 'to', 'lost'].map((name, at): Field => ({ name, type: UINT64, value: BigInt(at + 7) })),
      { name: 'reason', type: STRING, value: 'overflow' },
    ]
    const losses: LossRange[] = []
    const { asked, series } = await read([page([loss, windows(10)], 'x'), page([windows(20), record('a', 30, 2)])], {
      step: 1_234_567,
      onLoss: (one) => losses.push(one),
    })
    expect(asked[0]).toEqual({ metric: 'test.*', step_ms: 1_234, with_losses: true })
    expect(losses).toEqual([{ tenant: 'default', metric: 'test.*', from: 7, to: 8, count: 9, reason: 'overflow' }])
    const [ends, one] = [[10, 20], series[0]]
    expect(series).toHaveLength(1)
    expect(one).toMatchObject({ times: [30, 31], values: [30, 31] })
    expect(one?.windows).toMatchObject({ step: 300_000_000, ends, count: ends, firstTimes: ends, lastTimes: ends })
    expect(one?.windows).toMatchObject({ min: ends, max: [11, 21], sum: [12, 22], resets: [15, 25] })
  })

  it('say what is known of metrics, if that is asked for', async () => {
    const known = { name: 'test_a', type: 'counter', help: 'All.', unit: 's' }
    const texts = Object.entries(known).map(([name, value]): Field => ({ name, type: STRING, value }))
    const family: Field = { name: 'family', type: BasicType.REC, value: texts }
    const { asked, series } = await read([page([[...record('a', 1, 1), family], record('b', 1, 1)])], {
      withFamilies: true,
    })
    expect(asked).toEqual([{ metric: 'test.*', with_families: true }])
    expect(series.map((one) => one.family)).toEqual([known, undefined])
  })

  it('may be had in pieces', async () => {
    const { seen } = await read(pages, { inPieces: true })
    expect(seen.map(({ name, times }) => [name, times])).toEqual([
      ['test_a', [1, 2]],
      ['test_a', [3]],
      ['test_b', [1]],
      ['test_b', [2]],
    ])
  })

  it('may fail: a series that is not complete does not come', async () => {
    const { seen, error } = await read([...pages.slice(0, 2), VOID])
    expect(seen.map(({ name }) => name)).toEqual(['test_a'])
    expect(error).toMatchObject({ message: 'unreadable' })
  })

  it('are not asked for with what is no time and no label', async () => {
    const refused = async (options: HistoryReadOptions) => {
      const { asked, error } = await read(pages, options)
      expect(asked).toEqual([])
      return error
    }
    expect(await refused({ since: 0.5 })).toBeInstanceOf(RangeError)
    expect(await refused({ until: new Date(Number.NaN) })).toBeInstanceOf(RangeError)
    expect(await refused({ labels: { from: 'x' } })).toBeInstanceOf(RangeError)
    expect(await refused({ step: -1 })).toBeInstanceOf(RangeError)
  })
})

describe('a server', () => {
  const COUNT = 40_000
  const FIRST = (Math.floor(Date.now() / 1000) - COUNT) * 1_000_000
  let server: ServerProcess
  let consumer: Consumer
  beforeAll(async () => {
    server = new ServerProcess('[history]\nkeep = "30d"\nresolution = "0"\nmetrics = ["otlp.*"]\n')
    await server.start()
    const seat = await server.seat()
    const token = await tokenOfPublisher(seat, 'otlp.*')
    seat.peer.destroy()
    consumer = await connect(`tcp://127.0.0.1:${server.tcpPort}`, { identity: 'admin', password: PASSWORD })
    const values = ['a', 'b'].flatMap((job) =>
      Array.from({ length: COUNT }, (_, at) => ({
        name: 'done',
        value: at,
        labels: { job },
        time: FIRST + at * 1_000_000,
      })),
    )
    const url = `http://127.0.0.1:${server.httpPort}`
    for (let at = 0; at < values.length; at += 5_000) await publish(url, { token }, values.slice(at, at + 5_000))
  })
  afterAll(async () => {
    await consumer?.close()
    await server.remove()
  })

  const all = async (options: HistoryReadOptions) => {
    const seen: SeriesHistory[] = []
    for await (const series of consumer.history('otlp.done', options)) seen.push(series)
    return seen
  }

  it('gives what was published, in more pages than one', async () => {
    await eventually(async () => {
      const seen = await all({ since: FIRST })
      expect(seen.map(({ times }) => times.length)).toEqual([COUNT, COUNT])
    })
    const [a, b] = await all({ since: FIRST })
    const whole = Array.from({ length: COUNT }, (_, at) => at)
    expect(a).toMatchObject({
      tenant: 'default',
      metric: 'otlp.done',
      name: 'otlp_done',
      labels: { job: 'a' },
      ended: [],
    })
    expect([a?.values, b?.values]).toEqual([whole, whole])
    expect(b?.times).toEqual(whole.map((at) => FIRST + at * 1_000_000))
    const pieces: SeriesHistory[] = []
    for await (const piece of consumer.history('otlp.done', { since: FIRST, inPieces: true })) pieces.push(piece)
    expect(pieces.length).toBeGreaterThan(2)
  })

  it('says so if it remembers nothing', async () => {
    const forgetful = new ServerProcess('[history]\nkeep = "0"\n')
    await forgetful.start()
    const asking = await connect(`tcp://127.0.0.1:${forgetful.tcpPort}`, { identity: 'admin', password: PASSWORD })
    await expect(asking.history('host.load.one').next()).rejects.toMatchObject({ status: 'UNSUPPORTED' })
    await asking.close()
    await forgetful.remove()
  })

  it('selects by labels and times', async () => {
    const since = new Date(FIRST / 1000 + 10_000)
    const [only, ...others] = await all({ labels: { job: 'b' }, since, until: FIRST + 12_000_000 })
    expect([only?.labels, only?.values, others]).toEqual([{ job: 'b' }, [10, 11, 12], []])
  })
})
