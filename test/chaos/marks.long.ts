/** A server is killed while it says yes to requests: whatever it has said yes to is there. */
import { expect, it } from 'vitest'
import { marks } from './marks.ts'

const KILLS = 4

it(`a server killed ${KILLS} times keeps every value that a durable mark has promised`, {
  timeout: 600_000,
}, async () => {
  const totals = await marks({ seed: 20_261_123, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0 })
  // A run in which nothing was promised, or nothing was cut off, proves nothing.
  expect(totals['yes']).toBeGreaterThan(KILLS)
  expect(totals['cut']).toBeGreaterThan(0)
})
