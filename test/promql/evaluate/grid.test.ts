import { expect, it } from 'vitest'
import { SpareSeries } from '../../../promql/evaluate/grid.ts'
import { LabelSet, NO_LABELS } from '../../../promql/label-set.ts'

const LABELS = LabelSet.of([['a', 'b']])

it('a spare series is the next one of its length, without values', () => {
  const spares = new SpareSeries()
  const first = spares.take(NO_LABELS, true, 3)
  first.set(1, 5)
  spares.give(first)
  expect(spares.take(LABELS, false, 2)).not.toBe(first)
  const next = spares.take(LABELS, false, 3)
  expect(next).toBe(first)
  expect(next).toMatchObject({ labels: LABELS, dropsName: false, isEmpty: true })
  expect([...next.values]).toEqual([0, 0, 0])
  expect(spares.take(LABELS, false, 3)).not.toBe(next)
})

it('few are kept', () => {
  const spares = new SpareSeries()
  const all = Array.from({ length: 100 }, () => spares.take(NO_LABELS, false, 1))
  for (const series of all) spares.give(series)
  const again = Array.from({ length: 100 }, () => spares.take(NO_LABELS, false, 1))
  expect(again.filter((series) => all.includes(series))).toHaveLength(4)
})
