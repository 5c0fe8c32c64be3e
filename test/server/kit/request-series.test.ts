/** The series of a request, by number or by key: always the one that is live under the key. */
import { beforeEach, expect, it } from 'vitest'
import { type Columns, ColumnWriter } from '../../../server/kit/columns.ts'
import { LabelledFamily, type LabelledSensor } from '../../../server/kit/labelled-sensor.ts'
import type { LabelledSeries } from '../../../server/kit/labelled-series.ts'
import { RequestSeries } from '../../../server/kit/request-series.ts'
import { Readers } from '../../support/readers.ts'
import { tester } from '../kernel/metrics/fixture.ts'

let sensor: LabelledSensor
beforeEach(() => {
  const { hub, quotas, clock } = new Readers()
  const family = new LabelledFamily({
    family: 'otlp.',
    kind: 'otlp',
    from: 'a test',
    hub,
    quotas,
    clock,
    keptMs: () => 60_000,
    isPublished: true,
  })
  sensor = family.of(tester.tenant)
})

/** A request with these series, under these numbers. */
function columns(numbers: Readonly<Record<string, number>>, numbering = 'one'): Columns {
  const writer = new ColumnWriter('otlp.', numbering)
  for (const [name, number] of Object.entries(numbers)) {
    const key = writer.keyOf(name, [])
    writer.begin(name, { ...key, number, numbering } as typeof key)
    writer.double(1, 1)
  }
  return writer.columns()
}

function taken(given: Columns): LabelledSeries[] {
  const series = new RequestSeries(sensor, given)
  const places = Array.from({ length: series.count }, (_, place) => place)
  for (const place of places) series.find(place)
  return places.map((place) => series.begun(place) as LabelledSeries)
}

it('are those of their keys, with numbers and without', () => {
  const [a, b] = taken(columns({ a: 0, b: 0 }))
  expect([a?.name, b?.name]).toEqual(['otlp.a', 'otlp.b'])
  for (const numbers of [
    { a: 1, b: 2 },
    { a: 1, b: 2 },
    { a: 0, b: 2 },
    { a: 7, b: 8 },
  ]) {
    expect(taken(columns(numbers))).toEqual([a, b])
  }
  // Another memory has given the same numbers to others.
  expect(taken(columns({ b: 1, a: 2 }, 'other'))).toEqual([b, a])
  expect(taken(columns({ a: 1, b: 2 }))).toEqual([a, b])
})

it('one that has ended is born again', () => {
  const [first] = taken(columns({ a: 1 }))
  expect(taken(columns({ a: 1 }))).toEqual([first])
  sensor.end(first as LabelledSeries)
  const [again] = taken(columns({ a: 1 }))
  expect(again).not.toBe(first)
  expect(again?.isLive).toBe(true)
  expect(taken(columns({ a: 1 }))[0]).toBe(again)
})

it('one that ends after it was found, too', () => {
  const [first] = taken(columns({ a: 1 }))
  const series = new RequestSeries(sensor, columns({ a: 1 }))
  expect(series.find(0)).toBe(first)
  sensor.end(first as LabelledSeries)
  const again = series.begun(0) as LabelledSeries
  expect(again).not.toBe(first)
  expect(again.isLive).toBe(true)
})

it('what was taken can be forgotten, and is new then', () => {
  const series = new RequestSeries(sensor, columns({ a: 1 }))
  series.find(0)
  const a = series.begun(0) as LabelledSeries
  expect([a.isNewNumber(1, 1), a.isNewNumber(1, 1)]).toEqual([true, false])
  series.forget()
  expect(a.isNewNumber(1, 1)).toBe(true)
})

it('a series remembers what one publisher says, and asks another', () => {
  const [a] = taken(columns({ a: 1 })) as [LabelledSeries]
  const asked: string[] = []
  const judge = (answer: boolean) => (key: string) => {
    asked.push(key)
    return answer
  }
  const [one, other] = [{}, {}]
  expect(a.isAllowedBy(one, judge(true))).toBe(true)
  expect(a.isAllowedBy(one, judge(false))).toBe(true)
  expect(a.isAllowedBy(other, judge(false))).toBe(false)
  expect(a.isAllowedBy(one, judge(true))).toBe(true)
  expect(asked).toEqual([a.key, a.key, a.key])
})
