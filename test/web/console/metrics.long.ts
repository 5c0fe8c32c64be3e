/** Hosts, the catalogue, live charts and boards. */
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { connect, type PlainRecord } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const HOSTILE = '<img src=x onerror="document.title=1">'
const LONG = `${'x'.repeat(120)}.end`
const RIGHT_TO_LEFT = '‮שרת'
const LAST = '.legend b'

const it = consoleTests('host_tmax = "1s"\n[history]\nkeep = "0"')

// A browser is not everywhere.
describe.skipIf(missing)(`hosts, metrics and boards${howTo}`, () => {
  const open = async (rig: ConsoleRig, page: Page, view: string): Promise<void> => {
    await rig.open(page, view)
    await rig.signIn(page)
  }
  /** Reports again and again until the page shows something: a datagram may be lost. */
  const until = async (page: Page, report: () => Promise<void>, selector: string): Promise<void> => {
    const timer = setInterval(() => void report(), 100)
    await page.waitForSelector(selector).finally(() => clearInterval(timer))
  }

  it('draws what the server has kept, and moves with what comes', async ({ page, rig }) => {
    await rig.report('web1', 'moves', 1)
    await open(rig, page, '#/metrics/gmetric.moves')
    await page.waitForSelector('.chart canvas')
    await page.waitForSelector(`${LAST}:text-is("1")`)
    // Without a history, that is an hour at most.
    expect(await page.locator('.ranges [aria-pressed]').allTextContents()).toEqual([
      'pause',
      '1 m',
      '5 m',
      '15 m',
      '1 h',
    ])
    await until(page, () => rig.report('web1', 'moves', 7), `${LAST}:text-is("7")`)
  })

  it('offers the sources of a metric, and shows the chosen one', async ({ page, rig }) => {
    await rig.report('web1', 'chosen', 1)
    await rig.report('web2', 'chosen', 2)
    await open(rig, page, '#/metrics/gmetric.chosen')
    await page.waitForSelector('.legend bdi:text-is("host=web1")')
    await page.waitForSelector('datalist option[value=web2]', { state: 'attached' })
    await page.fill('[name=parameter-host]', 'web2')
    await page.press('[name=parameter-host]', 'Enter')
    await page.waitForSelector(`${LAST}:text-is("2")`)
    expect(await page.locator('.legend li').count()).toBe(1)
    expect(page.url()).toContain('host=web2')
  })

  it('shows a counter as its growth per second, or as it is if somebody chooses that', async ({ page, rig }) => {
    const count = () => rig.report('web1', 'counter', Date.now(), { type: 'double', slope: 1 })
    await count()
    await open(rig, page, '#/metrics/gmetric.counter')
    await page.waitForSelector('main .check input:checked')
    // It grows by a thousand per second, whatever the machine is busy with.
    await until(page, count, `.legend b:text-matches("^(\\\\d+|1\\\\.\\\\d+ k)/s$")`)
    expect(page.url()).not.toContain('.rate')
    await page.uncheck('main .check input')
    await page.waitForSelector('text=it only grows')
    await page.waitForSelector('.legend b:text-matches("^[^/]+$")')
    expect(page.url()).toContain('.rate=0')
    await page.click('button:text-is("Pin")')
    await page.click('text=pinned to the >> a')
    await page.waitForSelector('.chart-card:has(h2:has-text("gmetric.counter")) .legend b:text-matches("^[^/]+$")')
    await expect.poll(() => page.url()).toContain('counter%2Ftotal')
    await page.click('[aria-label="Remove gmetric.counter"]')
    // The tab is that of the other tests too.
    await page.waitForSelector('text=No chart is pinned')
  })

  it('shows texts as a table that grows', async ({ page, rig }) => {
    await open(rig, page, '#/metrics/gmetric.words')
    await page.waitForSelector('text=No value has come yet')
    await until(page, () => rig.report('web1', 'words', 'first', { type: 'string' }), '.texts td:has-text("first")')
    await until(
      page,
      () => rig.report('web1', 'words', HOSTILE, { type: 'string' }),
      '.texts td:has-text("<img src=x")',
    )
    expect(await page.locator('.texts tbody tr').count()).toBe(2)
    expect(await page.title()).not.toBe('1')
  })

  it('searches the catalogue by a part of a name and by a pattern', async ({ page, rig }) => {
    await rig.report('web1', 'searched.here', 1)
    await open(rig, page, '#/metrics')
    await page.fill('[type=search]', 'rched.he')
    await page.waitForSelector('.virtual td bdi:text-is("gmetric.searched.here")')
    expect(await page.locator('.virtual td a').count()).toBe(1)
    await page.fill('[type=search]', 'gmetric.sear*there')
    await page.waitForSelector('text=No metric matches')
    await page.click('nav a:has-text("host.")')
    await page.waitForSelector('.virtual td bdi:text-is("host.arch")')
  })

  it('lists hosts with what they report, silent ones, and hostile names as text', async ({ page, rig }) => {
    for (const host of ['web1', HOSTILE, LONG, RIGHT_TO_LEFT]) await rig.report(host, 'load_one', 1.5)
    await open(rig, page, '#/hosts')
    await page.waitForSelector('.virtual td a:has-text("<img src=x")')
    await page.waitForSelector(`bdi[title="${LONG}"]`)
    await page.waitForSelector(`.virtual bdi:text-is("${RIGHT_TO_LEFT}")`)
    await page.waitForSelector('.virtual tr:has(bdi:text-is("web1")) .spark:has-text("1.50")')
    // The own host of the server is one of them.
    await page.waitForSelector('.virtual bdi:text-is("n1")')
    await page.waitForSelector('.virtual tr:has(bdi:text-is("web1")) :text("silent since")')
    await page.click('a:text-is("silent")')
    await page.waitForSelector('.virtual bdi:text-is("n1")', { state: 'detached' })
    await page.fill('[type=search]', 'WEB1')
    await page.waitForSelector('h2:has-text("1 of ")')
    await page.click('.virtual td a:has-text("web1")')
    await page.waitForSelector('h1 bdi:text-is("web1")')
    await page.waitForSelector('.virtual td bdi:text-is("gmetric.load_one")')
    expect(await page.title()).not.toBe('1')
  })

  it('lists memory and network on a phone, too, and nothing leaves the screen', async ({ rig }) => {
    for (const [name, value, unit] of [
      ['load_one', 1.5, ''],
      ['mem_free', 1_040_000, 'KB'],
      ['bytes_in', 66_700, 'bytes/sec'],
    ] as const) {
      await rig.report('web1', name, value, { unit })
    }
    const page = await rig.tab({ width: 390, height: 844 })
    await open(rig, page, '#/hosts')
    const row = page.locator('.virtual tr:has(bdi:text-is("web1"))')
    for (const text of ['1.50', '1,016 MiB', '65.1 KiB/s']) {
      const figure = row.locator(`.spark .number:text-is("${text}")`)
      await figure.waitFor()
      // Nothing of it is cut off.
      expect(await figure.evaluate((one) => one.getBoundingClientRect().right)).toBeLessThan(390)
      const isWhole = await figure.evaluate((one) => {
        const cell = one.closest('td')?.getBoundingClientRect()
        return cell !== undefined && one.getBoundingClientRect().right <= cell.right
      })
      expect(isWhole).toBe(true)
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
    await page.close()
  })

  it('keeps a board in its URL and under a name', async ({ page, rig }) => {
    await rig.report('web1', 'pinned', 3)
    await rig.report('web1', 'joins', 4)
    await open(rig, page, '#/metrics/gmetric.pinned?host=web1')
    await page.fill('[placeholder^="Another"]', 'gmetric.joins')
    await page.click('button:text-is("Add")')
    await page.waitForSelector('.legend bdi:text-is("gmetric.joins")')
    await page.click('button:text-is("Pin")')
    await page.click('text=pinned to the >> a')
    await page.waitForSelector('.chart-card h2:has-text("gmetric.pinned, gmetric.joins host=web1")')
    await page.fill('[name=board]', 'ops')
    await page.click('button:text-is("Save")')
    await page.waitForSelector('nav a[aria-current]:has-text("ops")')
    const url = page.url()
    expect(url).toContain('#/board?')

    // Somebody else opens the URL, and signs in.
    const other = await rig.tab()
    await other.goto(url)
    await rig.signIn(other)
    await other.waitForSelector('.legend bdi:text-is("gmetric.joins")')
    await other.waitForSelector('.legend b:text-is("3")')
    await other.close()

    // It is there again without its URL, until it is deleted.
    await page.goto('about:blank')
    await open(rig, page, '#/board')
    await page.waitForSelector('.legend bdi:text-is("gmetric.pinned")')
    await page.fill('[name=board]', 'shift')
    await page.click('button:text-is("Rename")')
    await page.waitForSelector('nav a[aria-current]:has-text("shift")')
    expect(await page.locator('nav[aria-label="Boards"] a:has-text("ops")').count()).toBe(0)
    await page.click('[aria-label^="Remove "]')
    await page.waitForSelector('text=No chart is pinned')
    await page.click('button:text-is("Delete")')
    await page.click('dialog[open]:has-text("It has other charts there than are shown here") .danger')
    await page.waitForSelector('nav[aria-label="Boards"] a:has-text("shift")', { state: 'detached' })
  })

  it('keeps a board on the server, where others see it if its owner says so, and no change is lost', async ({
    page,
    rig,
  }) => {
    await rig.report('web1', 'kept', 3)
    await open(rig, page, '#/board?name=&chart=gmetric.kept')
    await page.waitForSelector('.legend b:text-is("3")')
    await page.fill('[name=board]', 'night')
    await page.check('[name=shares]')
    await page.click('button:text-is("Save")')
    await page.waitForSelector('nav a[aria-current]:has-text("night")')

    // The same user elsewhere has saved another version.
    const admin = await connect(`tcp://127.0.0.1:${rig.server.tcpPort}`, { identity: 'admin', password: PASSWORD })
    const found = (await admin.query('producer.boards', {})).plain as readonly PlainRecord[]
    const { board, version } = found.find(({ name }) => name === 'night') as { board: number; version: number }
    await admin.execute('board.save', { board, version, charts: 'chart=gmetric.other' })
    await page.click('button:text-is("Save")')
    await page.waitForSelector('[role=alert]:has-text("was changed meanwhile")')
    await page.click('a:text-is("Open the newer one")')
    await page.waitForSelector('.chart-card h2:has-text("gmetric.other")')
    await page.waitForSelector('.banner', { state: 'detached' })

    // Another user of the tenant sees it, and makes a copy.
    await admin.execute('user.add', { user: 'ann', password: PASSWORD })
    await admin.close()
    const other = await rig.tab()
    await rig.open(other, '#/board?name=')
    await rig.signIn(other, PASSWORD, 'ann')
    await other.click('nav a:has-text("night · admin")')
    await other.waitForSelector('.note:has-text("This board is of admin")')
    expect(await other.locator('form.naming > button:text-is("Delete")').count()).toBe(0)
    await other.click('button:text-is("Save")')
    await other.waitForSelector('nav a[aria-current]:has-text("night"):not(:has-text("admin"))')
    await other.close()
  })

  it('offers to keep a board of this browser on the server', async ({ rig }) => {
    const page = await rig.tab()
    await rig.open(page)
    await page.evaluate(`localStorage.setItem('cinnabar.boards', '{"old":"name=old&chart=gmetric.old"}')`)
    await rig.open(page, '#/board?name=')
    await page.reload()
    await rig.signIn(page)
    await page.click('nav a:has-text("old · this browser")')
    await page.waitForSelector('.banner:has-text("in this browser alone")')
    await page.click('button:text-is("Save")')
    await page.waitForSelector('nav a[aria-current][href*="?board="]:has-text("old")')
    expect(await page.locator('a:has-text("this browser")').count()).toBe(0)
    expect(await page.evaluate(`localStorage.getItem('cinnabar.boards')`)).toBe('{}')
    await page.close()
  })

  it('stands still while it is paused, and zooms with keys', async ({ page, rig }) => {
    await rig.report('web1', 'zoomed', 1)
    await open(rig, page, '#/metrics/gmetric.zoomed')
    await page.waitForSelector('.chart canvas')
    await page.click('button:text-is("pause")')
    await page.waitForSelector('button[aria-pressed=true]:text-is("go on")')
    await page.focus('.chart')
    await page.keyboard.press('ArrowLeft')
    await page.waitForSelector('.legend time')
    await page.keyboard.press('+')
    await page.waitForSelector('button:text-is("whole time")')
    await page.keyboard.press('Escape')
    await page.waitForSelector('button:text-is("whole time")', { state: 'detached' })
  })

  it('goes on after the server was killed, with a hole where nothing is known', async ({ page, rig }) => {
    await rig.report('web1', 'outlasts', 1)
    await open(rig, page, '#/metrics/gmetric.outlasts?host=web1')
    await page.waitForSelector(`${LAST}:text-is("1")`)
    await page.waitForSelector('.chart[data-holes="0"]')
    await rig.server.end('SIGKILL')
    await page.waitForSelector('.banner')
    await rig.server.start()
    await until(page, () => rig.report('web1', 'outlasts', 7), `${LAST}:text-is("7")`)
    await page.waitForSelector('.chart[data-holes="1"]')
  })
})
