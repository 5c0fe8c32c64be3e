/** The nodes of a cluster in the console, of a server in this process that believes to lead one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { defaultConfig } from '../../../server/start/config.ts'
import { type RunningServer, startServer } from '../../../server/start/server.ts'
import { TestCluster } from '../../support/test-cluster.ts'
import { CHROMIUM, howTo, missing } from './rig.ts'

const PASSWORD = 'eight characters'

// A browser is not everywhere.
describe.skipIf(missing)(`the nodes in the console${howTo}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-console-cluster-'))
  const cluster = new TestCluster()
  let server: RunningServer
  let browser: Browser

  beforeAll(async () => {
    const { producer, listen, auth, gmetric, ...config } = defaultConfig()
    server = await startServer({
      config: {
        ...config,
        producer: { ...producer, dataDir: directory },
        listen: { ...listen, tcp: undefined, http: { host: '127.0.0.1', port: 0 } },
        auth: { ...auth, scramIterations: 4096 },
        gmetric: { ...gmetric, listen: undefined },
      },
      cluster,
      adminPassword: PASSWORD,
      log: createLogger('silent'),
    })
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  })
  afterAll(async () => {
    await browser.close()
    await server.stop()
    rmSync(directory, { recursive: true })
  })

  it('are shown with their role, how far they are behind, and what keeps them from leading', async () => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`http://127.0.0.1:${server.http?.port}/`)
    await page.fill('[name=identity]', 'admin')
    await page.fill('[name=password]', PASSWORD)
    await page.click('button.first')
    const card = page.locator('section[aria-label=Cluster]')
    await card.locator('text=n1 has led for').waitFor()
    const rows = await card.locator('tbody tr').allTextContents()
    expect(rows).toEqual([
      'n1● leader–1,284,40210.0.0.1:7654',
      'n2● follower20.0 ms1,284,40210.0.0.2:7654',
      'n3○ not heardit is stopped or cut off––10.0.0.3:7654',
    ])
    cluster.change('n2', { lagMs: 14_000, obstacle: 'its disk is full' })
    await card.locator('tr:has-text("n2") .attention').waitFor()
    await card.locator('tr:has-text("n2"):has-text("14 s") small:has-text("its disk is full")').waitFor()
    await page.close()
  })
})
