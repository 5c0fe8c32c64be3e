/** Expressions of Prometheus' language in the console: written, completed, asked, shown, linked to and pinned. */
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const it = consoleTests('[history]\nkeep = "30d"\nresolution = "0"\n')

// A browser is not everywhere.
describe.skipIf(missing)(`the view of queries${howTo}`, () => {
  const open = async (rig: ConsoleRig, page: Page, view = '#/query'): Promise<void> => {
    await rig.open(page, view)
    await rig.signIn(page)
  }

  /** Writes an expression as somebody types it. */
  async function write(page: Page, expr: string, at = 1): Promise<void> {
    const field = page.getByLabel(`Expression ${at}`, { exact: true }).locator('.cm-content')
    await field.click()
    await page.keyboard.press('Control+a')
    await page.keyboard.type(expr)
  }

  /** Reports two values of two hosts until the history answers with both. */
  async function remember(rig: ConsoleRig, page: Page, name: string): Promise<void> {
    await expect
      .poll(
        async () => {
          await rig.report('web1', name, 2)
          await rig.report('web2', name, 40)
          await page.keyboard.press('Control+Enter')
          return await page.locator('.query tbody tr').count()
        },
        { timeout: 20_000, interval: 500 },
      )
      .toBe(2)
  }

  it('answers what is written, completes it, and its link has it', async ({ page, rig }) => {
    await open(rig, page)
    await page.waitForSelector('.rail a[aria-current]:text-is("Query")')
    await write(page, 'gmetric_asked')
    await remember(rig, page, 'asked')
    expect(await page.locator('.query tbody td.code').first().innerText()).toContain('host="web1"')
    expect(await page.locator('.query tbody td.number').allInnerTexts()).toEqual(['2', '40'])
    expect(await page.locator('.outcome').innerText()).toMatch(
      /^2 series · \d+ samples read · evaluated in .*, here after /,
    )
    // Names of metrics, labels, texts of labels and functions.
    for (const [typed, wanted] of [
      ['gmetric_a', 'gmetric_asked'],
      ['sum by (ho', 'host'],
      ['gmetric_asked{host="', 'web2'],
      ['histogram_q', 'histogram_quantile'],
    ] as const) {
      const found = page.locator('.cm-tooltip-autocomplete li', { hasText: wanted }).first()
      // What the server has said before is taken for a while.
      await expect
        .poll(
          async () => {
            await write(page, typed)
            await page.keyboard.press('Control+Space')
            return await found.waitFor({ timeout: 1_000 }).then(
              () => true,
              () => false,
            )
          },
          { timeout: 20_000 },
        )
        .toBe(true)
      await page.keyboard.press('Escape')
    }
    await write(page, 'sum(gmetric_asked) by (host) * 2')
    await page.keyboard.press('Escape')
    await page.click('.query button.first')
    await page.waitForSelector('td.number:text-is("80")')
    const link = page.url()
    expect(new URLSearchParams(link.split('?')[1]).getAll('expr')).toEqual(['sum(gmetric_asked) by (host) * 2'])
    await page.reload()
    await rig.signIn(page)
    await page.waitForSelector('td.number:text-is("80")')
    expect(page.url()).toBe(link)
  })

  it('draws charts, several queries one below the other, and puts one on the board', async ({ page, rig }) => {
    await open(rig, page)
    await write(page, 'gmetric_drawn')
    await remember(rig, page, 'drawn')
    await page.click('.query button:text-is("Chart")')
    await page.waitForSelector('.query .chart canvas')
    await page.waitForSelector('.legend b:text-is("40")')
    await page.click('button:text-is("Add a query")')
    await write(page, '1 + 1', 2)
    await page.keyboard.press('Control+Enter')
    await page.waitForSelector('.query:nth-of-type(2) .chart canvas')
    await page.click('button:text-is("15 m")')
    const args = new URLSearchParams(page.url().split('?')[1])
    expect(args.getAll('expr')).toEqual(['gmetric_drawn', '1 + 1'])
    expect(args.getAll('show')).toEqual(['chart', 'chart'])
    expect(args.get('.range')).toBe('15m')
    await page.click('button[aria-label="Remove expression 2"]')
    await expect.poll(() => page.locator('.query').count()).toBe(1)
    await page.click('button:text-is("Add to board")')
    await page.click('a:text-is("board")')
    await page.waitForSelector('.chart-card .legend b:text-is("40")')
    expect(page.url()).toContain('chart=%3Dgmetric_drawn')
    await page.click('.chart-card h2 a')
    await page.waitForSelector('.query .chart canvas')
  })

  it('says what is wrong, and where', async ({ page, rig }) => {
    await open(rig, page)
    await write(page, 'sum(nothing_here[5m])')
    await page.keyboard.press('Control+Enter')
    const problem = page.locator('.query [role=alert]')
    await problem.waitFor()
    expect(await problem.innerText()).toMatch(/^1:5: parse error: expected type instant vector/)
    expect(await page.locator('.cm-wrong').innerText()).toBe('nothing_here[5m]')
    // A board of what is wrong would show nothing.
    expect(await page.locator('button:text-is("Add to board")').count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.keyboard.type(' ')
    await expect.poll(() => page.locator('.cm-wrong').count()).toBe(0)
    await write(page, 'nothing_here')
    await page.keyboard.press('Control+Enter')
    await page.waitForSelector('.query .empty:text-is("No series has a value at this time.")')
  })

  it('is left by Tab, and its letters are no shortcuts', async ({ page, rig }) => {
    await open(rig, page)
    await write(page, '1')
    await page.keyboard.press('Escape')
    expect(page.url()).toContain('#/query')
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Run')
    await page.keyboard.press('Enter')
    await page.waitForSelector('td.number:text-is("1")')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.type(' + 2')
    await page.keyboard.press('Control+Enter')
    await page.waitForSelector('td.number:text-is("3")')
  })

  it('loads the editor with this view alone', async ({ page, rig }) => {
    const loaded: string[] = []
    page.on('request', (request) => void loaded.push(request.url()))
    await open(rig, page, '#/metrics')
    await page.waitForSelector('.rail a[aria-current]')
    const editors = () => loaded.filter((url) => url.includes('promql-editor'))
    expect(editors()).toEqual([])
    await page.click('.rail a:text-is("Query")')
    await page.waitForSelector('.cm-content')
    expect(editors()).toHaveLength(1)
  })
})
