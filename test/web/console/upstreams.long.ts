/** Hosts and charts of another server that this one consumes, over both as built. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-console-upstreams-'))
const secret = join(directory, 'secret')
const [tcp, port] = [await freePort(), await freePort()]
const upstream = `name = "rack1"\nurl = "tcp://127.0.0.1:${tcp}"\nuser = "admin"\nsecret_file = ${JSON.stringify(secret)}`

const it = consoleTests(`[[upstream]]\n${upstream}\n`)

// A browser is not everywhere.
describe.skipIf(missing)(`another server${howTo}`, () => {
  const lower = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${port}"\nhost_tmax = "1s"\n`, { name: 'rack1', tcp })

  beforeAll(async () => {
    writeFileSync(secret, PASSWORD)
    await lower.start()
  })
  afterAll(async () => {
    await lower.remove()
    rmSync(directory, { recursive: true })
  })

  const open = async (rig: ConsoleRig, page: Page, view: string): Promise<void> => {
    await rig.open(page, view)
    await rig.signIn(page)
  }
  /** Reports of the same host at both servers, again and again until the page shows something. */
  const until = async (rig: ConsoleRig, page: Page, [here, there]: readonly [number, number], selector: string) => {
    const report = async () => {
      await rig.report('web1', 'load_one', here)
      await rig.report('web1', 'load_one', there, { port })
    }
    await report()
    const timer = setInterval(() => void report(), 200)
    await page.waitForSelector(selector).finally(() => clearInterval(timer))
  }

  it('has its hosts below its name, after those of this server, and leads to their metrics', async ({ page, rig }) => {
    await open(rig, page, '#/hosts')
    const theirs = '.virtual tr:has(th:has-text("rack1")) ~ tr:has(a:has-text("web1"))'
    await until(rig, page, [1.5, 2.5], `${theirs} .spark:has-text("2.50")`)
    await page.waitForSelector('.virtual tr:has(th:has-text("rack1")) .state:has-text("listening")')
    await page.waitForSelector('h2:has-text("4 of 4")')
    const names = await page.locator('.virtual tbody :is(th, td:first-child)').allTextContents()
    expect(names).toEqual(['n1', 'n1', 'web1', 'rack1', 'rack1', 'web1'])
    await page.fill('[type=search]', 'RACK')
    await page.waitForSelector('h2:has-text("2 of 4")')
    await page.click(`${theirs} a:has-text("web1")`)
    await page.waitForSelector('header:has(h1:has-text("web1")) >> text=of rack1')
    await until(rig, page, [1.5, 3.5], '.legend b:text-is("3.50")')
    await page.click('.virtual td a:has-text("gmetric.load_one")')
    await page.waitForSelector('h1:has-text("gmetric.load_one")')
    expect(new URL(page.url()).hash).toContain('producer=rack1')
    await until(rig, page, [1.5, 4.5], '.legend b:text-is("4.50")')
    expect(await page.locator('.legend li').count()).toBe(1)
  })

  it('is drawn beside this one, or alone', async ({ page, rig }) => {
    await open(rig, page, '#/metrics/gmetric.load_one?producer=*')
    await until(rig, page, [5.5, 6.5], '.legend li:has-text("producer=rack1") b:text-is("6.50")')
    await page.waitForSelector('.legend li:has-text("producer=n1") b:text-is("5.50")')
    await page.waitForSelector('datalist option[value=rack1]', { state: 'attached' })
    await page.fill('[name=parameter-producer]', 'rack1')
    await page.press('[name=parameter-producer]', 'Enter')
    await until(rig, page, [5.5, 7.5], '.legend b:text-is("7.50")')
    expect(await page.locator('.legend li').count()).toBe(1)
  })

  it('leaves what this server has kept of its own values, which has a name, too', async ({ page, rig }) => {
    await rig.report('web1', 'kept', 3)
    await open(rig, page, '#/metrics/gmetric.kept?producer=n1')
    await page.waitForSelector('.legend b:text-is("3")')
  })

  it('has its state, also when it is gone', async ({ page, rig }) => {
    await open(rig, page, '#/hosts')
    await page.waitForSelector('.virtual th:has-text("rack1")')
    await lower.end('SIGKILL')
    await page.waitForSelector('.virtual tr:has(th:has-text("rack1")):has-text("0 hosts")')
    await page.click('.virtual tr:has(th:has-text("rack1")) a:has-text("failed")')
    await page.waitForSelector('section[aria-label="upstream/rack1"] .state:has-text("failed")')
    expect(await page.locator('main section').count()).toBe(1)
  })
})
