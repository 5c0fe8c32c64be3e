/** Guesses; `npm run chaos -- --guesses 100000` has more of them. */
import { expect, it } from 'vitest'
import { guesses } from './guesses.ts'

const GUESSES = 4_000

it('guesses from one address and from many: few are looked at, and the owner gets in', {
  timeout: 120_000,
}, async () => {
  const totals = await guesses({ seed: 1, count: GUESSES, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0 })
  expect(totals['ownerLogins']).toBeGreaterThanOrEqual(GUESSES / 1_000)
})
