/** The short form: three fills, the second one with `kill -9`; a hundred with `npm run chaos`. */
import { expect, test } from 'vitest'
import { canMount } from '../rig/small-disk.ts'
import { diskFull } from './disk-full.ts'

test('a disk that fills up loses nothing, refuses what needs room, and goes on by itself', {
  timeout: 240_000,
}, async (context) => {
  if (!canMount()) context.skip('a small disk is mounted by root on Linux only: run the tests with sudo')
  const totals = await diskFull({ seed: 4, count: 3, say: () => {} })
  expect(totals).toMatchObject({ cycles: 3, restarts: 0, lost: 0, unexpected: 0, reused: 0, refused: 12 })
  expect(totals['kills']).toBeGreaterThan(0)
  expect(totals['toldDropped']).toBeGreaterThan(0)
})
