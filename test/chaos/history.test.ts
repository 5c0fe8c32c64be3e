/** A few kills of a server that records its history; any number of them with `npm run chaos -- --history 200`. */
import { expect, test } from 'vitest'
import { history } from './history.ts'

const KILLS = 4

test(`a history whose server is killed ${KILLS} times has what was acknowledged, once`, {
  timeout: 240_000,
}, async () => {
  const totals = await history({ seed: 20_261_129, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0 })
  expect(totals['acknowledged']).toBeGreaterThan(KILLS)
  expect(totals['missed']).toBeLessThan(KILLS)
})
