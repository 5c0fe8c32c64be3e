/** Which records are distributions: what programs of others take as one has to be one by their rules. */
import { expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field } from '../../../../protocol/monitor/value.ts'
import { distributionOf } from '../../../../server/kernel/metrics/distribution.ts'

const { ARRAY, DOUBLE, STRING, UINT64 } = BasicType
const { NaN: NAN, POSITIVE_INFINITY: INFINITY, NEGATIVE_INFINITY } = Number

const count: Field = { name: 'count', type: UINT64, value: 6n }
const doubles = (name: string, items: readonly number[]): Field => ({
  name,
  type: ARRAY,
  value: { element: DOUBLE, items },
})
const countsOf = (items: readonly bigint[]): Field => ({
  name: 'counts',
  type: ARRAY,
  value: { element: UINT64, items },
})
const histogram = (bounds: readonly number[], ...more: readonly Field[]) =>
  distributionOf([count, doubles('bounds', bounds), countsOf([1n, 2n, 3n]), ...more])
const summary = (quantiles: readonly number[]) =>
  distributionOf([count, doubles('quantiles', quantiles), doubles('values', [1, NAN, INFINITY])])

test('the bounds of a histogram ascend', () => {
  expect(histogram([1, 2])).toMatchObject({ kind: 'histogram', bounds: [1, 2], counts: [1n, 2n, 3n] })
  expect(histogram([])).toMatchObject({ kind: 'histogram', bounds: [] })
  for (const bounds of [[2, 1], [1, 1], [NAN], [1, NAN], [NEGATIVE_INFINITY, 1], [INFINITY, INFINITY]]) {
    expect(histogram(bounds), String(bounds)).toBeUndefined()
  }
})

test('a last bound of infinity bounds nothing', () => {
  expect(histogram([1, INFINITY])).toMatchObject({ bounds: [1], counts: [1n, 5n] })
  expect(histogram([INFINITY])).toMatchObject({ bounds: [], counts: [6n] })
})

test('the counts of a histogram together fit 64 bits', () => {
  const most = 2n ** 64n - 1n
  for (const last of [3, INFINITY]) {
    const bounds = doubles('bounds', [1, last])
    expect(distributionOf([count, bounds, countsOf([0n, most, 0n])])).toMatchObject({ kind: 'histogram' })
    expect(distributionOf([count, bounds, countsOf([0n, most, 1n])])).toBeUndefined()
  }
})

test('the quantiles of a summary are different ones from 0 to 1; its values may be any', () => {
  expect(summary([1, 0, 0.5])).toMatchObject({ kind: 'summary', quantiles: [1, 0, 0.5], values: [1, NAN, INFINITY] })
  for (const quantiles of [[0.5, 0.5], [NAN], [-0.1], [1.1], [INFINITY]]) {
    expect(summary(quantiles), String(quantiles)).toBeUndefined()
  }
})

test('a start that cannot be a time is unknown', () => {
  const startOf = (start: Field) => histogram([1, 2], start)?.start
  expect(startOf({ name: 'start', type: UINT64, value: 1_700_000_000_000_000n })).toBe(1_700_000_000_000_000)
  expect(startOf({ name: 'start', type: UINT64, value: 2n ** 64n - 1n })).toBe(0)
  expect(startOf({ name: 'start', type: DOUBLE, value: INFINITY })).toBe(0)
  expect(startOf({ name: 'start', type: STRING, value: 'x' })).toBe(0)
})
