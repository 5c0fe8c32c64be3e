/** StatsD over real sockets: lines of two tenants, and what becomes of them. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

const LOOPBACK = [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' as const }]
const FLUSH_MS = 10_000
const table = {
  udp: { host: '127.0.0.1', port: 0 },
  tcp: { host: '127.0.0.1', port: 0 },
  tenant: 'default',
  allow: LOOPBACK,
  flushMs: FLUSH_MS,
  keepMs: 600_000,
  maxMetrics: 100,
}

let producer: TestProducer
let root: Seat
beforeEach(async () => {
  producer = await TestProducer.start({
    config: { statsd: [table, { ...table, tcp: undefined, tenant: 'north', allow: [], maxMetrics: 1 }] },
  })
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
})
afterEach(() => producer.stop())

const portOf = (key: string): number => boundTo(producer.server, key)?.port ?? 0
const query = async (name: string, given: Record<string, string> = {}) => {
  const list = Object.entries(given).map(([label, text]) => [label, type.string, str(text)] as const)
  const rows: Record<string, unknown>[] = decoded(await root.query(name, args(...list)))
  return rows.map(({ time: _, ...row }) => row)
}
const countersOf = async (name: string) => {
  const sensors: { name: string; counters: Record<string, number> }[] = decoded(await root.query('producer.sensors'))
  return sensors.find((sensor) => sensor.name === name)?.counters ?? {}
}

async function send(text: string, key = 'statsd[0].udp'): Promise<void> {
  const socket = createSocket('udp4')
  await new Promise((resolve) => socket.send(text, portOf(key), '127.0.0.1', resolve))
  socket.close()
}

/** Waits until so many lines were taken in all, then flushes. */
async function flushed(lines: number): Promise<void> {
  await eventually(async () => expect((await countersOf('statsd-feed/default'))['lines']).toBe(lines))
  producer.clock.advance(FLUSH_MS)
  await producer.settle()
}

