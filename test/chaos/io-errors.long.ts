import { expect, test } from 'vitest'
import { ioErrors } from './io-errors.ts'
import { straceMissing } from './power-cut/trace.ts'

const missing = straceMissing()
if (missing !== undefined) console.warn(`skipped: ${missing}`)

// Skipped only where strace is missing; the message above says how to install it.
test.skipIf(missing !== undefined)(
  'a failed fsync ends the answers, a full disk does not, and nothing is lost',
  async () => {
    const totals = await ioErrors({ seed: 1, count: 12, say: () => {} })
    expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0, 'servers ended': 1 })
    // Each of them was made to fail at least once.
    expect(totals['fsync fails once: ended with an error']).toBeGreaterThan(0)
    expect(totals['write fails once: ended with an error']).toBeGreaterThan(0)
    expect(totals['no room for a while: went on when there was room']).toBeGreaterThan(0)
    expect(totals['no room from then on: waits for room']).toBeGreaterThan(0)
  },
  240_000,
)
