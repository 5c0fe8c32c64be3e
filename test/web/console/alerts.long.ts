/** Alerts in the console: what fires, acknowledged with one thumb, silenced, its rule, and who was told. */
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect } from 'vitest'
import { connect } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const RULES = `groups:
  - name: heat
    interval: 1s
    rules:
      - record: heat:max
        expr: max(gmetric_heat)
      - alert: TooHot
        expr: gmetric_heat > 30
        labels: { severity: page }
        annotations:
          summary: '{{ $labels.host }} has {{ $value }} °C'
          runbook: https://wiki.example/heat
      - alert: Warm
        expr: gmetric_heat > 20
        for: 1h
        labels: { severity: warning }
`

const receiver = createServer((request, response) => {
  request.resume()
  response.writeHead(204).end()
})
receiver.listen(0, '127.0.0.1')
await once(receiver, 'listening')
const { port } = receiver.address() as AddressInfo
afterAll(() => receiver.close())
const rules = join(mkdtempSync(join(tmpdir(), 'cinnabar-rules-')), 'heat.yml')
writeFileSync(rules, RULES)

const it = consoleTests(`[history]
keep = "30d"
resolution = "0"
[alerts]
builtin = false
rules = ["${rules}"]
[[notify]]
name = "pager"
url = "webhook+http://127.0.0.1:${port}/"
group_wait = "0s"
group_interval = "1s"
`)

