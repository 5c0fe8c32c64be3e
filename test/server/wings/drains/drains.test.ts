/** Drains against a destination that a test answers for: what is sent, what is committed, and what is sent again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { decodeMetrics, encodeAnswer } from '../../../../protocol/otlp/protobuf.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { Metric } from '../../../../server/kernel/metrics/metric.ts'
import type { DrainTable } from '../../../../server/wings/drains/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import type { PushSensor } from '../../../support/test-sensor.ts'
import { FakeDestination, familiesIn, LIMITS, namesIn, reload, samplesIn, tableTo } from './fake-destination.ts'

let destination: FakeDestination
let producer: TestProducer | undefined
let directory = ''
beforeEach(async () => {
  destination = new FakeDestination()
  await destination.open()
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-drain-'))
})
afterEach(async () => {
  await producer?.stop()
  await destination.close()
  rmSync(directory, { recursive: true, force: true })
})

function tableOf(more: Partial<DrainTable> = {}, protocol: 'prometheus' | 'otlp' = 'prometheus'): DrainTable {
  return tableTo(destination.port, more, protocol)
}

function follow(...drain: readonly DrainTable[]): void {
  reload(producer, drain)
}

async function start(more: Partial<DrainTable> = {}, protocol: 'prometheus' | 'otlp' = 'prometheus'): Promise<Seat> {
  producer = await TestProducer.start({ config: { drain: [tableOf(more, protocol)] } })
  await producer.addUser('root', { role: 'admin' })
  return producer.seat('root')
}

const double = (value: number): Value => ({ type: BasicType.DOUBLE, value })
const push = (name: string, value: Value | number, ms = 0, host = 'h'): void => {
  const given = typeof value === 'number' ? double(value) : value
  producer?.push.push(`test.${name}`, given, EPOCH + ms * 1_000, host)
}

/** Time goes on until it holds; the destination answers in real time. */
/** The clock goes on by `stepMs` before each look. */
async function until(holds: () => void | Promise<void>, stepMs = 500): Promise<void> {
  await eventually(async () => {
    producer?.clock.advance(stepMs)
    await producer?.settle()
    await holds()
  })
}

async function ledger(seat: Seat): Promise<Record<string, number>> {
  const channels = decoded(await seat.query('producer.channels')) as { name: string }[]
  return channels.find(({ name }) => name === 'drain:d') as unknown as Record<string, number>
}

async function counters(seat: Seat): Promise<Record<string, number>> {
  return (await status(seat)).counters
}

async function status(seat: Seat): Promise<{ state: string; detail: string; counters: Record<string, number> }> {
  const sensors = decoded(await seat.query('producer.sensors')) as { name: string }[]
  return sensors.find(({ name }) => name === 'drain/d') as never
}

