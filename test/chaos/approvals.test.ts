/** The server as built is killed around EXECUTEs that wait for approval. */
import { expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { approvals } from './approvals.ts'

const KILLS = times({ short: 4, long: 20 })

it(`a server killed ${KILLS} times runs what was approved once, or says that this is not known, and nothing else`, {
  timeout: 240_000,
}, async () => {
  const totals = await approvals({ seed: 20_261_130, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0 })
  // A run in which nothing ran, or nothing was refused, proves nothing.
  expect(totals['ok']).toBeGreaterThan(KILLS)
  expect(totals['refused']).toBeGreaterThan(0)
})