// A browser is not everywhere.
describe.skipIf(missing)(`the view of alerts${howTo}`, () => {
  const card = (page: Page, name: string) => page.locator(`article[aria-label="${name}"]`)

  async function open(rig: ConsoleRig, page: Page, view = '#/alerts'): Promise<void> {
    await rig.report('web1', 'heat', 40)
    await rig.open(page, view)
    await rig.signIn(page)
  }

  it('shows what fires, with its chart and who was told, and counts it in the title and the rail', async ({
    page,
    rig,
  }) => {
    await open(rig, page)
    await expect
      .poll(() => rig.report('web1', 'heat', 40).then(() => card(page, 'TooHot').count()), { timeout: 30_000 })
      .toBe(1)
    await expect.poll(() => page.title(), { timeout: 10_000 }).toBe('(1) Alerts · Cinnabar')
    expect(await page.locator('.rail a[aria-current] .rail-count').innerText()).toMatch(/^1/)
    const hot = card(page, 'TooHot')
    expect(await hot.locator('.summary').innerText()).toBe('web1 has 40 °C')
    expect(await hot.locator('.alert-state').innerText()).toMatch(/page\s*firing\s*for/)
    // The worst first; what is pending comes after it.
    expect(await page.locator('article').evaluateAll((all) => all.map((one) => one.ariaLabel))).toEqual([
      'TooHot',
      'Warm',
    ])
    await hot.getByText('Details').click()
    await hot.locator('.chart canvas').waitFor({ timeout: 20_000 })
    expect(await hot.locator('.legend').innerText()).toContain('threshold')
    expect(await hot.locator('a[href="https://wiki.example/heat"]').getAttribute('rel')).toContain('noopener')
    await expect
      .poll(() => hot.locator('tr:has-text("told")').last().innerText(), { timeout: 15_000 })
      .toMatch(/pager delivered: 204/)
    const expression = hot.getByText('gmetric_heat > 30')
    expect(await expression.getAttribute('href')).toContain('#/query?expr=gmetric_heat+%3E+30')
    // The address has what is unfolded, and what is searched for.
    await page.locator('input[type=search]').fill('host=web2')
    await page.waitForSelector('.empty:has-text("No alert matches.")')
    await page.locator('input[type=search]').fill('toohot')
    expect(await page.locator('article').count()).toBe(1)
    expect(page.url()).toContain('match=toohot')
  })

  it('has the history of an alert, and of those that are over', async ({ page, rig }) => {
    await open(rig, page)
    const hot = card(page, 'TooHot')
    await hot.getByText('Details').click()
    const history = hot.locator('section[aria-label="History of TooHot"]')
    await history.locator('rect.firing').first().waitFor({ timeout: 20_000 })
    expect(await history.getByRole('img').getAttribute('aria-label')).toMatch(/^In the last 24 h: firing for /)
    expect(await history.locator('.spans').innerText()).toMatch(/^firing .* – now, /)
    await history.getByRole('button', { name: 'The last 1h' }).click()
    await history.getByRole('img', { name: /^In the last 60 min: firing/ }).waitFor({ timeout: 15_000 })
    // It ends, and its history stays.
    await expect.poll(() => rig.report('web1', 'heat', 25).then(() => hot.count()), { timeout: 30_000 }).toBe(0)
    await page.click('.tabs a:text-is("History")')
    const past = page.locator('.past-alerts tbody tr', { hasText: 'TooHot' })
    await past.getByRole('img', { name: /^In the last 24 h: firing for / }).waitFor({ timeout: 20_000 })
    await page.click('.choices a:text-is("1h")')
    expect(page.url()).toContain('#/alerts/history?range=1h')
    await past.getByRole('img', { name: /^In the last 60 min: firing for / }).waitFor({ timeout: 20_000 })
    await page.locator('input[type=search]').fill('toocold')
    await page.waitForSelector('.empty:has-text("No alert matches.")')
  })

  it('acknowledges with one press on a phone, and ends that again', async ({ rig }) => {
    const page = await rig.tab({ width: 390, height: 844 })
    await open(rig, page)
    const hot = card(page, 'TooHot')
    const button = hot.getByLabel('Acknowledge TooHot')
    await button.waitFor({ timeout: 30_000 })
    const box = await button.boundingBox()
    expect(box?.height).toBeGreaterThanOrEqual(44)
    expect(box?.width).toBeGreaterThanOrEqual(100)
    await button.click()
    await hot.getByText(/^acknowledged by admin/).waitFor({ timeout: 15_000 })
    await page.waitForSelector('.choices a:has-text("silenced 1")')
    await hot.getByRole('button', { name: 'End the acknowledgement of TooHot' }).click()
    await hot.locator('dialog button.danger').click()
    await button.waitFor({ timeout: 15_000 })
    await page.close()
  })

  it('silences what the form says, which is in the list until it is ended, and after that', async ({ page, rig }) => {
    await open(rig, page)
    const hot = card(page, 'TooHot')
    await hot.getByLabel('Silence TooHot').click()
    const form = hot.locator('dialog form')
    const matchers = form.locator('textarea')
    expect(
      await form.getByRole('radio').evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value)),
    ).toEqual(['alert.silence', 'alert.acknowledge'])
    expect(await matchers.inputValue()).toBe('alertname="TooHot"\nhost="web1"\nseverity="page"')
    await matchers.fill('nonsense')
    await form.locator('button[type=submit]').click()
    await form.locator('.problem:has-text("nonsense")').waitFor()
    await matchers.fill('host="web1"')
    await form.locator('input[autocomplete]').fill('new fans')
    await form.locator('button[type=submit]').click()
    await hot.getByText(/^silenced by admin.*: new fans$/).waitFor({ timeout: 15_000 })
    await page.click('.tabs a:text-is("Silences")')
    const row = page.locator('tbody tr', { hasText: 'host="web1"' })
    await row.getByText('new fans').waitFor()
    await row.locator('.does button').first().click()
    await row.locator('dialog button.danger').click()
    await page.waitForSelector('.empty:has-text("Nothing is silenced")', { timeout: 15_000 })
    await page.click('a:text-is("ended")')
    await row.getByText('new fans').waitFor()
  })

  it('acknowledges for a time, and says why', async ({ page, rig }) => {
    await open(rig, page)
    await expect
      .poll(() => rig.report('web1', 'heat', 40).then(() => card(page, 'TooHot').count()), { timeout: 30_000 })
      .toBe(1)
    const hot = card(page, 'TooHot')
    await hot.getByLabel('Silence TooHot').click()
    const form = hot.locator('dialog form')
    await form.getByText('only those that fire now').click()
    await form.locator('select').selectOption({ label: '8 h' })
    await form.locator('input[autocomplete]').fill('on my way')
    await form.getByRole('button', { name: 'Acknowledge' }).click()
    await hot.getByText(/^acknowledged by admin for another 8 h: on my way$/).waitFor({ timeout: 15_000 })
    await hot.getByRole('button', { name: 'End the acknowledgement of TooHot' }).click()
    await hot.locator('dialog button.danger').click()
    await hot.getByLabel('Acknowledge TooHot').waitFor({ timeout: 15_000 })
  })

  it('lists the rules with their health, and the log of notifications by notifier', async ({ page, rig }) => {
    await open(rig, page, '#/alerts/rules')
    const group = page.locator('section[aria-label="Group heat"]')
    await group.waitFor({ timeout: 15_000 })
    expect(await group.locator('tbody tr').count()).toBe(3)
    expect(await group.locator('tr:has-text("TooHot")').innerText()).toMatch(/ok[\s\S]*1 firing/)
    await group.getByText('max(gmetric_heat)').click()
    await page.waitForSelector('.query .cm-content')
    await page.goto(`${page.url().split('#')[0]}#/alerts/notifications`)
    await page.waitForSelector('section[aria-label="Notifiers"] tr:has-text("pager")')
    await page.waitForSelector('section[aria-label="Log of notifications"] tr:has-text("204")')
    await page.selectOption('select[name=notifier]', 'pager')
    expect(page.url()).toContain('notifier=pager')
    await page.waitForSelector('section[aria-label="Log of notifications"] tr:has-text("TooHot")')
  })

  it('says what somebody may not do or read', async ({ page, rig }) => {
    const url = `tcp://127.0.0.1:${rig.server.tcpPort}`
    const admin = await connect(url, { identity: 'admin', password: PASSWORD }, { name: 'rights' })
    const password = 'eight characters'
    await admin.execute('user.add', { user: 'watcher', role: 'consumer', password })
    for (const object of [
      'producer.alerts.active',
      'producer.history.query',
      'producer.rules',
      'producer.silences',
      'producer.notif*',
    ])
      await admin.execute('role.deny', { role: 'blind', command: 'COLLECT', object })
    await admin.execute('user.add', { user: 'blind', role: 'blind', password })
    await admin.close()
    await rig.report('web1', 'heat', 40)
    await rig.open(page, '#/alerts')
    await rig.signIn(page, password, 'watcher')
    await page.waitForSelector('text=Your role may not acknowledge or silence alerts.', { timeout: 30_000 })
    await card(page, 'TooHot').waitFor()
    expect(await page.locator('article button').count()).toBe(0)
    await rig.open(page, '#/alerts/silences')
    await page.waitForSelector('text=Your role may not silence alerts.')
    await page.click('button:text-is("Sign out")')
    await rig.signIn(page, password, 'blind')
    for (const [tab, what] of [
      ['', 'alerts'],
      ['/history', 'history of alerts'],
      ['/rules', 'rules'],
      ['/silences', 'silences'],
      ['/notifications', 'log of notifications'],
    ]) {
      await page.evaluate(`location.hash = '#/alerts${tab}'`)
      await page.waitForSelector(`text=Your role may not read the ${what}.`)
    }
  })
})