describe('values', () => {
  it('are sent with names and labels that Prometheus takes, their times cut to milliseconds, and committed then', async () => {
    const seat = await start()
    push('a-b.c', 1.5, 7.9)
    push('flag', { type: BasicType.BOOLEAN, value: true }, 8)
    push('big', { type: BasicType.UINT64, value: 3n }, 9)
    push('gone', { type: BasicType.VOID, value: null }, 10)
    await until(async () => expect(await ledger(seat)).toMatchObject({ accepted: 4, committed: 4 }))
    expect(destination.samples).toEqual([
      'test_a_b_c{host=h} 1.5 7',
      'test_flag{host=h} 1 8',
      'test_big{host=h} 3 9',
      'test_gone{host=h} undefined 10',
    ])
    expect(destination.requests[0]?.headers).toMatchObject({
      'content-type': 'application/x-protobuf',
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
    })
  })

  it('that Prometheus has no form for are committed and counted; records become several', async () => {
    const seat = await start()
    push('text', { type: BasicType.STRING, value: 'x' })
    push('rec', {
      type: BasicType.REC,
      value: [
        { name: 'free', ...double(1) },
        { name: 'name', type: BasicType.STRING, value: 'n' },
      ],
    })
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    expect(destination.samples).toEqual(['test_rec_free{host=h} 1 0'])
    expect(await counters(seat)).toMatchObject({ values: 1, unsupported: 1 })
  })

  it('of one series in one millisecond: the last is sent, and the times of each series ascend', async () => {
    const seat = await start()
    push('a', 1, 5.1)
    push('a', 2, 5.2)
    push('a', 3, 2)
    push('a', 4, 5.3)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 4 }))
    expect(destination.samples).toEqual(['test_a{host=h} 3 2', 'test_a{host=h} 4 5'])
    expect(await counters(seat)).toMatchObject({ values: 2, superseded: 2 })
  })

  it('wait for a whole request, or until they are old enough', async () => {
    await start({ batchSize: 2, batchAgeMs: 60_000 })
    push('a', 1)
    push('a', 2, 1)
    push('a', 3, 2)
    await eventually(() => expect(destination.requests).toHaveLength(1))
    await producer?.settle()
    expect(destination.requests).toHaveLength(1)
    await until(() => expect(destination.requests).toHaveLength(2))
  })

  it('that the channel has lost are a counter', async () => {
    destination.answer = () => ({ status: 503 })
    const seat = await start({ batchSize: 1 })
    const { registry } = producer!.server.parts.producer
    const channel = [...registry.all()].find(({ row }) => row.name === 'drain:d')!
    registry.configure(channel, { ...channel.row, maxBytes: 4_096, windowBytes: 4_096 })
    for (let value = 0; value < 500; value++) push('a', value, value)
    destination.answer = () => ({ status: 204 })
    await until(async () => expect(await ledger(seat)).toMatchObject({ queued: 0, in_flight: 0 }))
    const { dropped } = (await ledger(seat)) as unknown as { dropped: { overflow: number } }
    expect(dropped.overflow).toBeGreaterThan(0)
    const lost = destination.samples.filter((sample) => sample.startsWith('cinnabar_lost_values_total'))
    expect(lost.at(-1)).toContain(`cinnabar_lost_values_total{drain=d,reason=overflow} ${dropped.overflow} `)
    expect((await counters(seat))['lost']).toBe(dropped.overflow)
  })
})

