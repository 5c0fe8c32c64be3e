/** What costs whom: an exception in a sensor, a callback or a task costs its own sensor, session or channel, and nothing else. */
import { afterEach, expect, test, vi } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type {
  Arguments,
  EventSensor,
  Measurement,
  Metric,
  PolledSensor,
} from '../../../server/kernel/metrics/metric.ts'
import type { SensorHub } from '../../../server/kernel/metrics/sensor-door.ts'
import { args, command, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer, type TestProducerOptions } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import { numberOf, type Seat } from '../../support/seat.ts'

const INTERNAL = 7
const VOID = 11

let producer: TestProducer
afterEach(() => producer.stop())

async function start(sensors?: TestProducerOptions['sensors']): Promise<{ one: Seat; other: Seat }> {
  producer = await TestProducer.start({ ...(sensors && { sensors }) })
  return { one: await producer.seat('one'), other: await producer.seat('other') }
}

/** `broken.value`, a UINT64, which says or does what the test wants. */
class BrokenSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'broken.'
  readonly owner = 'producer'
  readonly personal = false
  readonly #metric: Metric = {
    name: 'broken.value',
    kind: 'continuous',
    type: type.uint64,
    unit: '',
    description: '',
    parameters: [],
  } as Metric
  /** What it measures. */
  what: () => unknown

  constructor(what: () => unknown) {
    this.what = what
  }

  metrics = () => [this.#metric]
  metric = (name: string) => (name === 'broken.value' ? this.#metric : undefined)
  labels = ({ name }: Metric) => ({ name })
  check(): void {}
  measure = (_metric: Metric, _args: Arguments) => this.what() as Measurement
  status = () => ({ name: 'broken', state: 'measuring', detail: '', counters: {} })
}

const broken = (what: () => unknown) => (hub: SensorHub) => hub.add(new BrokenSensor(what))
const aNumber = () => ({ value: { type: type.uint64, value: 5 }, time: EPOCH })

async function faultsOf(seat: Seat): Promise<Json> {
  const sensors = decoded(await seat.query('producer.sensors')) as Json[]
  return sensors.find(({ name }) => name === 'broken')
}

async function stats(seat: Seat): Promise<Json> {
  return decoded(await seat.query('producer.stats')) as Json
}

/** The other consumer gets values, and answers. */
async function expectUnharmed(other: Seat): Promise<void> {
  await other.follow('test.unharmed')
  producer.emit(3, 'test.unharmed')
  const value = await other.value()
  expect(numberOf(value)).toBe(3)
  expect((await other.commit(value.transaction)).status).toBe(0)
}

test.each([
  ['a number for a UINT64', aNumber, 'not the number 5'],
  [
    'an exception',
    () => {
      throw new Error('the disk is gone')
    },
    'the disk is gone',
  ],
  ['a promise that rejects', () => Promise.reject(new Error('no answer')), 'no answer'],
  ['nothing', () => undefined, 'value'],
])('a sensor that measures %s gives VOID, and counts it', async (_, what, detail) => {
  const { one, other } = await start(broken(what))
  expect((await one.query('broken.value')).type).toBe(VOID)
  expect((await other.query('broken.value')).type).toBe(VOID)
  const id = await one.collect('broken.value', args(['interval_ms', type.uint32, u32(100)]))
  await one.ok((seq) => command.subscribe(seq, id))
  expect((await one.value()).type).toBe(VOID)
  producer.clock.advance(100)
  await producer.settle()
  producer.clock.advance(100)
  expect((await one.values(2)).map((value) => value.type)).toEqual([VOID, VOID])
  expect(await faultsOf(other)).toMatchObject({ state: 'failed', counters: { faults: 5 } })
  expect(await stats(other)).toMatchObject({ faults: 5 })
  const logged = producer.logged.filter((line) => line.includes('unexpected error'))
  expect(logged).toHaveLength(5)
  expect(JSON.parse(logged[0] as string)).toMatchObject({ level: 'error', owner: 'sensor broken.*' })
  expect(JSON.parse(logged[0] as string).err).toMatchObject({
    message: expect.stringContaining(detail),
    stack: expect.stringContaining('    at '),
  })
  await expectUnharmed(other)
})

test('a sensor whose every method throws costs nobody the catalogue, nor a pattern', async () => {
  const boom = (): never => {
    throw new Error('boom')
  }
  const bad = { metrics: boom, metric: boom, labels: boom, check: boom, measure: boom, status: boom, forget: boom }
  const events: EventSensor = { ...bad, polled: 'event', family: 'bad.', owner: 'producer', subscribe: boom }
  const { one, other } = await start((hub) => {
    hub.add({ ...bad, polled: true, family: 'broken.', owner: 'producer', personal: false })
    hub.add({ ...bad, polled: false, family: 'worse.', owner: 'producer', series: boom, last: boom })
    hub.add(events)
  })
  producer.emit(1)
  const all = decoded(await one.query('*.a')) as Json[]
  expect(all.map(({ name }) => name)).toContain('test.a')
  const catalogue = decoded(await one.query('producer.metrics')) as Json[]
  expect(catalogue.map(({ name }) => name)).toContain('slow.value')
  const sensors = decoded(await one.query('producer.sensors')) as Json[]
  expect(sensors.filter(({ state }) => state === 'failed')).toHaveLength(3)
  await expectUnharmed(other)
})

test('a value that does not fit its type is dropped where it comes in, once for all its consumers', async () => {
  const { one, other } = await start()
  await one.follow('test.a')
  await other.follow('test.a')
  producer.emit(1)
  producer.push.push('test.a', { type: type.uint64, value: 5 } as never, EPOCH)
  producer.push.push('test.a', { type: BasicType.UINT32, value: 6 }, Number.NaN)
  producer.push.push('test.a', { type: type.string, value: 'x'.repeat(1 << 20) } as never, EPOCH)
  producer.emit(2)
  expect((await one.values(2)).map(numberOf)).toEqual([1, 2])
  expect((await other.values(2)).map(numberOf)).toEqual([1, 2])
  expect(await stats(one)).toMatchObject({ faults: 3 })
})

test('what a callback after a response throws ends its session, with a notice', async () => {
  const { one, other } = await start()
  const channel = producer.server.parts.producer.registry.byId(one.channel)
  vi.spyOn(channel!.outbox, 'answer').mockImplementation(() => {
    throw new Error('broken callback')
  })
  const response = await one.ask((seq) => command.query(seq, 'test.a'))
  expect(response.status).toBe(0)
  expect(await one.notice()).toMatchObject({ code: INTERNAL, detail: 'the producer failed; see its log' })
  await one.closed()
  expect(producer.logged.filter((line) => line.includes('broken callback'))).toHaveLength(1)
  expect(await stats(other)).toMatchObject({ faults: 1 })
  await expectUnharmed(other)
})

test('so does what it throws later, when a slow sensor has answered', async () => {
  const { one, other } = await start()
  const id = await one.ok((seq) => command.query(seq, 'slow.value'))
  const channel = producer.server.parts.producer.registry.byId(one.channel)
  vi.spyOn(channel!.outbox, 'answer').mockImplementation(() => {
    throw new Error('broken callback')
  })
  producer.slow.asked[0]?.({ value: { type: BasicType.UINT32, value: id }, time: EPOCH })
  expect(await one.notice()).toMatchObject({ code: INTERNAL })
  await one.closed()
  await expectUnharmed(other)
})

test('an answer that cannot be written leaves no half frame on the channel of another session', async () => {
  const { one, other } = await start()
  await expectUnharmed(other)
  const { outbox } = producer.server.parts.producer.registry.byId(other.channel)!
  const half = (): boolean =>
    outbox.answer((writer) => {
      writer.uint32(9)
      throw new Error('half a frame')
    })
  expect(half).toThrow('half a frame')
  await expectUnharmed(other)
  expect(one.rest()).toEqual([])
})

test('what the task of a channel throws ends its connection, and the tasks of the next channels run', async () => {
  const { one, other } = await start()
  await one.follow('test.a')
  await other.follow('test.a')
  const { queue } = producer.server.parts.producer.registry.byId(one.channel)!
  const next = vi.spyOn(queue, 'next').mockImplementation(() => {
    throw new Error('broken queue')
  })
  producer.emit(1)
  expect(numberOf(await other.value())).toBe(1)
  expect(await one.notice()).toMatchObject({ code: INTERNAL, channel: one.channel })
  await one.closed()
  expect(next).toHaveBeenCalledOnce()
  expect(await stats(other)).toMatchObject({ faults: 1 })
  // Nothing is lost: the next connection gets the value.
  next.mockRestore()
  const again = await producer.seat('one')
  await again.setChannel(one.channel)
  expect(numberOf(await again.value())).toBe(1)
})

test('a value that a channel cannot take is lost there alone, and reported by a GAP', async () => {
  const { one, other } = await start()
  await one.follow('test.a')
  const { queue } = producer.server.parts.producer.registry.byId(one.channel)!
  const full = vi.spyOn(producer.server.parts.producer.host.pool, 'take').mockImplementation(() => {
    throw new RangeError('Array buffer allocation failed')
  })
  producer.emit(1)
  full.mockRestore()
  expect(queue.status().accepted).toBe(1)
  await one.closed()
  const again = await producer.seat('one')
  await again.setChannel(one.channel)
  expect(await again.gap()).toMatchObject({ count: 1 })
  await expectUnharmed(other)
})

test('an exception while a command is handled costs its session', async () => {
  const { one, other } = await start()
  vi.spyOn(producer.server.parts.producer.journal, 'mark').mockImplementationOnce(() => {
    throw new Error('broken journal')
  })
  one.send((seq) => command.defChannel(seq, ''))
  expect(await one.notice()).toMatchObject({ code: INTERNAL })
  await one.closed()
  await expectUnharmed(other)
})
