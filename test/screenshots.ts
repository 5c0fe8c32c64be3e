/**
 * `npm run screenshots [-- --seconds N --dir DIRECTORY]`: the pictures of the console in the documents, light and dark, of the demo's
 * server in Debian's Chromium, once it has run for two minutes.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { PROGRAM } from './support/program.ts'

const CHROMIUM = '/usr/bin/chromium-headless-shell'
const IMAGES = fileURLToPath(new URL('../docs/images', import.meta.url))
/** What a package and a page of documentation can bear. */
const MAX_BYTES = 150_000
const VIEWPORT = { width: 1360, height: 850 }

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
      return { page, name: colorScheme === 'light' ? 'console.png' : 'console-dark.png' }
    }),
  )
  for (const { page, name } of pages) {
    await page.waitForTimeout(Number(given.seconds) * (name === 'console.png' ? 1_000 : 0))
    const path = join(given.dir, name)
    await page.screenshot({ path })
    const { size } = statSync(path)
    console.log(`${path}: ${size} bytes`)
    if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MAX_BYTES}: make the picture smaller`)
  }
} finally {
  await browser.close()
  demo.kill('SIGINT')
  await ended
}
