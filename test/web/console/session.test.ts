/** Signing in and out, what the page may load, and a server that goes away. */
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ConsoleRig, howTo, missing } from './rig.ts'

const HOSTILE = '<img src=x onerror="document.title=1">'

// A browser is not everywhere.
describe.skipIf(missing)(`the console${howTo}`, () => {
  let rig: ConsoleRig
  let page: Page

  beforeAll(async () => {
    rig = await ConsoleRig.start()
  })
  beforeEach(async () => {
    page = await rig.tab()
  })
  afterEach(async () => {
    await page.close()
    expect(rig.faults).toEqual([])
  })
  afterAll(() => rig.end())

  it('refuses a wrong password with the reason, and shows the view that the URL asked for after the right one', async () => {
    await rig.open(page, '#/channels')
    await rig.signIn(page, 'a wrong password')
    await page.waitForSelector('text=The user or the secret is wrong.')
    await rig.signIn(page)
    await page.waitForSelector('h1:text-is("Channels")')
  })

  it('has nothing from elsewhere, and nothing inline', async () => {
    const hosts = new Set<string>()
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    const response = await rig.open(page)
    expect(response?.headers()['content-security-policy']).not.toContain('unsafe')
    await rig.signIn(page)
    await page.waitForSelector('.tiles')
    expect([...hosts]).toEqual([`127.0.0.1:${rig.server.httpPort}`])
  })

  it('shows hostile names as text', async () => {
    await rig.push(HOSTILE, 1)
    await rig.open(page, `#/metrics?match=${encodeURIComponent('img')}`)
    await rig.signIn(page)
    await page.waitForSelector('td a')
    expect(await page.locator('td a').first().textContent()).toContain('<img src=x')
    expect(await page.locator('td img').count()).toBe(0)
    expect(await page.title()).toBe('Cinnabar')
  })

  it('comes back by itself after the server was killed', { timeout: 120_000 }, async () => {
    await rig.open(page)
    await rig.signIn(page)
    await page.waitForSelector('.tiles strong')
    await rig.server.end('SIGKILL')
    await page.waitForSelector('.banner')
    await rig.server.start()
    await page.waitForSelector('.banner', { state: 'detached' })
    await page.waitForSelector('text=/up \\d/')
  })

  it('signs out, and knows nothing any more', async () => {
    await rig.open(page)
    await rig.signIn(page)
    await page.click('text=Sign out')
    await page.waitForSelector('[name=password]')
    expect(await page.inputValue('[name=password]')).toBe('')
  })
})
