/** Metrics that are bound and missing at a start, as those of a plug-in that fails: nothing of them is lost. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { EventSensor, LocalSensor, Measurement, Metric } from '../../../server/kernel/metrics/metric.ts'
import type { SensorHub } from '../../../server/kernel/metrics/sensor-door.ts'
import { done } from '../../support/administration.ts'
import { args, command, f64, status, str, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { numberOf, type Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

const PURGED = 4
const WITHDRAWN = 4

/** `alert.*` with a history: a binding gets what has happened since its place. */
class Alerts implements EventSensor {
  readonly polled = 'event'
  readonly family = 'alert.'
  readonly owner = 'producer'
  readonly #history: number[] = []
  readonly #tell = new Set<() => void>()

  metrics(): Iterable<Metric> {
    return [this.metric('alert.disk')]
  }

  metric(name: string): Metric {
    const parameters = [
      { name: 'level', type: BasicType.UINT32, description: '' },
      { name: 'interval_ms', type: BasicType.DOUBLE, description: '' },
    ]
    return { name, kind: 'event', type: BasicType.UINT32, unit: '', description: '', parameters }
  }

  subscribe(...[, , listener, , place]: Parameters<EventSensor['subscribe']>): () => void {
    let next = (place.reached ?? -1) + 1
    const tell = (): void => {
      for (; next < this.#history.length; next++) {
        const event: Measurement = { value: { type: BasicType.UINT32, value: this.#history[next]! }, time: EPOCH }
        listener(event)
        place.reach(next)
      }
    }
    tell()
    this.#tell.add(tell)
    return () => this.#tell.delete(tell)
  }

  happen(value: number): void {
    this.#history.push(value)
    for (const tell of this.#tell) tell()
  }
}

let producer: TestProducer
let alerts: Alerts
let isThere: boolean
let gone: PushSensor | undefined
beforeEach(async () => {
  isThere = true
  alerts = new Alerts()
  producer = await TestProducer.start({
    sensors: (hub: SensorHub) => {
      if (!isThere) return
      hub.add(alerts as LocalSensor)
      gone = new PushSensor(hub, 'gone.')
    },
  })
})
afterEach(() => producer.stop())

async function restart(is: boolean): Promise<void> {
  isThere = is
  await producer.settle()
  producer = await producer.restart()
}

async function resume(channel: number, name?: string): Promise<Seat> {
  const seat = await producer.seat(name)
  await seat.setChannel(channel)
  return seat
}

async function bindAlerts(seat: Seat, channel: number, list?: Uint8Array, metric = 'alert.disk'): Promise<number> {
  const id = await seat.collect(metric, list)
  await seat.ok((seq) => command.subscribe(seq, id, channel))
  return id
}

test.each([
  ['alert.disk', undefined],
  ['alert.disk', args(['level', type.uint32, u32(3)])],
  // For a continuous metric its type would be another.
  ['alert.disk', args(['interval_ms', type.double, f64(20.5)])],
  // No other family knows the argument.
  ['alert.*', args(['level', type.uint32, u32(3)])],
])(
  'a binding of %s waits for the start at which its metric is back, and goes on where it was',
  async (metric, list) => {
    const seat = await producer.seat()
    const channel = await seat.defChannel()
    const id = await bindAlerts(seat, channel, list, metric)
    const notices = await bindAlerts(seat, channel, undefined, 'producer.notices')
    alerts.happen(1)
    await restart(false)
    alerts.happen(2)
    const meanwhile = await resume(channel)
    expect((await meanwhile.ledger(channel)).bindings).toContainEqual({ metric: id, name: metric, mode: 'subscribe' })
    const [first, notice] = await meanwhile.values(2)
    expect([first?.metric, notice?.metric]).toEqual([id, notices])
    expect(decoded(notice!)).toMatchObject({ severity: 'warning', detail: expect.stringContaining(metric) })
    expect(producer.logged.filter((line) => line.includes('is not there: it has no values'))).toHaveLength(1)
    await meanwhile.commit(first!.transaction)
    await meanwhile.commit(notice!.transaction)
    await restart(true)
    const back = await resume(channel)
    alerts.happen(3)
    const values = await back.values(2)
    expect(values.map((value) => [value.metric, value.value.readUInt32BE(value.value.length - 4)])).toEqual([
      [id, 2],
      [id, 3],
    ])
  },
)

test('a STOP while the metric is missing ends the binding for good', async () => {
  const seat = await producer.seat()
  const channel = await seat.defChannel()
  const id = await bindAlerts(seat, channel)
  await restart(false)
  const meanwhile = await resume(channel)
  await meanwhile.ok((seq) => command.stop(seq, id, channel))
  expect(await meanwhile.ask((seq) => command.stop(seq, id, channel))).toMatchObject({ status: status.NO_SUCH_ID })
  await restart(true)
  const back = await resume(channel)
  alerts.happen(1)
  await producer.settle()
  expect(back.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  expect((await back.ledger(channel)).bindings).toEqual([])
})

test('a right that ends while the metric is missing ends the binding, and its queued values', async () => {
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('op', { role: 'operator' })
  const seat = await producer.seat('op')
  const channel = await seat.defChannel()
  const id = await bindAlerts(seat, channel)
  alerts.happen(1)
  await restart(false)
  const meanwhile = await resume(channel, 'op')
  expect(numberOf(await meanwhile.value())).toBe(1)
  await done(await producer.seat('root'), 'role.deny', { role: 'operator', command: 'COLLECT', object: 'alert.*' })
  expect(await meanwhile.notice()).toMatchObject({ code: WITHDRAWN, channel })
  expect(await meanwhile.gap()).toMatchObject({ reason: PURGED, metric: id })
  expect((await meanwhile.ledger(channel)).bindings).toEqual([])
})

test('keep-latest keeps the newest value of each series of a metric that is missing', async () => {
  const seat = await producer.seat()
  const channel = await seat.defChannel(['overflow', type.string, str('keep-latest')])
  await bindAlerts(seat, channel, undefined, 'gone.a')
  for (const [value, host] of [
    [1, 'h1'],
    [2, 'h2'],
    [3, 'h2'],
  ] as const) {
    gone?.push('gone.a', { type: 2, value }, EPOCH, host)
  }
  await restart(false)
  const meanwhile = await resume(channel)
  const last = (await meanwhile.values(2)).map(({ value }) => value.readUInt32BE(value.length - 4))
  expect(last).toEqual([1, 3])
})
