/** The page of README.md#a-page-in-a-browser in a real browser: Debian's Chromium, driven by playwright-core. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const CHROMIUM = '/usr/bin/chromium-headless-shell'
const installed = existsSync(CHROMIUM)
if (!installed)
  console.warn('skipped: no browser; install it with `apt-get install --no-install-recommends chromium-headless-shell`')

const DOCUMENT = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const LOAD = /```html\n([\s\S]*?)```/.exec(DOCUMENT)?.[1] ?? ''

// Skipped only where there is no browser; the message above says how to install it.
describe.skipIf(!installed)("a page of one's own", () => {
  let directory: string
  let server: ServerProcess
  let browser: Browser
  let page: Page
  const faults: string[] = []

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cinnabar-pages-'))
    writeFileSync(join(directory, 'load.html'), LOAD)
    writeFileSync(join(directory, 'empty.html'), '<!doctype html><title>empty</title>')
    // The page knows no other port.
    const http = await freePort()
    server = new ServerProcess(`[http]\npages = ${JSON.stringify(directory)}\n`, { http })
    await server.start()
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
    page = await browser.newPage()
    page.on('pageerror', (error) => faults.push(String(error)))
  })
  afterAll(async () => {
    await browser.close()
    await server.remove()
    rmSync(directory, { recursive: true })
  })

  /** Asked again and again from here: a page may not evaluate text by itself (Content-Security-Policy). */
  const until = async (expression: string): Promise<void> => {
    while (!(await page.evaluate(expression))) await page.waitForTimeout(20)
  }

  const url = (path: string) => `http://127.0.0.1:${server.httpPort}/${path}`

  it('is about twenty lines', () => {
    expect(LOAD.trimEnd().split('\n').length).toBeLessThanOrEqual(25)
  })

  it('shows why a login is refused', async () => {
    await page.goto(url('load.html'))
    await page.fill('input[name=password]', 'a wrong password')
    await page.click('button')
    await until(`document.querySelector('#load').textContent.includes('login refused')`)
    expect(faults).toEqual([])
  })

  it('logs in and shows the load as it changes', async () => {
    await page.goto(url('load.html'))
    await page.fill('input[name=password]', PASSWORD)
    await page.click('button')
    await until(`/^\\d+([.]\\d+)?$/.test(document.querySelector('#load').textContent)`)
    expect(faults).toEqual([])
  })

  it('gets every value of a durable channel once while the server is killed', { timeout: 120_000 }, async () => {
    await page.goto(url('empty.html'))
    await page.evaluate(`
      globalThis.seen = []
      globalThis.reported = []
      import('/client.js').then(async ({ connect }) => {
        const credentials = { identity: 'admin', password: ${JSON.stringify(PASSWORD)} }
        const consumer = await connect('ws://' + location.host + '/monitor', credentials)
        consumer.on('disconnected', () => reported.push('disconnected'))
        consumer.on('connected', () => reported.push('connected'))
        await consumer.follow('producer.stats', { interval_ms: 100 }, ({ transaction }) => seen.push(transaction))
        await consumer.run()
      })
      undefined
    `)
    await until('seen.length > 3')
    await server.end('SIGKILL')
    await server.start()
    await until(`reported.length === 2 && seen.length > ${await page.evaluate('seen.length')} + 3`)
    const seen = (await page.evaluate('seen')) as number[]
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b))
    expect(await page.evaluate('reported')).toEqual(['disconnected', 'connected'])
    expect(faults).toEqual([])
  })
})
