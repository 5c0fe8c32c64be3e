/** A tree of three servers, killed and cut: what the lowest has said yes to arrives at the uppermost once, and in order. */
import { expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { tree } from './tree.ts'

const KILLS = times({ short: 3, long: 40 })

it(`three levels, ${KILLS} kills and many cuts: nothing is lost or repeated`, { timeout: 900_000 }, async () => {
  const totals = await tree({ seed: 20_261_123, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0 })
  expect(totals['promised']).toBeGreaterThan(100)
})
