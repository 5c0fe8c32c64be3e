/** Ranges of loss, as charts keep them. */
import { expect, it } from 'vitest'
import { keepLoss, lossOf, type PastLoss } from '../../console/losses.ts'

const LOSS = { tenant: 'north', metric: 'test.*', from: 7e6, to: 8e6, count: 2, reason: 'overflow' }

it('are those of a record, with the metric and the reason in words', () => {
  const { count: lost, ...record } = LOSS
  expect(lossOf({ ...record, lost })).toEqual(LOSS)
  const kept = new Map<string, PastLoss>()
  keepLoss(kept, LOSS)
  keepLoss(kept, LOSS)
  keepLoss(kept, { ...LOSS, tenant: '', metric: '' })
  expect([...kept.values()]).toEqual([
    { from: 7, to: 8, count: 2, reason: 'test.*: overflow' },
    { from: 7, to: 8, count: 2, reason: 'overflow' },
  ])
})

it('are a thousand at most: the last one is as wide as all others', () => {
  const kept = new Map<string, PastLoss>()
  for (let at = 0; at < 1_010; at++) keepLoss(kept, { ...LOSS, from: at * 1e6, to: (at + 1) * 1e6 })
  const all = [...kept.values()]
  expect(all).toHaveLength(1_000)
  expect(all.at(-1)).toEqual({ from: 999, to: 1_010, count: 22, reason: 'test.*: overflow' })
})
