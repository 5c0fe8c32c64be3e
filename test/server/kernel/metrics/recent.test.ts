import fc from 'fast-check'
import { expect, test } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Value, writeTyped } from '../../../../protocol/monitor/value.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import type { ListeningSensor, Series } from '../../../../server/kernel/metrics/metric.ts'
import { isDue, type RecentSeries, RecentValues } from '../../../../server/kernel/metrics/recent.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { PushSensor, TestSeries } from '../../../support/test-sensor.ts'

const SECOND = 1_000_000
const double = (value: number): Value => ({ type: BasicType.DOUBLE, value })

function fixture(maxBytes = 64 * 2 ** 20, maxAgeMs = 900_000) {
  const clock = new FakeClock()
  const recent = new RecentValues(clock, { maxBytes, maxAgeMs })
  const born = (name: string, tenant = 'default'): RecentSeries => {
    const series = new TestSeries(name, 'n1') as Series
    recent.born({ owner: { tenant } } as ListeningSensor, series)
    return series.recent as RecentSeries
  }
  /** Keeps a value if it is due, as the hub does. */
  const take = (kept: RecentSeries, value: Value, time: number): void => {
    if (isDue(kept, time)) recent.take(kept, value, time)
  }
  const numbers = (): number[] => [...recent.above(0)].flatMap((kept) => kept?.number ?? [])
  return { clock, recent, born, take, numbers }
}

test('of the values within a second the first is kept', () => {
  const { recent, born, take } = fixture()
  const kept = born('test.a')
  for (let tenth = 0; tenth <= 30; tenth++) take(kept, double(tenth), 5 * SECOND + tenth * 100_000)
  expect(recent.samples(kept, 0)).toEqual({
    times: [5 * SECOND, 6 * SECOND, 7 * SECOND, 8 * SECOND],
    values: [0, 10, 20, 30],
  })
  expect(recent.samples(kept, 7 * SECOND).values).toEqual([20, 30])
})

test('those of one name are found without the others, in their order', () => {
  const { recent, born, take } = fixture(3 * (16 * 16 + 128 + 512))
  const [first, other, second] = [born('test.a'), born('test.b'), born('test.a')]
  for (const kept of [first, other, second]) take(kept, double(1), SECOND)
  const named = (name: string, after = 0, sensors = [first.sensor, other.sensor, second.sensor]) =>
    finish(recent.named(name, sensors, after))
  expect(named('test.a')).toEqual([first, second])
  expect(named('test.a', 0, [second.sensor, first.sensor])).toEqual([first, second])
  expect(named('test.a', first.number)).toEqual([second])
  expect(named('test.a', 0, [other.sensor])).toEqual([])
  expect(named('test.c')).toEqual([])
  // There is room for three: the first has lost its sample.
  take(born('test.d'), double(1), SECOND)
  expect(named('test.a')).toEqual([second])
})

test('a series that was recorded for a while goes on as the one that it was', () => {
  const { recent, born, take } = fixture()
  const kept = born('test.a')
  take(kept, double(1), SECOND)
  const sensors = [{ polled: false, series: () => [kept.series] } as never]
  finish(recent.leaveOut(() => true, sensors))
  expect(kept.series.recent).toBeUndefined()
  finish(recent.leaveOut(() => false, sensors))
  expect(kept.series.recent).toBe(kept)
  take(kept, double(2), 3 * SECOND)
  expect([...recent.above(0)].map((one) => one && recent.samples(one, 0).values)).toEqual([[1, 2]])
})

test('a clock that was set back does not end it', () => {
  const { recent, born, take } = fixture()
  const kept = born('test.a')
  take(kept, double(1), 9000 * SECOND)
  take(kept, double(2), 10 * SECOND)
  expect(recent.samples(kept, 0).values).toEqual([1, 2])
})

