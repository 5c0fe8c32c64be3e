/** A server that records its history is killed at each point of its thread, and at any moment, also with a full disk. */
import { expect, test } from 'vitest'
import { canMount } from '../rig/small-disk.ts'
import { HISTORY_POINTS, history } from './history.ts'

const KILLS = 32

test('a history has what was acknowledged, once, wherever its server is killed', { timeout: 300_000 }, async () => {
  const totals = await history({ seed: 39, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0 })
  expect(HISTORY_POINTS.filter((point) => (totals[`at ${point}`] ?? 0) === 0)).toEqual([])
  expect(totals['files']).toBeGreaterThan(0)
  for (const door of ['gmetric.shown', 'statsd.shown', 'smon.shown']) expect(totals[door]).toBeGreaterThan(0)
  if (canMount()) expect(totals['full']).toBeGreaterThan(0)
})
