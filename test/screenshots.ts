/**
 * `npm run screenshots [-- --seconds N --dir DIRECTORY]`: the pictures of the console in the documents, light and dark, of the demo's
 * server in Debian's Chromium, once it has run for two minutes: the overview, what the history has of
 * a host since the start, and two queries.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium, type Page } from 'playwright-core'
import { PROGRAM } from './support/program.ts'

const CHROMIUM = '/usr/bin/chromium-headless-shell'
const IMAGES = fileURLToPath(new URL('../docs/images', import.meta.url))
/** What a package and a page of documentation can bear. */
const MAX_BYTES = 150_000
/** What the picture of the view of queries asks. */
const QUERIES = new URLSearchParams([
  ['expr', 'topk(4, gmetric_load_one)'],
  ['show', 'table'],
  ['expr', 'sum by (host) (gmetric_bytes_in + gmetric_bytes_out) / 1024'],
  ['show', 'chart'],
  ['.range', '5m'],
])
const VIEWPORT = { width: 1360, height: 850 }
/** How long charts may take to be drawn. */
const DRAWN_MS = 5_000

const { values: given } = parseArgs({
  options: { seconds: { type: 'string', default: '125' }, dir: { type: 'string', default: IMAGES } },
})

const demo = spawn(process.execPath, [PROGRAM, 'demo', '--console'], { stdio: ['ignore', 'pipe', 'inherit'] })
const ended = once(demo, 'exit')
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
try {
  const [greeting] = await once(demo.stdout, 'data')
  const [, url = '', password = ''] = /at: +(\S+)[\s\S]*password: +(\S+)/.exec(String(greeting)) ?? []
  // Both are open all the time, since the small curves show what a page has seen itself.
  const pages = await Promise.all(
    (['light', 'dark'] as const).map(async (colorScheme) => {
      const page = await browser.newPage({ viewport: VIEWPORT, colorScheme })
      await page.goto(url)
      await page.fill('[name=identity]', 'admin')
      await page.fill('[name=password]', password)
      await page.click('button.first')
      await page.waitForSelector('.tiles strong')
      return { page, suffix: colorScheme === 'light' ? '' : '-dark' }
    }),
  )
  await pages[0]?.page.waitForTimeout(Number(given.seconds) * 1_000)
  const show = async (view: string, open: (page: Page) => Promise<void>): Promise<void> => {
    for (const { page, suffix } of pages) {
      await open(page)
      const path = join(given.dir, `${view}${suffix}.png`)
      await page.screenshot({ path })
      const { size } = statSync(path)
      console.log(`${path}: ${size} bytes`)
      if (size > MAX_BYTES)
        throw new Error(`${path} has ${size} bytes, more than ${MAX_BYTES}: make the picture smaller`)
    }
  }
  await show('console', async () => {})
  await show('console-host', async (page) => {
    await page.goto(`${url}#/hosts/web1?.range=5m`)
    await page.waitForSelector('.chart canvas')
    await page.waitForTimeout(DRAWN_MS)
    await page.waitForFunction(() => !document.body.innerText.includes('Loading'))
  })
  await show('query', async (page) => {
    await page.goto(`${url}#/query?${QUERIES}`)
    await page.waitForSelector('.query td.number')
    await page.waitForSelector('.query:nth-of-type(2) .chart canvas')
  })
} finally {
  await browser.close()
  demo.kill('SIGINT')
  await ended
}