describe('at each flush', () => {
  it('counters are running sums, gauges the last value, sets the number of members', async () => {
    await send(
      'hits:1|c|#code:200\nhits:2|c|#code:200\nhits:1|c|@0.1|#code:500\nlevel:5|g\nlevel:-2|g\nusers:a|s\nusers:b:1|s\nusers:a|s',
    )
    await flushed(8)
    expect(await query('statsd.hits')).toEqual([
      { code: '200', value: 3 },
      { code: '500', value: 10 },
    ])
    expect(await query('statsd.level')).toEqual([{ value: 3 }])
    expect(await query('statsd.users')).toEqual([{ value: 2 }])
    await send('hits:4|c|#code:200\nusers:c|s')
    await flushed(10)
    expect(await query('statsd.hits', { code: '200' })).toEqual([{ value: 7 }])
    expect(await query('statsd.users')).toEqual([{ value: 1 }])
  })

  it('timers are histograms of the interval, weighted by their rates', async () => {
    await send('latency:1:20:70000|ms\nlatency:20|ms|@0.5')
    await flushed(2)
    const [{ value }] = (await query('statsd.latency')) as [{ value: Record<string, unknown> }]
    expect(value).toMatchObject({ delta: true, count: 5, sum: 70_061, min: 1, max: 70_000 })
    expect(value['counts']).toEqual([1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    const [shown] = decoded(await root.query('producer.metrics', args(['match', type.string, str('statsd.*')])))
    expect(shown).toMatchObject({ name: 'statsd.latency', unit: 'ms', type: 'rec' })
  })

  it('only what has come since the last one is sent, in whatever order its tags are written', async () => {
    const seat = await producer.seat()
    const id = await seat.collect('statsd.hits')
    await seat.ok((seq) => command.subscribe(seq, id))
    await send('hits:1|c|#b:2,a:1')
    await flushed(1)
    producer.clock.advance(FLUSH_MS)
    await send('hits:1|c|#a:1,b:2,a:1')
    await flushed(2)
    expect((await seat.values(2)).map(decoded)).toEqual([
      { a: '1', b: '2', value: 1 },
      { a: '1', b: '2', value: 2 },
    ])
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })

  it('a counter that was silent for long begins anew, and its subscribers get VOID', async () => {
    const seat = await producer.seat()
    const id = await seat.collect('statsd.hits')
    await seat.ok((seq) => command.subscribe(seq, id))
    await send('hits:5|c')
    await flushed(1)
    producer.clock.advance(table.keepMs + 1_000)
    await producer.settle()
    await send('hits:1|c')
    await flushed(2)
    expect((await seat.values(3)).map((value) => decoded(value).value)).toEqual([5, null, 1])
  })
})

describe('streams', () => {
  it('are cut into lines wherever they are cut; lines that are too long are passed over', async () => {
    const socket = connect(portOf('statsd[0].tcp'), '127.0.0.1')
    await once(socket, 'connect')
    socket.setNoDelay(true)
    const text = `a:1|c\r\n\n${'x'.repeat(9_000)}:1|c\nbé:2|c|#t:é\nbad\na:1|c`
    for (const byte of Buffer.from(text)) socket.write(Uint8Array.of(byte))
    socket.end()
    await once(socket, 'end')
    await flushed(3)
    expect(await query('statsd.a')).toEqual([{ value: 2 }])
    expect(await query('statsd.bé')).toEqual([{ t: 'é', value: 2 }])
    expect(await countersOf('statsd-feed/default')).toMatchObject({ badLines: 2, streams: 1 })
  })
})

describe('bounds', () => {
  it('senders, metrics and quotas', async () => {
    await send('a:1|c', 'statsd[1].udp')
    await eventually(async () => expect((await countersOf('statsd-feed/north'))['refusedSource']).toBe(1))
    const lines = Array.from({ length: 120 }, (_, index) => `m${index}:1|c`)
    await send(lines.join('\n'))
    await flushed(120)
    expect(await countersOf('statsd-feed/default')).toMatchObject({ metrics: 100, metricsFull: 20 })
    expect(await query('statsd.m*')).toHaveLength(100)
  })

  it('events and service checks are counted, and nothing more', async () => {
    await send('_e{1,1}:a|b\n_sc|a|0\n\nok:1|c')
    await flushed(1)
    expect(await countersOf('statsd-feed/default')).toMatchObject({ otherLines: 2, badLines: 0 })
  })
})

describe('numbers that nothing can be made of', () => {
  it('are refused and counted, and silence no other metric', async () => {
    for (let round = 1; round <= 3; round++) {
      await send(`evil:1|ms|@1e-320\nhuge:1e999|g\ncount:-1|c\ngood:${round}|g`)
      await flushed(round)
      expect(await query('statsd.*')).toEqual([{ name: 'statsd.good', value: round }])
    }
    expect(await countersOf('statsd-feed/default')).toMatchObject({ badLines: 9 })
    expect(await countersOf('statsd/default')).not.toHaveProperty('faults')
  })

  it('add up to no more than a value can be; a line that would is bad, and nothing of it is taken', async () => {
    await send(
      'sum:1e308|c\nsum:7:1e308|c\nlevel:1e308|g\nlevel:+1e308|g\ntimes:1e308|ms\ntimes:2:1e308|ms\nnew:1e308:1e308|c\ngood:1|g',
    )
    await flushed(4)
    const rows = await query('statsd.*')
    expect(rows).toHaveLength(4)
    expect(rows).toContainEqual({ name: 'statsd.good', value: 1 })
    expect(rows).toContainEqual({ name: 'statsd.sum', value: 1e308 })
    expect(rows).toContainEqual({ name: 'statsd.level', value: 1e308 })
    const { value } = rows.find(({ name }) => name === 'statsd.times') as { value: Record<string, unknown> }
    expect(value).toMatchObject({ count: 1, sum: 1e308, min: 1e308, max: 1e308 })
    expect(await countersOf('statsd-feed/default')).toMatchObject({ badLines: 4, metrics: 4 })
  })

  it('no counter goes back', async () => {
    await send('neg.counter:5|c')
    await flushed(1)
    await send('neg.counter:-7|c\nneg.counter:1|c')
    await flushed(2)
    expect(await query('statsd.neg.counter')).toEqual([{ value: 6 }])
    expect(await countersOf('statsd-feed/default')).toMatchObject({ badLines: 1 })
  })
})

it('a name with its tags is of one kind, that of its first line', async () => {
  await send('a:5|c\na:3|g\na:1|ms\na:3|g|#t:1')
  await flushed(2)
  expect(await query('statsd.a')).toEqual([{ value: 5 }, { t: '1', value: 3 }])
  expect(await countersOf('statsd-feed/default')).toMatchObject({ badLines: 2 })
})

describe('sampled timers whose rates are not 1/n', () => {
  it.each([
    ['x7:1:20:300|ms|@0.3', 10, [3, 0, 0, 0, 4, 0, 0, 0, 3]],
    ['x8:1:20:300:2000|ms|@0.7', 6, [1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 2]],
  ])('%s', async (line, count, counts) => {
    await send(line)
    await flushed(1)
    const [{ value }] = (await query('statsd.x*')) as [{ value: { count: number; counts: number[] } }]
    expect(value.count).toBe(count)
    expect(value.counts).toEqual([...counts, ...new Array(16 - counts.length).fill(0)])
    expect(value.counts.reduce((sum, next) => sum + next)).toBe(value.count)
  })
})

it('an interval over which the clock was set back does not begin after its end', async () => {
  producer.clock.jumpWall(-3_600_000)
  await send('t:1|ms')
  await flushed(1)
  const [{ value, time }] = decoded(await root.query('statsd.t*')) as [{ value: { start: number }; time: number }]
  expect(value.start).toBeLessThanOrEqual(time)
})
