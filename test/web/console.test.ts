/** The console in a real browser, Debian's Chromium, over a server as built that the real protocol of gmetric feeds. */

import { createSocket, type Socket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { join, str, u32 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const CHROMIUM = '/usr/bin/chromium-headless-shell'
const installed = existsSync(CHROMIUM)
if (!installed) {
  console.warn('skipped: no browser; install it with `apt-get install --no-install-recommends chromium-headless-shell`')
}
const HOSTILE = '<img src=x onerror="document.title=1">'

// A browser is not everywhere.
describe.skipIf(!installed)('the console', () => {
  let server: ServerProcess
  let browser: Browser
  let page: Page
  let udpPort = 0
  let udp: Socket
  const faults: string[] = []

  beforeAll(async () => {
    udpPort = await freePort()
    server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { http: await freePort() })
    await server.start()
    udp = createSocket('udp4')
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  })
  beforeEach(async () => {
    await page?.close()
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text())
    })
  })
  afterAll(async () => {
    udp.close()
    await browser.close()
    await server.remove()
    expect(faults).toEqual([])
  })

  const open = (path = '') => page.goto(`http://127.0.0.1:${server.httpPort}/${path}`)

  async function signIn(password = PASSWORD): Promise<void> {
    await page.fill('[name=identity]', 'admin')
    await page.fill('[name=password]', password)
    await page.click('button.first')
  }

  async function push(name: string, value: number): Promise<void> {
    const packet = join(u32(0), str('double'), str(name), str(String(value)), str(''), u32(3), u32(60), u32(0))
    await new Promise((resolve) => udp.send(packet, udpPort, '127.0.0.1', resolve))
  }

  it('refuses a wrong password with the reason, and shows the view that the URL asked for after the right one', async () => {
    await open('#/channels')
    await signIn('a wrong password')
    await page.waitForSelector('text=The user or the secret is wrong.')
    await signIn()
    await page.waitForSelector('h1:text-is("Channels")')
  })

  it('has nothing from elsewhere, and nothing inline', async () => {
    const hosts = new Set<string>()
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    const response = await open()
    expect(response?.headers()['content-security-policy']).not.toContain('unsafe')
    await signIn()
    await page.waitForSelector('.tiles')
    expect([...hosts]).toEqual([`127.0.0.1:${server.httpPort}`])
  })

  it('draws a metric that is there at once, and goes on with what comes', async () => {
    for (const value of [1, 2, 3]) await push('console_live', value)
    await open('#/metrics/gmetric.console_live')
    await signIn()
    await page.waitForSelector('.chart canvas')
    await page.waitForSelector('h2:text-is("1 series")')
  })

  it('shows hostile names as text', async () => {
    await push(HOSTILE, 1)
    await open(`#/metrics?match=${encodeURIComponent('img')}`)
    await signIn()
    await page.waitForSelector('td a')
    expect(await page.locator('td a').first().textContent()).toContain('<img src=x')
    expect(await page.locator('td img').count()).toBe(0)
    expect(await page.title()).toBe('Cinnabar')
  })

  it('comes back by itself after the server was killed', { timeout: 120_000 }, async () => {
    await open()
    await signIn()
    await page.waitForSelector('.tiles strong')
    await server.end('SIGKILL')
    await page.waitForSelector('.banner')
    await server.start()
    await page.waitForSelector('.banner', { state: 'detached' })
    await page.waitForSelector('text=/up \\d/')
  })

  it('signs out, and knows nothing any more', async () => {
    await open()
    await signIn()
    await page.click('text=Sign out')
    await page.waitForSelector('[name=password]')
    expect(await page.inputValue('[name=password]')).toBe('')
  })
})
