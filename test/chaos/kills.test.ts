/** The server as built is killed, at named points and at any moment; at each point at least once in the long form. */
import { expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { kills, POINTS, VALUES_PER_KILL } from './kills.ts'

const KILLS = times({ short: 3, long: 30 })

it(`a server killed ${KILLS} times loses nothing, makes nothing up and gives no id twice`, {
  timeout: 900_000,
}, async () => {
  const totals = await kills({ seed: 20_261_121, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0, outOfOrder: 0, committedAgain: 0 })
  expect(totals['kills']).toBeGreaterThanOrEqual(KILLS)
  const reached = POINTS.filter(({ name }) => (totals[`at ${name}`] ?? 0) > 0)
  expect(reached.length).toBeGreaterThanOrEqual(times({ short: 2, long: POINTS.length }))
  // A run in which nothing came proves nothing.
  const flowed = VALUES_PER_KILL * KILLS
  expect(totals['delivered']).toBeGreaterThan(flowed)
  expect(totals['stored']).toBeGreaterThan(flowed)
  // Few kills leave a slow machine no time for more values than a channel takes.
  expect(totals['toldDropped']).toBeGreaterThanOrEqual(times({ short: 0, long: 1 }))
})
