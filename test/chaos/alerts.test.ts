/** A few kills of a server with rules, and of the receiver of its notifications; `npm run chaos -- --alerts 200` is the long form. */
import { expect, test } from 'vitest'
import { alerts } from './alerts.ts'

const KILLS = 4

test(`${KILLS} kills: each transition is a value and a notification, in order`, { timeout: 400_000 }, async () => {
  const totals = await alerts({ seed: 41, count: KILLS, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0 })
  expect(totals['transitions']).toBeGreaterThan(10)
  expect(totals['notifications']).toBeGreaterThan(10)
})
