/** The disk is filled two or three times, the second time with `kill -9`; any number of times with `npm run chaos -- --full 100`. */
import { expect, test } from 'vitest'
import { canMount } from '../rig/small-disk.ts'
import { diskFull } from './disk-full.ts'

const CYCLES = 3

test('a disk that fills up loses nothing, refuses what needs room, and goes on by itself', {
  timeout: 240_000,
}, async (context) => {
  if (!canMount()) context.skip('a small disk is mounted by root on Linux only: run the tests with sudo')
  const totals = await diskFull({ seed: 4, count: CYCLES, say: () => {} })
  expect(totals).toMatchObject({ cycles: CYCLES, restarts: 0, lost: 0, unexpected: 0, reused: 0, refused: 4 * CYCLES })
  expect(totals['kills']).toBeGreaterThan(0)
  expect(totals['toldDropped']).toBeGreaterThan(0)
})
