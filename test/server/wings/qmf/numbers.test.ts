/** Numbers and times of any kind in the objects and events of a broker: each fits its type or is VOID, and whoever reads can write it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { FieldValue } from '../../../../protocol/amqp/field-table.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type EventSchema, type ObjectHeader, QmfType } from '../../../../protocol/qmf/types.ts'
import { mapValues, sampleOf } from '../../../../protocol/qmf/v2/values.ts'
import { valueProblem } from '../../../../server/kernel/metrics/value-problem.ts'
import { QmfSensor } from '../../../../server/wings/qmf/sensor.ts'
import { times } from '../../../support/long.ts'
import { doubles, integers, numberTexts } from '../../../support/odd-numbers.ts'
import { lastOf, Readers } from '../../../support/readers.ts'
import { index, PACKAGE, table } from './sensor-fixture.ts'

/** One item of each type that is a number or a time, and a map, which may hold any. */
const typed = Object.entries(QmfType)
  .filter(([name]) => /INT|TIME|FLOAT|DOUBLE|MAP|LIST/.test(name))
  .map(([name, type]) => ({ name, type }))
const meter = table('meter', [index('name')], { statistics: typed })
const alarm: EventSchema = {
  kind: 'event',
  key: { packageName: PACKAGE, className: 'alarm', hash: '11112222333344445555666677778888' },
  arguments: typed,
}

/** What a map of QMF v2 holds, in whatever type its sender has chosen. */
const number: fc.Arbitrary<FieldValue> = fc.oneof(doubles, integers, numberTexts, fc.boolean())
const value: fc.Arbitrary<FieldValue> = fc.oneof(
  { weight: 4, arbitrary: number },
  { weight: 1, arbitrary: fc.array(number, { maxLength: 3 }) },
  { weight: 1, arbitrary: number.map((one) => new Map([['n', one]])) },
)
const values = fc.array(value, { minLength: typed.length, maxLength: typed.length })
const nanoseconds = fc.oneof(fc.constantFrom(0n, 1n, 1_700_000_000_000_000_000n), integers)
const said = fc.array(fc.tuple(fc.constantFrom('object', 'event'), nanoseconds, values), { minLength: 1, maxLength: 6 })

it('fit their types, or are VOID', () =>
  fc.assert(
    fc.asyncProperty(said, async (given) => {
      const readers = new Readers()
      const { hub, clock } = readers
      const sensor = new QmfSensor({ tenant: 'default', brokers: ['b1'], demand: hub.demand }, hub, clock)
      readers.hub.add(sensor)
      const broker = sensor.broker('b1')
      broker?.connected({
        want() {},
        refresh: () => undefined,
        remarks: () => [],
        problemOf: () => undefined,
        call: () => Promise.resolve({ status: 0, text: '', arguments: [] }),
      })
      for (const schema of [meter, alarm]) broker?.learned(schema)
      broker?.ready()
      const sample = (sampled: bigint, table: ReadonlyMap<string, FieldValue>): void => {
        const header: ObjectHeader = { key: meter.key, sampled, created: 1n, deleted: 0n, id: '0-1-1-0-1' }
        broker?.object({ header, ...sampleOf(meter, table as Map<string, FieldValue>) })
      }
      sample(1n, new Map([['name', 'm1']]))
      readers.bind('qmf.*')
      for (const [kind, time, all] of given) {
        const map = new Map(typed.map(({ name }, at) => [name, all[at] as FieldValue]))
        if (kind === 'object') sample(time, map)
        else broker?.event(alarm.key, { time, severity: 3, arguments: mapValues(alarm.arguments, map) })
        for (const { name, value } of await readers.read()) expect(valueProblem(value), name).toBeUndefined()
      }
      sample(2_000_000_000_000_000_000n, new Map([['UINT8', 7n]]))
      expect(lastOf(await readers.read(), `qmf.${PACKAGE}.meter.UINT8`)).toBe(7)
      for (const { value } of [...sensor.series()].flatMap((series) => sensor.last(series) ?? [])) {
        if (value.type !== BasicType.VOID) expect(valueProblem(value)).toBeUndefined()
      }
    }),
    { numRuns: times({ short: 6, long: 25 }) },
  ))
