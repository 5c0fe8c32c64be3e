/** Twenty seconds of the benchmark `console`: everything arrives, and nothing piles up in the page. How fast is nobody's business here. */
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { benchConsole, CHROMIUM } from './console.ts'

/** Of a heap that has levelled off, between two collections. */
const MAX_GROWTH = 1.25
/** So few that each has all the samples that it keeps, 65,536, after 13 seconds: from then on old ones make room for new ones. */
const CHARTS = 2
/** What samples are packed into: at most this for each chart, with as much again while it is made larger. */
const MAX_BUFFER_MIB = CHARTS * 2 * 2

// A browser is not everywhere.
it.skipIf(!existsSync(CHROMIUM))(`10,000 values a second into ${CHARTS} charts`, { timeout: 900_000 }, async () => {
  const { series, received, committed, dropped, heapMiB, bufferMiB } = await benchConsole([
    ...['--minutes', '0.34'],
    ...['--charts', `${CHARTS}`],
  ])
  expect({ series, dropped }).toEqual({ series: 30_000, dropped: 0 })
  expect(received).toBeGreaterThan(50_000)
  expect(committed).toBeGreaterThanOrEqual(received)
  const [begin, end] = heapMiB
  expect(end / begin).toBeLessThan(MAX_GROWTH)
  expect(bufferMiB[1]).toBeLessThan(MAX_BUFFER_MIB)
})
