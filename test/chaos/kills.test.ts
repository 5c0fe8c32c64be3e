/** The short form: the server as built is killed 50 times, at each named point at least once. */
import { expect, it } from 'vitest'
import { POINTS } from './kills/points.ts'
import { kills } from './kills.ts'

it('a server killed 50 times loses nothing, makes nothing up and gives no id twice', { timeout: 300_000 }, async () => {
  const totals = await kills({ seed: 20_261_121, count: 50, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0, outOfOrder: 0, committedAgain: 0 })
  expect(totals['kills']).toBeGreaterThanOrEqual(50)
  for (const { name } of POINTS) expect(totals[`at ${name}`], name).toBeGreaterThan(0)
  // A run in which nothing came proves nothing.
  expect(totals['delivered']).toBeGreaterThan(1000)
  expect(totals['stored']).toBeGreaterThan(1000)
  expect(totals['toldDropped']).toBeGreaterThan(0)
})
