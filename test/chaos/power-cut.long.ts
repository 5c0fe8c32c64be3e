import { expect, test } from 'vitest'
import { straceMissing } from './power-cut/trace.ts'
import { powerCut } from './power-cut.ts'

const STATES = 100
const missing = straceMissing()
if (missing !== undefined) console.warn(`skipped: ${missing}`)

// Skipped only where strace is missing; the message above says how to install it.
test.skipIf(missing !== undefined)(
  'a power cut takes back nothing that was answered, and no id comes twice',
  async () => {
    const totals = await powerCut({ seed: 1, count: STATES, say: () => {} })
    expect(totals).toMatchObject({ states: STATES, lost: 0, unexpected: 0, reused: 0 })
    // Else the states would show little.
    expect(totals['checkpoints']).toBeGreaterThan(5)
    expect(totals['with a batch under way']).toBeGreaterThan(STATES / 10)
  },
  240_000,
)
