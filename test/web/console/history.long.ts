/** Charts over what the server remembers: any time, and also of before it was killed. */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { connect } from '../../../client/index.ts'
import { History } from '../../../storage/history/history.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const MINUTE_MS = 60_000
const DAY_MS = 1_440 * MINUTE_MS

const it = consoleTests('[history]\nkeep = "30d"\n')

// A browser is not everywhere.
describe.skipIf(missing)(`charts of the history${howTo}`, () => {
  const open = async (rig: ConsoleRig, page: Page, view: string): Promise<void> => {
    await rig.open(page, view)
    await rig.signIn(page)
  }

  /** Reports a value, and waits until it is in the history. */
  async function remember(rig: ConsoleRig, name: string, value: number): Promise<void> {
    const consumer = await connect(
      `tcp://127.0.0.1:${rig.server.tcpPort}`,
      { identity: 'admin', password: PASSWORD },
      { durable: false },
    )
    await expect
      .poll(
        async () => {
          await rig.report('web1', name, value)
          const { plain } = await consumer.query('producer.history.select', { metric: `gmetric.${name}` })
          return Array.isArray(plain) ? plain.length : 0
        },
        { timeout: 20_000 },
      )
      .toBe(1)
    await consumer.close()
  }

  it('shows the values of before the server was killed', async ({ page, rig }) => {
    await remember(rig, 'remembered', 7)
    await rig.server.end('SIGKILL')
    await rig.server.start()
    await open(rig, page, '#/metrics/gmetric.remembered?host=web1&.range=15m')
    await page.waitForSelector('.chart canvas')
    await page.waitForSelector('.legend b:text-is("7")')
    await page.waitForSelector('button[aria-pressed=true]:text-is("15 m")')
    // Every line of it, to the end: what comes now goes on where that ended.
    const timer = setInterval(() => void rig.report('web1', 'remembered', 9), 100)
    await page.waitForSelector('.legend b:text-is("9")').finally(() => clearInterval(timer))
  })

  /** Stores 40 days, of which the last 30 have their samples yet, and a day of loss, while the server is stopped. */
  async function rememberDays(rig: ConsoleRig, name: string): Promise<number> {
    await rig.server.end('SIGTERM')
    const endMs = Date.now()
    const count = DAY_MS / MINUTE_MS
    let nowMs = endMs - 40 * DAY_MS
    const history = History.open({
      directory: join(rig.server.directory, 'data', 'history'),
      clock: () => nowMs,
      monotonicMs: () => nowMs,
      limits: { keepMs: 30 * DAY_MS, keepRollupsMs: 730 * DAY_MS, maxBytes: 2 ** 40, quotas: new Map() },
    })
    const kept = { native: `gmetric.${name}`, name: `gmetric_${name}`, labels: [['host', 'web1']] } as const
    const from = { native: 'gmetric.*', fromMs: endMs - 11 * DAY_MS, toMs: endMs - 10 * DAY_MS }
    for (let day = 0; day < 40; day++, nowMs += DAY_MS) {
      const reference = history.seriesOf({ tenant: 'default', ...kept }) ?? Number.NaN
      const isLost = day === 30
      history.append({
        tenant: 'default',
        position: undefined,
        series: new Uint32Array(count).fill(reference),
        times: Float64Array.from({ length: count }, (_, at) => nowMs - DAY_MS + (at + 1) * MINUTE_MS),
        // From 40 to 60 in each rollup, around 50 and a wave of a week.
        values: Float64Array.from(
          { length: count },
          (_, at) => 50 + 5 * Math.sin((6.28 * day) / 7) + 10 * ((at % 3) - 1),
        ),
        length: isLost ? 0 : count,
        losses: isLost ? [{ ...from, count: 1_440, reason: 'overflow' }] : [],
      })
      while (!history.commit());
      while (history.work(1_000));
    }
    history.close()
    await rig.server.start()
    return endMs
  }

  it('shows rollups where samples have gone, and hatches what was lost', async ({ page, rig }) => {
    const endMs = await rememberDays(rig, 'past')
    const ago = (days: number): string => new Date(endMs - days * DAY_MS).toISOString().slice(0, 19)
    await page.goto('about:blank')
    await open(rig, page, `#/metrics/gmetric.past?host=web1&.range=60d&.at=${ago(0)}Z`)
    // The server may have lost something, too, when it was killed.
    await page.waitForSelector('.legend .missing:has-text("1,440 values are missing"):has-text("gmetric.*: overflow")')
    expect(Number(await page.locator('.chart').getAttribute('data-holes'))).toBeGreaterThan(0)
    // The band of a day whose samples have gone.
    const box = await page.locator('.chart .u-over').boundingBox()
    if (box === null) throw new Error('the chart is not there')
    await page.mouse.move(box.x + box.width * 0.4, box.y + 40)
    await expect
      .poll(() => page.locator('.legend b').first().textContent())
      .toMatch(/^\d\d[.\d]* \(\d\d[.\d]* to \d\d[.\d]*\)$/)
    expect(await page.locator('.legend .missing').count()).toBe(0)
    await page.mouse.move(box.x + box.width * (1 - 10.5 / 60), box.y + 40)
    await page.waitForSelector('.legend .missing')
    // An expression over it has the same hole.
    await page.goto('about:blank')
    await open(rig, page, `#/query?expr=gmetric_past&show=chart&.range=60d&.at=${ago(0)}Z`)
    await page.waitForSelector('.query .missing:has-text("1,440 values are missing"):has-text("gmetric.*: overflow")')
    expect(Number(await page.locator('.chart').getAttribute('data-holes'))).toBeGreaterThan(0)
    // An hour of it.
    await page.goto('about:blank')
    await open(rig, page, `#/metrics/gmetric.past?host=web1&.range=1h&.at=${ago(35)}Z`)
    await expect.poll(() => page.locator('.legend b').first().textContent()).toMatch(/^\d\d/)
    expect(await page.locator('.legend .missing').count()).toBe(0)
  })

  it('keeps the chosen time in the URL, also of a part of it, and over a reload', async ({ page, rig }) => {
    await remember(rig, 'ranged', 3)
    await open(rig, page, '#/metrics/gmetric.ranged?host=web1')
    await page.waitForSelector('.legend b:text-is("3")')
    await page.click('button:text-is("7 d")')
    await page.waitForSelector('button[aria-pressed=true]:text-is("7 d")')
    expect(page.url()).toContain('.range=7d')
    // A part of it is dragged over.
    const box = await page.locator('.chart .u-over').boundingBox()
    if (box === null) throw new Error('the chart is not there')
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.6, box.y + 40)
    await page.mouse.up()
    await page.waitForSelector('button:text-is("whole time")')
    const [, seconds = ''] = /\.range=(\d+)s/.exec(page.url()) ?? []
    expect(Number(seconds)).toBeGreaterThan(0.08 * 7 * 86_400)
    expect(Number(seconds)).toBeLessThan(0.12 * 7 * 86_400)
    expect(page.url()).toContain('.at=')
    const url = page.url()
    await page.goto('about:blank')
    await page.goto(url)
    await rig.signIn(page)
    // It ended days ago: there is nothing, and that is said.
    await page.waitForSelector('.empty:has-text("The history has no value from")')
    expect(page.url()).toBe(url)
    await page.click('button:text-is("now")')
    await page.click('button:text-is("1 y")')
    await page.waitForSelector('.legend b:text-is("3")')
    expect(page.url()).toContain('.range=1y')
    expect(page.url()).not.toContain('.at=')
  })

  it('shows the time between two moments, and says what is wrong with them', async ({ page, rig }) => {
    await remember(rig, 'between', 5)
    await open(rig, page, '#/metrics/gmetric.between?host=web1')
    await page.click('button:text-is("from … to")')
    await page.fill('[name=from]', '2026-01-02T10:00:00')
    await page.fill('[name=to]', '2026-01-02T09:00:00')
    await page.click('form.between button')
    await page.waitForSelector('.between .problem:has-text("later")')
    await page.fill('[name=to]', '2026-01-02T13:00:00')
    await page.click('form.between button')
    await expect.poll(() => page.url()).toContain('.range=3h&.at=2026-01-02T')
    await page.click('[aria-label="Earlier"]')
    await expect.poll(() => page.url()).toMatch(/\.at=2026-01-02T\d\d%3A00%3A00Z/)
    // And back to now, arrow by arrow: what is remembered is there again.
    await page.click('button:text-is("now")')
    await page.click('button:text-is("1 d")')
    await page.click('[aria-label="Earlier"]')
    await page.waitForSelector('.empty:has-text("The history has no value from")')
    await page.click('[aria-label="Later"]')
    await page.waitForSelector('.legend b:text-is("5")')
  })

  it('shows the charts of a host in the same time', async ({ page, rig }) => {
    await open(rig, page, '#/hosts/n1')
    for (const title of ['CPU', 'Load', 'Memory', 'Network'])
      await page.waitForSelector(`.chart-card h2:has-text("${title}")`)
    await page.click('button:text-is("30 d")')
    await page.waitForSelector('button[aria-pressed=true]:text-is("30 d")')
    await page.fill('[type=search]', 'load')
    expect(page.url()).toContain('.range=30d')
    expect(await page.locator('.chart-card h2 a').first().getAttribute('href')).toContain('.range=30d')
  })

  it('has boards that are ready in place of an empty one, of what there is', async ({ page, rig }) => {
    await open(rig, page, '#/board?name=&.range=1h')
    await page.click('nav a:text-is("Machine of the server")')
    await page.waitForSelector('.chart-card:has(h2:has-text("host.load.one")) canvas')
    await page.waitForSelector('h1:has-text("Machine of the server")')
    expect(page.url()).toContain('.range=1h')
    await page.click('button[aria-pressed]:text-is("1 d")')
    await page.waitForSelector('button[aria-pressed=true]:text-is("1 d")')
    await page.goto('about:blank')
    await open(rig, page, '#/board?name=')
    await page.waitForSelector('nav a:text-is("Machine of the server")')
    expect(await page.locator('nav a:text-is("node_exporter")').count()).toBe(0)
  })

  it('shows the history to whoever has the link of a board, of its metrics alone', async ({ page, rig }) => {
    await remember(rig, 'linked', 6)
    await remember(rig, 'hidden', 8)
    await rig.server.end('SIGKILL')
    await rig.server.start()
    await open(rig, page, '#/board?name=ours&chart=gmetric.linked')
    await page.click('button:text-is("Share")')
    await page.click('button:text-is("Make the link")')
    const link = (await page.textContent('dialog.share code')) ?? ''
    const guest = await rig.tab()
    await guest.goto(`${link}&.range=1d`)
    await guest.waitForSelector('.legend b:text-is("6")')
    await guest.waitForSelector('button[aria-pressed=true]:text-is("1 d")')
    await guest.goto('about:blank')
    await guest.goto(`${link.replace('gmetric.linked', 'gmetric.hidden')}&.range=1d`)
    await guest.waitForSelector('.chart-card [role=alert]')
    await guest.waitForSelector('.empty.late', { state: 'detached' })
    expect(await guest.locator('.legend').count()).toBe(0)
    await guest.close()
  })
})