describe('a destination', () => {
  it.each([429, 500, 503, 401, 404, 302])(
    'that answers %i gets the same again, and nothing is committed before',
    async (code) => {
      destination.answer = () => ({ status: code, text: 'not now' })
      const seat = await start()
      push('a', 1)
      await until(() => expect(destination.requests.length).toBeGreaterThan(2))
      expect(await ledger(seat)).toMatchObject({ accepted: 1, committed: 0 })
      expect(await status(seat)).toMatchObject({
        state: 'failed',
        detail: expect.stringContaining(`answered ${code}: not now`),
      })
      destination.answer = () => ({ status: 200 })
      await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 1 }))
      expect(new Set(destination.samples)).toEqual(new Set(['test_a{host=h} 1 0']))
      expect((await status(seat)).state).toBe('sending')
    },
  )

  it('that answers 101 and changes the protocol gets the same again', async () => {
    destination.answer = () => ({ status: 101, headers: { connection: 'upgrade', upgrade: 'x' } })
    const seat = await start()
    push('a', 1)
    await until(async () =>
      expect(await status(seat)).toMatchObject({ detail: expect.stringContaining('answered 101') }),
    )
    destination.answer = () => ({ status: 200 })
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 1 }))
  })

  it('that is not there gets everything when it is', async () => {
    await destination.close()
    const seat = await start()
    for (let value = 0; value < 10; value++) push('a', value, value)
    await until(async () => expect((await counters(seat))['retries']).toBeGreaterThan(1))
    await destination.open()
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 10 }))
    expect(destination.samples).toEqual(Array.from({ length: 10 }, (_, value) => `test_a{host=h} ${value} ${value}`))
  })

  it('is asked again when it says so: Retry-After', async () => {
    destination.answer = () => ({ status: 503, headers: { 'retry-after': '300' } })
    await start()
    push('a', 1)
    await until(() => expect(destination.requests).toHaveLength(1))
    await producer?.settle()
    for (let second = 0; second < 280; second++) producer?.clock.advance(1_000)
    await producer?.settle()
    expect(destination.requests).toHaveLength(1)
    await until(() => expect(destination.requests.length).toBeGreaterThan(1))
  })

  it('that refuses some values gets the others: only the refused ones stand alone, and are committed as refused', async () => {
    destination.answer = (names) =>
      names.includes('test_bad') ? { status: 400, text: 'out of order sample' } : { status: 204 }
    const seat = await start({ batchSize: 8 })
    const sensor = producer?.push as PushSensor
    const metricOf = sensor.metric.bind(sensor)
    sensor.metric = (name) => ({ ...(metricOf(name) as Metric), description: 'A number.' })
    for (let value = 0; value < 8; value++) push(value === 5 ? 'bad' : 'good', value, value)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 8 }))
    const taken = destination.requests.filter(({ body }) => !namesIn(body, '/write').includes('test_bad'))
    expect(taken.flatMap(({ body }) => samplesIn(body)).map((sample) => sample.split(' ')[1])).toEqual([
      '0',
      '1',
      '2',
      '3',
      '4',
      '6',
      '7',
    ])
    expect(await counters(seat)).toMatchObject({ values: 7, refusedOutOfOrder: 1, retries: 0 })
    // What the refused request said of it is said again, once.
    expect(taken.flatMap(({ body }) => familiesIn(body))).toEqual(['test_good'])
  })

  it('that forbids some values is not sent those again; one that forbids everything is', async () => {
    destination.answer = (names) => (names.includes('test_bad') ? { status: 403 } : { status: 204 })
    const seat = await start()
    push('good', 1)
    push('bad', 2)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    expect(await counters(seat)).toMatchObject({ values: 1, refusedForbidden: 1 })
    destination.answer = () => ({ status: 403 })
    push('good', 3, 1)
    await until(async () => expect((await counters(seat))['retries']).toBeGreaterThan(1))
    expect(await ledger(seat)).toMatchObject({ committed: 2 })
  })

  it('that fails for a minute at one value only is spared that value', async () => {
    destination.answer = (names) => (names.includes('test_bad') ? { status: 500 } : { status: 204 })
    const seat = await start()
    for (const name of ['good', 'bad', 'good']) push(name, 1, name === 'bad' ? 1 : Math.random() * 100 + 2)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 3 }), 5_000)
    expect(await counters(seat)).toMatchObject({ values: 2, refusedFailed: 1 })
    expect(producer?.clock.monotonicMs()).toBeGreaterThan(60_000)
  })
})

describe('a fault of the server', () => {
  it('costs the connection, which is made again, and no value', async () => {
    const seat = await start()
    const { registry } = producer!.server.parts.producer
    const channel = [...registry.all()].find(({ row }) => row.name === 'drain:d')!
    // Whatever is wrong with one.
    const bindings = channel.bindings.get.bind(channel.bindings)
    channel.bindings.get = () => {
      throw new Error('a fault of a test')
    }
    push('a', 1)
    await until(() => expect(producer?.logged.join()).toContain('a fault of a test'))
    channel.bindings.get = bindings
    await until(async () => expect(await ledger(seat)).toMatchObject({ accepted: 1, committed: 1 }))
    expect(destination.samples).toEqual(['test_a{host=h} 1 0'])
  })
})

