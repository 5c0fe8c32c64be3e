/** The server as built is killed around EXECUTEs with idempotency keys. */
import { expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { executes } from './executes.ts'

const KILLS = times({ short: 3, long: 5 })

it(`a server killed ${KILLS} times runs each key at most once, none unaudited, and says what is unknown`, {
  timeout: 120_000,
}, async () => {
  const totals = await executes({ seed: 20_261_122, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0 })
  // A run in which nothing ran, or nothing was cut off, proves nothing.
  expect(totals['ran']).toBeGreaterThan((20 / 12) * KILLS)
  expect(totals['ok']).toBeGreaterThan((20 / 12) * KILLS)
  expect(totals['unknown']).toBeGreaterThan(0)
})