test.each([
  ['the last', 5],
  ['the last of many', 15],
  ['one of several', 40],
])('a sample of the future hides no other: as %s', (_, count) => {
  const { clock, recent, born, take } = fixture()
  const kept = born('test.a')
  const values = Array.from({ length: count }, (_, second) => second)
  for (const value of values) {
    take(kept, double(value), clock.microseconds())
    if (value === 14) take(kept, double(-1), clock.microseconds() + 3600 * SECOND)
    clock.advance(1000)
  }
  if (count <= 15) take(kept, double(-1), clock.microseconds() + 3600 * SECOND)
  const shown = recent.samples(kept, 0).values
  expect(shown.filter((value) => value >= 0)).toEqual(values)
  expect(shown).toContain(-1)
})

test("a step of the server's clock hides no sample, and ages none that the source's clock did not", () => {
  const { clock, recent, born, take } = fixture(64 * 2 ** 20, 60_000)
  const kept = born('test.a')
  for (let second = 0; second < 10; second++) {
    if (second === 5) clock.jumpWall(-3_600_000)
    take(kept, double(second), clock.microseconds())
    clock.advance(1000)
  }
  clock.jumpWall(7_200_000)
  expect(recent.samples(kept, 0).values).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  clock.advance(60_000)
  expect(recent.samples(kept, 0).values).toEqual([])
})

test('numbers and booleans are kept, encoded or not, and nothing else', () => {
  const { recent, born } = fixture()
  const values: readonly [Value, number | undefined][] = [
    [{ type: BasicType.INT32, value: -5 }, -5],
    [{ type: BasicType.UINT32, value: 4_000_000_000 }, 4_000_000_000],
    [{ type: BasicType.INT64, value: -(2n ** 40n) }, -(2 ** 40)],
    [{ type: BasicType.UINT64, value: 2n ** 60n }, 2 ** 60],
    [double(0.25), 0.25],
    [{ type: BasicType.BOOLEAN, value: true }, 1],
    [{ type: BasicType.BOOLEAN, value: false }, 0],
    [{ type: BasicType.STRING, value: '5' }, undefined],
    [{ type: BasicType.VOID, value: null }, undefined],
    [{ type: BasicType.OPAQUE, value: new Uint8Array(8) }, undefined],
  ]
  for (const [value, expected] of values) {
    const [plain, encoded] = [born('test.a'), born('test.b')]
    recent.take(plain, value, SECOND)
    const writer = new XdrWriter()
    writeTyped(writer, value)
    recent.takeEncoded(encoded, writer.bytes(), SECOND)
    for (const kept of [plain, encoded]) {
      expect(recent.samples(kept, 0).values).toEqual(expected === undefined ? [] : [expected])
    }
  }
})

test('values are dropped when they are too old, and their memory is used again', () => {
  const { clock, recent, born, take, numbers } = fixture(64 * 2 ** 20, 60_000)
  const [early, late] = [born('test.a'), born('test.b')]
  for (let second = 0; second < 100; second++) {
    if (second < 20) take(early, double(second), clock.microseconds())
    take(late, double(second), clock.microseconds())
    clock.advance(1000)
    recent.sweep()
  }
  expect(numbers()).toEqual([late.number])
  expect(recent.samples(late, 0).values.length).toBeLessThanOrEqual(60 + 16)
  expect(recent.samples(late, 0).values.at(-1)).toBe(99)
  clock.advance(60_001)
  expect(recent.samples(late, 0).values).toEqual([])
  recent.sweep()
  expect(recent.bytes).toBe(0)
})

test('a series that is written slowly keeps nothing of others from being dropped, and shows nothing that is too old', () => {
  const { clock, recent, born, take } = fixture(64 * 2 ** 20, 60_000)
  const [slow, fast] = [born('test.slow'), born('test.fast')]
  for (let second = 0; second < 400; second++) {
    if (second % 10 === 0) take(slow, double(second), clock.microseconds())
    take(fast, double(second), clock.microseconds())
    recent.sweep()
    // 60 samples, and two chunks that are partly within the time.
    expect(fast.chunks.length).toBeLessThanOrEqual(6)
    clock.advance(1000)
  }
  expect(recent.samples(slow, 0).values).toEqual([340, 350, 360, 370, 380, 390])
})

