/**
 * Values and times of any kind from code that is not the server's: what does not fit its type is a fault of the sensor, and
 * whoever reads can write the rest.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { SensorDoor } from '../../../../server/kernel/metrics/sensor-door.ts'
import { valueProblem } from '../../../../server/kernel/metrics/value-problem.ts'
import { value } from '../../../protocol/monitor/arbitraries.ts'
import { times } from '../../../support/long.ts'
import { doubles, integers, times as microseconds } from '../../../support/odd-numbers.ts'
import { lastOf, Readers } from '../../../support/readers.ts'
import { OpenSensor } from '../../../support/test-sensor.ts'

const { ARRAY, BOOLEAN, DOUBLE, INT32, REC, UINT64 } = BasicType

/** What fits the list that answers a pattern: an ARRAY of RECs. */
const RECORD_DEPTH = 2
/** A type and what is no value of it, more often than not. */
const unchecked = fc
  .tuple(fc.constantFrom(...Object.values(BasicType)), fc.oneof(doubles, integers))
  .map(([type, one]) => ({ type, value: one }) as unknown as Value)
const doubleList = fc.array(doubles, { maxLength: 4 }).map((items) => ({ element: DOUBLE, items }))
const countList = fc.array(fc.bigInt(0n, 2n ** 64n - 1n), { maxLength: 5 }).map((items) => ({ element: UINT64, items }))
/** Looks like a distribution. */
const distribution = fc
  .record(
    {
      start: fc.oneof(
        fc.bigInt(0n, 2n ** 64n - 1n).map((value) => ({ type: UINT64, value })),
        doubles.map((value) => ({ type: DOUBLE, value })),
      ),
      delta: fc.boolean().map((value) => ({ type: BOOLEAN, value })),
      count: fc.bigInt(0n, 2n ** 64n - 1n).map((value) => ({ type: UINT64, value })),
      sum: doubles.map((value) => ({ type: DOUBLE, value })),
      bounds: doubleList.map((value) => ({ type: ARRAY, value })),
      counts: countList.map((value) => ({ type: ARRAY, value })),
      quantiles: doubleList.map((value) => ({ type: ARRAY, value })),
      values: doubleList.map((value) => ({ type: ARRAY, value })),
      scale: fc.constantFrom(-(2 ** 31), 0, 2 ** 31 - 1).map((value) => ({ type: INT32, value })),
      positive_offset: fc.constantFrom(-(2 ** 31), 0, 2 ** 31 - 1).map((value) => ({ type: INT32, value })),
      positive_counts: countList.map((value) => ({ type: ARRAY, value })),
      negative_offset: fc.constantFrom(0, 1).map((value) => ({ type: INT32, value })),
      negative_counts: countList.map((value) => ({ type: ARRAY, value })),
    },
    { requiredKeys: ['count'] },
  )
  .map((fields) => {
    return { type: REC, value: Object.entries(fields).map(([name, field]) => ({ name, ...field })) } as Value
  })
const given = fc.array(
  fc.tuple(
    fc.constantFrom('a', 'b'),
    fc.oneof(value(RECORD_DEPTH), unchecked, distribution),
    fc.oneof(microseconds, doubles),
  ),
  { minLength: 1, maxLength: 8 },
)

it('are checked at the door', () =>
  fc.assert(
    fc.asyncProperty(given, async (all) => {
      const readers = new Readers()
      const door = new SensorDoor(readers.hub)
      const sensor = new OpenSensor(door)
      readers.bind('open.*')
      const isPossible = (one: Value, time: number) =>
        valueProblem(one) === undefined && time >= 0 && time <= Number.MAX_SAFE_INTEGER
      let taken = 0
      for (const [name, one, time] of all) {
        sensor.push(`open.${name}`, {}, one, time)
        if (isPossible(one, time)) taken++
      }
      expect(await readers.read()).toHaveLength(taken)
      sensor.push('open.good', {}, { type: DOUBLE, value: 7 }, 7)
      expect(lastOf(await readers.read(), 'open.good')).toBe(7)
    }),
    { numRuns: times({ short: 20, long: 80 }) },
  ))
