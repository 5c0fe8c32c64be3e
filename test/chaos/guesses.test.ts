/** The short form of 100,000 guesses. */
import { expect, it } from 'vitest'
import { guesses } from './guesses.ts'

it('guesses from one address and from many: few are looked at, and the owner gets in', {
  timeout: 120_000,
}, async () => {
  const totals = await guesses({ seed: 1, count: 4_000, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0 })
  expect(totals['ownerLogins']).toBeGreaterThanOrEqual(4)
})