test('when there is no room the series that is written least gives way', () => {
  const { clock, recent, born, take } = fixture(24_000)
  const silent = born('test.silent')
  for (let second = 0; second < 20; second++) take(silent, double(second), second * SECOND)
  const slow = born('test.slow')
  const busy = [0, 1, 2, 3, 4].map((n) => born(`test.${n}`))
  for (let second = 100; second < 900; second++) {
    if (second % 30 === 0) take(slow, double(second), second * SECOND)
    for (const kept of busy) take(kept, double(second), second * SECOND)
    clock.advance(1000)
    expect(recent.bytes).toBeLessThanOrEqual(24_000)
  }
  expect(recent.samples(silent, 0).values).toEqual([])
  expect(recent.samples(slow, 0).values.length).toBeGreaterThan(5)
  for (const kept of busy) expect(recent.samples(kept, 0).values.length).toBeGreaterThan(100)
})

test('a tenant that floods takes nothing from one that needs less than its share', () => {
  const { recent, born, take } = fixture(100_000)
  const mine = [0, 1, 2].map((n) => born(`test.${n}`, 'a'))
  for (const kept of mine) for (let second = 0; second < 40; second++) take(kept, double(second), second * SECOND)
  for (let n = 0; n < 5000; n++) take(born(`test.flood${n}`, 'b'), double(n), SECOND)
  expect(recent.bytes).toBeLessThanOrEqual(100_000)
  for (const kept of mine) expect(recent.samples(kept, 0).values).toHaveLength(40)
})

test('off, it keeps nothing', () => {
  const { recent } = fixture(0)
  const series = new TestSeries('test.a', 'n1') as Series
  recent.born({ owner: 'producer' } as ListeningSensor, series)
  expect(series.recent).toBeUndefined()
})

test('what is read is always the end of what was written, in order, within the bound', () => {
  const deed = fc.record({ series: fc.nat(9), owner: fc.nat(2), seconds: fc.nat(200) })
  fc.assert(
    fc.property(fc.array(deed, { maxLength: 400 }), fc.integer({ min: 3_000, max: 30_000 }), (deeds, maxBytes) => {
      const { clock, recent, born, take } = fixture(maxBytes, 600_000)
      const all = Array.from({ length: 30 }, (_, n) => born(`test.${n}`, 'abc'[n % 3]))
      const written = all.map((): number[] => [])
      for (const [value, { series, owner, seconds }] of deeds.entries()) {
        clock.advance(seconds * 1000)
        recent.sweep()
        const at = series * 3 + owner
        const kept = all[at] as RecentSeries
        if (isDue(kept, clock.microseconds())) written[at]?.push(value)
        take(kept, double(value), clock.microseconds())
        expect(recent.bytes).toBeLessThanOrEqual(maxBytes)
      }
      for (const [at, kept] of all.entries()) {
        const { values } = recent.samples(kept, 0)
        expect(values).toEqual(values.length === 0 ? [] : written[at]?.slice(-values.length))
      }
    }),
  )
})

test('the hub keeps what is pushed, whether somebody subscribes to it or not, and no VOID', () => {
  const clock = new FakeClock()
  const recent = new RecentValues(clock, { maxBytes: 2 ** 20, maxAgeMs: 60_000 })
  const hub = new Hub(clock, { recent })
  const push = new PushSensor(hub)
  for (const second of [1, 2]) push.push('test.a', { type: BasicType.UINT32, value: second }, second * SECOND)
  push.die('test.a')
  const [kept] = [...recent.above(0)] as [RecentSeries]
  expect(kept.series.name).toBe('test.a')
  expect(recent.samples(kept, 0)).toEqual({ times: [SECOND, 2 * SECOND], values: [1, 2] })
})
