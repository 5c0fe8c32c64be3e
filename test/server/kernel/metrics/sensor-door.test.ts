/** The door for sensors that are not the server's: what they give is checked, and what they throw costs only them. */
import { beforeEach, describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { ForeignCode } from '../../../../server/kernel/core/faults.ts'
import type {
  EventSensor,
  ListeningSensor,
  Measurement,
  Metric,
  ResumePoint,
} from '../../../../server/kernel/metrics/metric.ts'
import { type Guest, SensorDoor } from '../../../../server/kernel/metrics/sensor-door.ts'
import { TestSeries } from '../../../support/test-sensor.ts'
import { Kept, Metrics } from './fixture.ts'

const metricOf = (name: string): Metric => {
  return { name, kind: 'event', type: BasicType.UINT32, unit: '', description: '', parameters: [] }
}
const event = (value: number): Measurement => ({ value: { type: BasicType.UINT32, value }, time: value })

let metrics: Metrics
let foreign: ForeignCode
/** The values that it may bring in. */
let room: number
let door: SensorDoor
beforeEach(() => {
  metrics = new Metrics()
  foreign = new ForeignCode()
  room = Number.POSITIVE_INFINITY
  const guest: Guest = {
    maxSeries: 100,
    enter: (act) => foreign.enter(() => {}, act),
    leave: (act) => foreign.leave(act),
    inTime: (measuring) => measuring,
    takeValue: () => room-- > 0,
    refuseSeries() {},
  }
  door = new SensorDoor(metrics.hub, guest)
})
const faults = (sensor: object): number => metrics.hub.faults.shown(sensor, unknown).counters['faults'] ?? 0
const unknown = { name: '', state: '', detail: '', counters: {} }
/** The sensor as the hub has it. */
const admitted = (): object => metrics.hub.sensors.at(-1) as object

/** `alert.one`: its bindings, in the order in which they were made. */
class Alerts implements EventSensor {
  readonly polled = 'event'
  readonly family = 'alert.'
  readonly owner = 'producer'
  readonly bound: { readonly listener: (event: Measurement) => void; readonly place: ResumePoint }[] = []

  metrics(): Iterable<Metric> {
    return [metricOf('alert.one')]
  }

  metric(name: string): Metric {
    return metricOf(name)
  }

  subscribe(...[, , listener, , place]: Parameters<EventSensor['subscribe']>): () => void {
    this.bound.push({ listener, place })
    return () => {}
  }
}

describe('events', () => {
  let alerts: Alerts
  beforeEach(() => {
    alerts = new Alerts()
    door.add(alerts)
  })

  test.each([0.5, Number.NaN, -1, 2 ** 53, '7', undefined])(
    'a place that is %o is a fault and is not stored',
    (place) => {
      const reached: unknown[] = []
      metrics.hub.bind(metrics.instance('alert.one'), new Kept(), {
        reached: undefined,
        reach: (number) => reached.push(number),
      })
      alerts.bound[0]?.place.reach(place as number)
      alerts.bound[0]?.place.reach(7)
      expect([reached, faults(admitted())]).toEqual([[7], 1])
    },
  )

  test('what the server does for a place belongs to the server', () => {
    const whose: boolean[] = []
    const reach = (): void => void whose.push(foreign.take(new Error('of the server')))
    metrics.hub.bind(metrics.instance('alert.one'), new Kept(), { reached: 3, reach })
    foreign.enter(
      () => {},
      () => alerts.bound[0]?.place.reach(4),
    )
    expect([whose, alerts.bound[0]?.place.reached]).toEqual([[false], 3])
  })

  test('an event counts once, however many bindings get it', () => {
    room = 2
    const sinks = [new Kept(), new Kept(), new Kept()]
    for (const sink of sinks) metrics.hub.bind(metrics.instance('alert.one'), sink)
    for (const one of [event(1), event(2), event(3)]) for (const { listener } of alerts.bound) listener(one)
    expect(sinks.map(({ numbers }) => numbers)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
  })

  test('an object that is used again is another event', () => {
    room = 2
    const sink = new Kept()
    metrics.hub.bind(metrics.instance('alert.one'), sink)
    const one = event(1)
    for (let i = 0; i < 3; i++) alerts.bound[0]?.listener(one)
    expect(sink.numbers).toEqual([1, 1])
  })

  test('nothing comes after the end of a binding, should its sensor go on with it', () => {
    const sink = new Kept()
    const reached: number[] = []
    const place = { reached: undefined, reach: (number: number) => void reached.push(number) }
    metrics.hub.bind(metrics.instance('alert.one'), sink, place).end()
    alerts.bound[0]?.listener(event(1))
    alerts.bound[0]?.place.reach(1)
    expect([sink.numbers, reached]).toEqual([[], []])
  })
})

/** `listen.*` with series as they are given. */
class Listening implements ListeningSensor {
  readonly polled = false
  readonly family = 'listen.'
  readonly owner = 'producer'
  readonly given: TestSeries[]
  asked: unknown[] = []
  looked = 0

  constructor(...given: TestSeries[]) {
    this.given = given
  }

  *metrics(...asked: unknown[]): Iterable<Metric> {
    this.asked = asked
    for (const { name } of this.given) {
      this.looked++
      yield { ...metricOf(name), kind: 'continuous' }
    }
  }

  metric(name: string): Metric {
    return { ...metricOf(name), kind: 'continuous' }
  }

  series(): Iterable<TestSeries> {
    return this.given
  }

  last(): undefined {}
}

test.each([undefined, null, 7, {}, Object.freeze([])])(
  'a series whose `subscriptions` is %o is a fault, and the others are bound',
  (subscriptions) => {
    const sensor = new Listening(
      Object.assign(new TestSeries('listen.bad', 'h1'), { subscriptions }),
      new TestSeries('listen.good', 'h1'),
    )
    door.add(sensor)
    const sink = new Kept()
    metrics.hub.bind(metrics.instance('listen.*'), sink)
    expect(faults(admitted())).toBe(1)
    for (const series of sensor.given) door.emit(series, { type: BasicType.UINT32, value: 5 }, 5)
    expect(sink.numbers).toEqual([5])
  },
)

test('metrics are asked for one at a time, with prefix and place, and only those that are sound are shown', () => {
  const sensor = new Listening(...['listen.a', 'other', 'listen.c', 'listen.d'].map((name) => new TestSeries(name, '')))
  door.add(sensor)
  const shown = metrics.hub.sensors.at(-1)?.metrics('listen.', 'a')[Symbol.iterator]() as Iterator<Metric>
  const seen: unknown[] = []
  for (const looked of [1, 3, 4]) {
    seen.push(shown.next().value?.name)
    expect(sensor.looked).toBe(looked)
  }
  expect(seen).toEqual(['listen.a', 'listen.c', 'listen.d'])
  expect([sensor.asked, shown.next().done, faults(admitted())]).toEqual([['listen.', 'a'], true, 1])
})

test('metrics and series that a sensor may list are bounded, and an array may shrink while it is read', () => {
  const sensor = new Listening(...Array.from({ length: 120 }, (_, i) => new TestSeries(`listen.n${i}`, '')))
  door.add(sensor)
  const family = metrics.hub.sensors.at(-1) as ListeningSensor
  expect([...family.metrics()]).toHaveLength(100)
  const all = family.series()[Symbol.iterator]()
  expect(all.next().value?.name).toBe('listen.n0')
  sensor.given.shift()
  expect(all.next().value?.name).toBe('listen.n1')
})
