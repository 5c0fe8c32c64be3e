/** The short form: the server as built is killed 12 times around EXECUTEs with idempotency keys. */
import { expect, it } from 'vitest'
import { executes } from './executes.ts'

it('a server killed 12 times runs each key at most once, none unaudited, and says what is unknown', {
  timeout: 120_000,
}, async () => {
  const totals = await executes({ seed: 20_261_122, count: 12, say: () => {} })
  expect(totals).toMatchObject({ kills: 12, lost: 0, unexpected: 0, reused: 0 })
  // A run in which nothing ran, or nothing was cut off, proves nothing.
  expect(totals['ran']).toBeGreaterThan(20)
  expect(totals['ok']).toBeGreaterThan(20)
  expect(totals['unknown']).toBeGreaterThan(0)
})
