/** The benchmark `console-fleet` over a small fleet: every view becomes complete, and none has a target scraped. How fast is nobody's business here. */
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { CHROMIUM } from './console.ts'
import { benchConsoleFleet } from './console-fleet.ts'

// A browser is not everywhere.
it.skipIf(!existsSync(CHROMIUM))('20 targets and 30 hosts', { timeout: 900_000 }, async () => {
  const { scrapes, complete } = await benchConsoleFleet(['--targets', '20', '--hosts', '30'])
  expect(scrapes).toBe(0)
  expect(Object.keys(complete)).toContain('a metric of all targets')
})