describe('credentials', () => {
  it('are read for each request, and stand in no status', async () => {
    const tokenFile = join(directory, 'token')
    writeFileSync(tokenFile, 'first-secret\n')
    const seat = await start({ tokenFile })
    push('a', 1)
    await until(() => expect(destination.requests).toHaveLength(1))
    writeFileSync(tokenFile, 'second-secret\n')
    push('a', 2, 1)
    await until(() => expect(destination.requests).toHaveLength(2))
    expect(destination.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first-secret',
      'Bearer second-secret',
    ])
    writeFileSync(tokenFile, 'two words')
    push('a', 3, 2)
    await until(async () => expect((await status(seat)).detail).toContain(`${tokenFile} holds no token`))
    expect(JSON.stringify(await status(seat))).not.toMatch(/secret|two/)
  })

  it('are a user name and a password too', async () => {
    const passwordFile = join(directory, 'password')
    writeFileSync(passwordFile, 'pä')
    await start({ username: 'me', passwordFile })
    push('a', 1)
    await until(() => expect(destination.requests).toHaveLength(1))
    expect(destination.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('me:pä').toString('base64')}`)
  })
})

describe('OTLP', () => {
  const metricsSent = () =>
    destination.requests.flatMap(({ body }) => {
      return finish(decodeMetrics(body, LIMITS)).flatMap(({ scopes }) => scopes.flatMap(({ metrics }) => metrics))
    })

  it('has numbers as gauges, and histograms as they came', async () => {
    const seat = await start({}, 'otlp')
    push('level', 1.5, 1)
    push('whole', { type: BasicType.INT64, value: -3n }, 2)
    push('took', {
      type: BasicType.REC,
      value: [
        { name: 'delta', type: BasicType.BOOLEAN, value: true },
        { name: 'start', type: BasicType.UINT64, value: BigInt(EPOCH) },
        { name: 'count', type: BasicType.UINT64, value: 3n },
        { name: 'sum', ...double(4) },
        { name: 'bounds', type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items: [1] } },
        { name: 'counts', type: BasicType.ARRAY, value: { element: BasicType.UINT64, items: [1n, 2n] } },
      ],
    })
    push('gone', { type: BasicType.VOID, value: null })
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 4 }))
    const attributes = [{ key: 'host', value: 'h' }]
    expect(metricsSent()).toMatchObject([
      { name: 'test.level', data: { kind: 'gauge', points: [{ value: 1.5, attributes, time: EPOCH + 1_000 }] } },
      { name: 'test.whole', data: { kind: 'gauge', points: [{ value: -3n }] } },
      {
        name: 'test.took',
        data: {
          kind: 'histogram',
          temporality: 1,
          points: [{ count: 3n, sum: 4, bounds: [1], counts: [1n, 2n], start: EPOCH }],
        },
      },
      { name: 'test.gone', data: { kind: 'gauge', points: [{ isEnd: true }] } },
    ])
  })

  it('has exponential histograms as they came', async () => {
    const seat = await start({}, 'otlp')
    const counts = (items: bigint[]) =>
      ({ type: BasicType.ARRAY, value: { element: BasicType.UINT64, items } }) as const
    push('sizes', {
      type: BasicType.REC,
      value: [
        { name: 'delta', type: BasicType.BOOLEAN, value: false },
        { name: 'start', type: BasicType.UINT64, value: 0n },
        { name: 'count', type: BasicType.UINT64, value: 4n },
        { name: 'sum', ...double(9) },
        { name: 'scale', type: BasicType.INT32, value: -1 },
        { name: 'zero_count', type: BasicType.UINT64, value: 1n },
        { name: 'zero_threshold', ...double(0.5) },
        { name: 'positive_offset', type: BasicType.INT32, value: 2 },
        { name: 'positive_counts', ...counts([1n, 2n]) },
        { name: 'negative_offset', type: BasicType.INT32, value: 0 },
        { name: 'negative_counts', ...counts([]) },
      ],
    })
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 1 }))
    const point = {
      count: 4n,
      sum: 9,
      scale: -1,
      zeroCount: 1n,
      zeroThreshold: 0.5,
      positive: { offset: 2, counts: [1n, 2n] },
    }
    expect(metricsSent()).toMatchObject([
      { name: 'test.sizes', data: { kind: 'exponential-histogram', temporality: 2, points: [point] } },
    ])
  })

  it('is not sent again what was refused in part, which is counted', async () => {
    destination.answer = () => ({ status: 200, text: encodeAnswer(1, 'no such series') })
    const seat = await start({}, 'otlp')
    push('a', 1)
    push('b', 2)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    expect(destination.requests).toHaveLength(1)
    expect(await counters(seat)).toMatchObject({ values: 1, refusedInvalid: 1 })
  })

  it.each([
    ['more than were sent', '0a 0a 08 ffffffffffffffff7f', { values: 0, refusedInvalid: 2 }],
    ['fewer than none', '0a 0b 08 fbffffffffffffffff01', { values: 2, refusedInvalid: 0 }],
  ])('says that %s were refused, of which as many count as there can be', async (_, answer, counted) => {
    destination.answer = () => ({ status: 200, text: Buffer.from(answer.replaceAll(' ', ''), 'hex') })
    const seat = await start({}, 'otlp')
    push('a', 1)
    push('b', 2)
    await until(async () => expect(await ledger(seat)).toMatchObject({ committed: 2 }))
    expect(await counters(seat)).toMatchObject(counted)
  })
})

describe('a reload', () => {
  it('begins, changes and ends drains, and leaves those alone that stay the same', async () => {
    const seat = await start()
    const { producer: parts } = producer!.server.parts
    const [before] = [...parts.registry.all()].filter(({ row }) => row.name === 'drain:d')
    const connection = before?.connection
    follow(tableOf(), tableOf({ name: 'e', metrics: ['test.b'] }))
    await producer?.settle()
    expect(before?.connection).toBe(connection)
    push('a', 1)
    push('b', 2)
    await until(() => {
      expect([...destination.samples].sort()).toEqual([
        'test_a{host=h} 1 0',
        'test_b{host=h} 2 0',
        'test_b{host=h} 2 0',
      ])
    })
    follow(tableOf({ metrics: ['test.c'] }))
    await producer?.settle()
    destination.requests.length = 0
    push('a', 3, 1)
    push('c', 4, 1)
    await until(() => expect(destination.samples).toEqual(['test_c{host=h} 4 1']))
    const names = (decoded(await seat.query('producer.sensors')) as { name: string }[]).map(({ name }) => name)
    expect(names.filter((name) => name.startsWith('drain/'))).toEqual(['drain/d'])
  })
})

describe('the channel of a drain', () => {
  it('ends with its user, and nothing is sent any more, which it says', async () => {
    const seat = await start()
    await done(seat, 'user.remove', { user: 'drain:d' })
    push('a', 1)
    for (let turn = 0; turn < 5; turn++) {
      producer?.clock.advance(5_000)
      await producer?.settle()
    }
    expect(destination.requests).toEqual([])
    expect(await ledger(seat)).toBeUndefined()
    const sensors = decoded(await seat.query('producer.sensors')) as { name: string }[]
    expect(sensors.find(({ name }) => name === 'drain/d')).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('its channel was removed: it is made anew at the next start'),
    })
  })

  it('belongs to a user of its own, is found again after a restart, and binds what the configuration names', async () => {
    destination.answer = () => ({ status: 503 })
    await start()
    push('a', 1)
    await until(() => expect(destination.requests.length).toBeGreaterThan(0))
    destination.answer = () => ({ status: 204 })
    producer = await producer?.crash()
    const seat = await producer!.seat('root')
    await until(async () =>
      expect(await ledger(seat)).toMatchObject({ identity: 'drain:d', accepted: 1, committed: 1 }),
    )
    expect(destination.samples).toContain('test_a{host=h} 1 0')
    expect(destination.samples.at(-1)).toMatch(/^cinnabar_lost_values_total\{drain=d,reason=restart\} 0 /)
  })
})
