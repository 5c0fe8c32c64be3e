/** A tree of three servers, killed, cut and without room: what the lowest has said yes to arrives at the uppermost once, and in order. */
import { expect, it } from 'vitest'
import { canMount } from '../rig/small-disk.ts'
import { tree } from './tree.ts'

const KILLS = 5

it(`three levels, kills (${KILLS}), cuts and full disks: nothing is lost or repeated`, {
  timeout: 900_000,
}, async () => {
  const totals = await tree({ seed: 20_261_123, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0 })
  expect(totals['promised']).toBeGreaterThan(100)
  // Each of the two links at least once.
  expect(totals['cuts']).toBeGreaterThan(1)
  // A small disk is mounted by root on Linux only.
  if (canMount()) expect(totals['full']).toBeGreaterThan(0)
})
