/** Approvals in the console: two people, each with a page of their own, decide about what one of them has asked for. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect } from 'vitest'
import { type Consumer, connect } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What is used of the results of axe-core. */
interface Found {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-console-'))
const restarts = join(directory, 'restarts')
/** Without a place where a line may be broken. */
const LONG = 'x'.repeat(200)

const it = consoleTests(`
[[exec]]
name = "exec.restart"
description = "Restarts a service."
argv = ["sh", "-c", 'echo "$1" >> ${restarts}', "sh", "{service}"]
max_running = 4
dry_run_argv = ["sh", "-c", 'echo "$1 runs since Tuesday"', "sh", "{service}"]

[[exec.parameter]]
name = "service"
pattern = "[a-z.@0-9-]+"
max_length = 240
`)

// A browser is not everywhere.
describe.skipIf(missing)(`approvals in the console${howTo}`, () => {
  afterAll(() => rmSync(directory, { recursive: true }))

  const url = (rig: ConsoleRig): string => `tcp://127.0.0.1:${rig.server.tcpPort}`
  const runs = (): string[] => (existsSync(restarts) ? readFileSync(restarts, 'utf8').trimEnd().split('\n') : [])
  const card = (page: Page, service: string) => page.locator('article.approval', { hasText: service })

  /** Operators ask, and leads approve. */
  async function prepare(rig: ConsoleRig): Promise<void> {
    const admin = await connect(url(rig), { identity: 'admin', password: PASSWORD }, { durable: false })
    const rule = { role: 'operator', command: 'EXECUTE', object: 'exec.restart', approval: 'lead' }
    await admin.execute('role.allow', rule)
    for (const [user, role] of Object.entries({ olga: 'operator', luis: 'lead', cora: 'consumer' })) {
      await admin.execute('user.add', { user, role, password: PASSWORD })
    }
    await admin.close()
  }

  async function asker(rig: ConsoleRig): Promise<Consumer> {
    return await connect(url(rig), { identity: 'olga', password: PASSWORD }, { durable: false })
  }

  async function open(rig: ConsoleRig, identity: string, looks = {}, view = '#/controls/approvals'): Promise<Page> {
    const page = await rig.tab(looks)
    await rig.open(page, view)
    await rig.signIn(page, PASSWORD, identity)
    await page.waitForSelector('h1')
    return page
  }

  it('shows what waits to who may approve, counts it, and runs it once after a question', async ({ rig }) => {
    await prepare(rig)
    const [page, own] = [await open(rig, 'luis'), await open(rig, 'olga', {}, '#/controls/exec.restart')]
    await page.waitForSelector('.empty:has-text("Nothing waits for your approval.")')
    await own.fill('[name=service]', 'nginx.service')
    await own.click('button:text-is("Run")')
    await own.click('dialog[open] button:text-is("Run")')
    await own.waitForSelector('text=One run that you have asked for waits for approval.')
    const waiting = card(page, 'nginx.service')
    await waiting.waitFor()
    expect(await page.locator('.rail a:has-text("Controls") .rail-count').innerText()).toMatch(/^1/)
    const text = await waiting.innerText()
    expect(text).toMatch(/olga has asked for it from 127\.0\.0\.1/)
    expect(text).toContain('the approval of the role lead, or of an admin')
    expect(text).toContain('allow EXECUTE exec.restart if lead approves')
    expect(text).toMatch(/ends in 60 min/)
    expect(await waiting.locator('.result').innerText()).toContain('nginx.service runs since Tuesday')

    await own.click('text=approval')
    const mine = card(own, 'nginx.service')
    await mine.waitFor()
    expect(await mine.locator('button').first().innerText()).toBe('Take back')
    await own.waitForSelector('text=nobody approves what they have asked for themselves')
    expect(await own.locator('.rail-count').count()).toBe(0)

    await waiting.getByText('Approve', { exact: true }).first().click()
    const dialog = page.locator('dialog[open]')
    expect(await dialog.locator('p').textContent()).toBe('Run exec.restart on the server n1, as olga has asked?')
    expect(await dialog.locator('dl').innerText()).toMatch(/service\s+nginx\.service/)
    await dialog.locator('text=Cancel').click()
    expect(runs()).toEqual([])
    await waiting.getByText('Approve', { exact: true }).first().click()
    await page.dblclick('dialog[open] button.first')
    await expect.poll(runs).toEqual(['nginx.service'])
    for (const one of [page, own]) {
      await one.waitForSelector('.decided li:has-text("approved by luis")')
      expect(await one.locator('article.approval').count()).toBe(0)
    }
    expect(await page.locator('.rail-count').count()).toBe(0)
    await page.close()
    await own.close()
  })

  it('refuses with a reason, which who has asked gets, and takes back', async ({ rig }) => {
    const consumer = await asker(rig)
    const [page, own] = [await open(rig, 'luis'), await open(rig, 'olga')]
    const [refused, back] = ['refused.service', 'back.service'].map((service) =>
      consumer.execute('exec.restart', { service }),
    )
    await card(page, 'refused.service').getByText('Refuse', { exact: true }).first().click()
    await page.locator('dialog[open] button[type=submit]').click()
    // Without a reason it is not sent.
    expect(await page.locator('dialog[open]').count()).toBe(1)
    await page.fill('dialog[open] [name=reason]', 'after the backup')
    await page.keyboard.press('Enter')
    expect((await refused)?.plain).toMatchObject({ outcome: 'refused', detail: 'by luis: after the backup' })
    await own.waitForSelector('.decided li:has-text("refused by luis")')
    await own.waitForSelector('.decided li:has-text("after the backup")')
    await card(own, 'back.service').getByText('Take back', { exact: true }).first().click()
    await own.fill('dialog[open] [name=reason]', 'a mistake')
    await own.keyboard.press('Enter')
    expect((await back)?.plain).toMatchObject({ outcome: 'refused', detail: 'by olga: a mistake' })
    await page.waitForSelector('.decided li:has-text("refused by olga")')
    expect(runs()).not.toContain('refused.service')
    await Promise.all([page.close(), own.close(), consumer.close()])
  })

  it('shows nothing of it to somebody of another role', async ({ rig }) => {
    const consumer = await asker(rig)
    const asked = consumer.execute('exec.restart', { service: 'hidden.service' }).catch(() => {})
    const [page, lead] = [await open(rig, 'cora'), await open(rig, 'luis')]
    await card(lead, 'hidden.service').waitFor()
    await page.waitForSelector('.empty:has-text("Nothing waits for your approval.")')
    expect(await page.locator('article.approval').count()).toBe(0)
    await card(lead, 'hidden.service').getByText('Refuse', { exact: true }).first().click()
    await lead.fill('dialog[open] [name=reason]', 'seen')
    await lead.keyboard.press('Enter')
    await asked
    await Promise.all([page.close(), lead.close(), consumer.close()])
  })

  it.for([
    ['light', { dark: false }],
    ['dark', { dark: true }],
    ['on a phone', { width: 390, height: 844 }],
  ] as const)('is accessible, and no wider than the screen: %s', async ([, looks], { rig }) => {
    const consumer = await asker(rig)
    const asked = [`one.service`, LONG].map((service) => consumer.execute('exec.restart', { service }).catch(() => {}))
    const page = await open(rig, 'luis', looks)
    await card(page, LONG).locator('.result').waitFor()
    const judge = async (): Promise<void> => {
      // The policy of the page forbids scripts from elsewhere; a function of the debugger is not subject to it.
      await page.evaluate(AXE)
      const { violations }: Found = await page.evaluate('axe.run()')
      expect(violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    }
    await judge()
    await card(page, 'one.service').getByText('Approve', { exact: true }).first().click()
    await judge()
    await page.locator('dialog[open] button:text-is("Cancel")').click()
    for (const left of [1, 0]) {
      await page.locator('article.approval').first().getByText('Refuse', { exact: true }).first().click()
      await judge()
      await page.fill('dialog[open] [name=reason]', 'seen')
      await page.keyboard.press('Enter')
      await expect.poll(() => page.locator('article.approval').count()).toBe(left)
    }
    await page.waitForSelector('.decided')
    await judge()
    await Promise.all(asked)
    await Promise.all([page.close(), consumer.close()])
  })
})
