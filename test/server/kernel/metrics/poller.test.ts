import { beforeEach, describe, expect, test } from 'vitest'
import type {
  Arguments,
  Measurement,
  Metric,
  PolledMetric,
  PolledSensor,
} from '../../../../server/kernel/metrics/metric.ts'
import { Poller } from '../../../../server/kernel/metrics/poller.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { SlowSensor } from '../../../support/test-sensor.ts'
import { abroad, tester } from './fixture.ts'

/** Answers at once with how often it was asked, and notes the keys it was asked and left with. */
class CountingSensor extends SlowSensor implements PolledSensor {
  override readonly personal: boolean
  readonly keys: (string | undefined)[] = []
  readonly forgotten: string[] = []

  constructor(personal = false) {
    super()
    this.personal = personal
  }

  override measure(_metric: Metric, _args: Arguments, _identity: unknown, key?: string): never {
    this.keys.push(key)
    return { value: { type: 2, value: this.keys.length }, time: this.keys.length } as never
  }

  forget(key: string): void {
    this.forgotten.push(key)
  }
}

const clock = new FakeClock()
let poller: Poller
beforeEach(() => {
  poller = new Poller(clock)
})

function target(sensor: PolledSensor, ...args: [string, number | bigint][]): PolledMetric {
  const [metric] = [...sensor.metrics()] as [Metric]
  return { sensor, metric, args: new Map(args) }
}

describe('readings', () => {
  test('are taken at once for who comes, then together every interval', () => {
    const sensor = new CountingSensor()
    const seen: string[] = []
    const note = (who: string) => (measured: Measurement) => seen.push(`${who}${measured.time}`)
    const endA = poller.poll(target(sensor), tester, 100, note('a'))
    clock.advance(150)
    const endB = poller.poll(target(sensor), abroad, 100, note('b'))
    expect(seen).toEqual(['a1', 'a2', 'b3'])
    clock.advance(50)
    expect(seen.slice(3)).toEqual(['a4', 'b4'])
    endA()
    clock.advance(100)
    expect(seen.slice(5)).toEqual(['b5'])
    endB()
    endB()
    clock.advance(1000)
    expect(sensor.keys).toHaveLength(5)
    expect(clock.timers).toBe(0)
  })

  test('are shared by the same metric, arguments and interval, in whatever order the arguments came', () => {
    const sensor = new CountingSensor()
    const ends = [
      poller.poll(target(sensor, ['a', 1], ['b', 2n]), tester, 100, () => {}),
      poller.poll(target(sensor, ['b', 2n], ['a', 1]), abroad, 100, () => {}),
      poller.poll(target(sensor, ['a', 2], ['b', 2n]), tester, 100, () => {}),
      poller.poll(target(sensor, ['a', 1], ['b', 2n]), tester, 200, () => {}),
    ]
    const [first, second, third, fourth] = sensor.keys
    expect(second).toBe(first)
    expect(new Set([first, third, fourth]).size).toBe(3)
    clock.advance(100)
    expect(sensor.keys.slice(4)).toEqual([first, third])
    for (const end of ends) end()
    expect(sensor.forgotten).toEqual([first, third, fourth])
  })

  test('are not shared by two sensors that have a metric of the same name', () => {
    const sensors = [new CountingSensor(), new CountingSensor()]
    const ends = sensors.map((sensor) => poller.poll(target(sensor), tester, 100, () => {}))
    clock.advance(100)
    expect(sensors.map(({ keys }) => keys.length)).toEqual([2, 2])
    for (const end of ends) end()
    expect(sensors.map(({ forgotten }) => forgotten.length)).toEqual([1, 1])
    expect(clock.timers).toBe(0)
  })

  test('of a sensor that shows each identity its own are not shared between identities', () => {
    const sensor = new CountingSensor(true)
    const ends = [tester, abroad].map((identity) => poller.poll(target(sensor), identity, 100, () => {}))
    expect(new Set(sensor.keys).size).toBe(2)
    for (const end of ends) end()
  })
})

test('a source slower than the interval is asked again when it has answered', async () => {
  const sensor = new SlowSensor()
  const seen: number[] = []
  const end = poller.poll(target(sensor), tester, 100, ({ time }) => seen.push(time))
  const answer = async (index: number): Promise<void> => {
    sensor.asked[index]?.({ value: { type: 2, value: index }, time: index })
    await new Promise((resolve) => setImmediate(resolve))
  }
  await answer(0)
  clock.advance(1000)
  expect(sensor.asked).toHaveLength(2)
  await answer(1)
  clock.advance(100)
  expect([seen, sensor.asked.length]).toEqual([[0, 1], 3])
  end()
  await answer(2)
  expect(seen).toEqual([0, 1])
})
