/** An open console measures nothing that nobody looks at: no view has a target scraped but those that show its values. */
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { consoleTests, howTo, missing } from './rig.ts'

const port = await freePort()
let scrapes = 0
const target = createServer((_request, response) => {
  scrapes++
  response.end('# TYPE served_total counter\nserved_total 1\n')
})
target.listen(port, '127.0.0.1')

// A history is somebody who wants what is scraped.
const it = consoleTests(
  `[history]\nkeep = "0"\n[[scrape]]\nname = "node"\ninterval = "1s"\nurl = "http://127.0.0.1:${port}/metrics"\n`,
)

/** What is on each view once it has its answers. */
const VIEWS = [
  ['#/overview', 'section[aria-label="Sources"] a:has-text("scrape/node")'],
  ['#/hosts', '.virtual tr:has(bdi:text-is("web1")) .spark:has-text("1.50")'],
  ['#/hosts/web1', '.virtual td bdi:text-is("gmetric.load_one")'],
  ['#/hosts/n1', '.virtual td bdi:text-is("host.load.one")'],
  ['#/metrics', 'h2:not(:has-text("…"))'],
  ['#/metrics/gmetric.load_one', '.legend b:text-is("1.50")'],
  ['#/board?chart=gmetric.load_one', '.legend b:text-is("1.50")'],
  ['#/sources', 'section[aria-label="scrape/node"]'],
  ['#/channels', 'h1:text-is("Channels")'],
  ['#/controls', 'section[aria-label=channel]'],
  ['#/access', 'td:has-text("admin")'],
  ['#/audit', 'h1:text-is("Audit")'],
] as const

// A browser is not everywhere.
describe.skipIf(missing)(`targets and the console${howTo}`, () => {
  afterAll(() => {
    target.closeAllConnections()
    target.close()
  })

  const open = async (page: Page, hash: string, shown: string): Promise<void> => {
    await page.evaluate((to) => location.assign(to), hash)
    await page.waitForSelector(shown)
  }

  it('are not scraped by any view, as long as it shows nothing of theirs', async ({ page, rig }) => {
    await rig.report('web1', 'load_one', 1.5)
    await rig.open(page)
    await rig.signIn(page)
    for (const [hash, shown] of VIEWS) {
      await open(page, hash, shown)
      expect(scrapes, hash).toBe(0)
    }
    await open(page, '#/metrics/prometheus.served_total', '.legend b')
    await eventually(() => expect(scrapes).toBeGreaterThan(1))
  })
})
