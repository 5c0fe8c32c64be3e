/** Guesses; `npm run chaos -- --guesses 100000` has more of them. */
import { expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { guesses } from './guesses.ts'

const GUESSES = times({ short: 1_000, long: 4_000 })

it('guesses from one address and from many: few are looked at, and the owner gets in', {
  timeout: 120_000,
}, async () => {
  const totals = await guesses({ seed: 1, count: GUESSES, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0 })
  expect(totals['ownerLogins']).toBeGreaterThanOrEqual(GUESSES / 1_000)
})
