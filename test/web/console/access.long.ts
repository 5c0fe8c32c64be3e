/** Users, tokens, explanations and the audit log; and what those get who are no admins. */
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { connect } from '../../../client/index.ts'
import { PASSWORD as ADMIN_PASSWORD } from '../../support/server-process.ts'
import { consoleTests, howTo, missing } from './rig.ts'

const HOSTILE = '<img src=x onerror=alert(1)>'
const PASSWORD = 'eight characters'

const it = consoleTests()

// A browser is not everywhere.
describe.skipIf(missing)(`access in the console${howTo}`, () => {
  /** Fills a form that is folded, and presses its button and that of the question. */
  async function submit(
    page: Page,
    title: string,
    label: string,
    texts: Readonly<Record<string, string>>,
  ): Promise<string> {
    const fold = page.locator(`details:has(summary:text-is("${title}"))`)
    if ((await fold.getAttribute('open')) === null) await fold.locator('summary').click()
    for (const [name, text] of Object.entries(texts)) {
      const select = fold.locator(`select[name=${name}]`)
      // A role that there is not yet.
      if ((await select.count()) > 0) await select.selectOption({ label: `another ${name} …` })
      await fold.locator(`input[name=${name}]`).fill(text)
    }
    await fold.locator(`form button:text-is("${label}")`).click()
    const dialog = fold.locator('dialog[open]')
    const question = (await dialog.locator('p').textContent()) ?? ''
    await dialog.locator(`button:text-is("${label}")`).click()
    return question
  }

  it('makes a user after it was asked, and shows hostile names as text', async ({ page, rig }) => {
    await rig.open(page, '#/access/users')
    await rig.signIn(page)
    await page.waitForSelector('tr:has-text("admin")')
    const question = await submit(page, 'Add a user', 'Add', { user: 'alice', password: PASSWORD })
    expect(question).toBe('Add the user alice with the role consumer?')
    await page.waitForSelector('td:has-text("alice")')
    expect(await page.inputValue('details[open] [name=password]')).toBe('')
    await submit(page, 'Add a user', 'Add', { user: HOSTILE, password: PASSWORD })
    await page.waitForSelector(`td:has-text("${HOSTILE}")`)
    expect(await page.locator('td img').count()).toBe(0)

    await page.click(`[aria-label="Remove ${HOSTILE}"]`)
    await page.waitForSelector(`dialog[open] p:has-text("Remove ${HOSTILE}?")`)
    await page.click('dialog[open] .danger')
    await page.waitForSelector(`td:has-text("${HOSTILE}")`, { state: 'detached' })
  })

  it('makes a token in the page, shows it once, and whoever has it is let in', async ({ page, rig }) => {
    await rig.open(page, '#/access/tokens')
    await rig.signIn(page)
    await submit(page, 'Make a token', 'Make', { user: 'alice', name: 'a test', expires_in_s: '3600' })
    const token = (await page.textContent('.token code')) ?? ''
    expect(token).toMatch(/^cnb_[\w-]{43}$/)
    await page.waitForSelector('td:has-text("a test")')
    await page.click('text=I have stored it')
    await page.waitForSelector('.token', { state: 'detached' })
    expect(await page.content()).not.toContain(token)

    const other = await rig.tab()
    await rig.open(other, '#/channels')
    await other.click('text=Use a token')
    await other.fill('[name=token]', token)
    await other.click('button.first')
    await other.waitForSelector('h1:text-is("Channels")')
    await other.close()
  })

  it('shows a token too whose result had to be asked for again', async ({ rig }) => {
    const page = await rig.tab()
    // As often as the page asks by itself.
    let cuts = 5
    await page.routeWebSocket(/monitor/, (socket) => {
      const server = socket.connectToServer()
      server.onMessage((message) => socket.send(message))
      socket.onMessage((message) => {
        if (cuts === 0 || !String(message).includes('token.add')) server.send(message)
        else void socket.close().then(() => cuts--)
      })
    })
    await rig.open(page, '#/access/tokens')
    await rig.signIn(page)
    await page.waitForSelector('td:has-text("a test")')
    await submit(page, 'Make a token', 'Make', { user: 'alice', name: 'late' })
    await page.click('button:text-is("Ask again")')
    await page.waitForSelector('.token code')
    await page.waitForSelector('td:has-text("late")')
    await page.close()
  })

  it('says why no token can be made, and makes the next one', async ({ page, rig }) => {
    await rig.open(page, '#/access/tokens')
    await rig.signIn(page)
    await page.waitForSelector('td:has-text("a test")')
    await page.evaluate(() => {
      const { digest } = crypto.subtle
      crypto.subtle.digest = () => {
        crypto.subtle.digest = digest
        return Promise.reject(new Error('no part of the page is there any more'))
      }
    })
    await submit(page, 'Make a token', 'Make', { user: 'alice' })
    await page.waitForSelector('.problem:has-text("no part of the page is there any more")')
    await submit(page, 'Make a token', 'Make', { user: 'alice' })
    await page.waitForSelector('.token code')
  })

  it('explains who may do what, and by which rule', async ({ page, rig }) => {
    await rig.open(page, '#/access/roles')
    await rig.signIn(page)
    const fold = page.locator('details:has(summary:text-is("Deny something"))')
    await fold.locator('summary').click()
    await fold.locator('[name=command]').selectOption('COLLECT')
    expect(await submit(page, 'Deny something', 'Deny', { role: 'night', object: 'gmetric.*' })).toContain(
      'COLLECT gmetric.*',
    )
    await page.waitForSelector('td:has-text("night")')
    await page.click('a:text-is("Explain")')
    await page.fill('[name=user]', 'alice')
    await page.selectOption('[name=command]', 'EXECUTE')
    await page.fill('[name=object]', 'user.add')
    await page.click('button:text-is("Explain")')
    await page.waitForSelector('.verdict:has-text("Not allowed")')
  })

  it('shows the audit log by filters, and verifies it', async ({ page, rig }) => {
    await rig.open(page, '#/audit?object=user.add')
    await rig.signIn(page)
    await page.waitForSelector('text=/records 1 to \\d+ are unbroken/')
    await page.waitForSelector('td:has-text("user.add")')
    expect(await page.locator('td:has-text("token.add")').count()).toBe(0)
    expect(await page.content()).not.toContain(PASSWORD)
    await page.fill('[name=object]', '')
    await page.fill('[name=action]', 'execute')
    await page.waitForSelector('td:has-text("token.add")')
    expect(page.url()).toContain('action=execute')
    await page.fill('[name=actor]', 'nobody')
    await page.waitForSelector('text=No record matches.')
    await page.fill('[name=actor]', 'admin')
    await page.selectOption('[name=since]', '1h')
    await page.waitForSelector('td:has-text("token.add")')
  })

  it('shows the newest 100 records of the audit log, and more of them on demand', async ({ page, rig }) => {
    const url = `tcp://127.0.0.1:${rig.server.tcpPort}`
    const admin = await connect(url, { identity: 'admin', password: ADMIN_PASSWORD }, { name: 'many' })
    for (let count = 0; count < 60; count++) await admin.execute('user.role', { user: 'alice', role: 'consumer' })
    await admin.close()
    await rig.open(page, '#/audit?object=user.role')
    await rig.signIn(page)
    await page.waitForSelector('text=/; the newest 100 are shown/')
    expect(await page.locator('.audit tbody tr').count()).toBe(100)
    await page.click('button:has-text("more")')
    await page.waitForSelector('.audit tbody tr:nth-child(101)')
    expect(await page.locator('button:has-text("more")').count()).toBe(0)
  })

  it('shows a user of the role consumer no such view, and the server refuses what its URL asks for', async ({
    page,
    rig,
  }) => {
    await rig.open(page)
    await rig.signIn(page, PASSWORD, 'alice')
    await page.waitForSelector('.rail a:text-is("Controls")')
    await page.waitForSelector('.tiles')
    expect(await page.locator('.rail a:text-is("Access"), .rail a:text-is("Audit")').count()).toBe(0)
    for (const what of ['users', 'tenants', 'tokens']) {
      await rig.open(page, `#/access/${what}`)
      await page.waitForSelector(`text=Your role may not read the ${what}.`)
      expect(await page.locator('main :is(details, td)').count()).toBe(0)
    }
    await rig.open(page, '#/access/roles')
    await page.waitForSelector('text=Your role may not read the rules.')
    await rig.open(page, '#/access/explain')
    await page.waitForSelector('text=Your role may not ask')
    await rig.open(page, '#/audit')
    await page.waitForSelector('text=Your role may not read the audit log.')
    expect(await page.locator('main td').count()).toBe(0)
  })
})
