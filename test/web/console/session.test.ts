/** Signing in and out, what the page may load, and a server that goes away. */
import { createHash, randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import { connect, type PlainRecord } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { consoleTests, ELSEWHERE, howTo, missing } from './rig.ts'

const HOSTILE = '<img src=x onerror="document.title=1">'

const it = consoleTests()

// A browser is not everywhere.
describe.skipIf(missing)(`the console${howTo}`, () => {
  it('refuses a wrong password with the reason, and shows the view that the URL asked for after the right one', async ({
    page,
    rig,
  }) => {
    await rig.open(page, '#/channels')
    await rig.signIn(page, 'a wrong password')
    await page.waitForSelector('text=The user or the secret is wrong.')
    await rig.signIn(page)
    await page.waitForSelector('h1:text-is("Channels")')
  })

  it('says what is needed where a browser gives the page no cryptography', async ({ page, rig }) => {
    await rig.open(page, '', ELSEWHERE)
    await page.waitForSelector('text=Sign-in needs https here')
    expect(await page.locator('form').count()).toBe(0)
  })

  it('takes a token, and comes back with the reason when it is revoked', async ({ page, rig }) => {
    const admin = await connect(`tcp://127.0.0.1:${rig.server.tcpPort}`, { identity: 'admin', password: PASSWORD })
    await admin.execute('user.add', { user: 'guest', password: PASSWORD })
    const token = `cnb_${randomBytes(32).toString('base64url')}`
    const hash = createHash('sha256').update(token).digest('hex')
    const added = await admin.execute('token.add', { user: 'guest', hash })
    await rig.open(page)
    await page.click('text=Use a token')
    await page.fill('[name=token]', token)
    await page.click('button.first')
    await page.waitForSelector('.who:has-text("guest")')
    await admin.execute('token.revoke', { token: (added.plain as PlainRecord)['value'] as number })
    await page.waitForSelector('.problem:has-text("revoked")')
    await admin.close()
  })

  it('takes a token whose scope does not say whose it is', async ({ page, rig }) => {
    const admin = await connect(`tcp://127.0.0.1:${rig.server.tcpPort}`, { identity: 'admin', password: PASSWORD })
    const token = `cnb_${randomBytes(32).toString('base64url')}`
    const hash = createHash('sha256').update(token).digest('hex')
    await admin.execute('token.add', { user: 'guest', hash, scope: 'COLLECT host.*' })
    await admin.close()
    await rig.open(page)
    await page.click('text=Use a token')
    await page.fill('[name=token]', token)
    await page.click('button.first')
    await page.waitForSelector('.who:has-text("token")')
  })

  it('opens a board by a link, without a sign-in, and keeps nothing of it', async ({ page, rig }) => {
    await rig.report('web1', 'shared', 7)
    await rig.report('web1', 'hidden', 8)
    await rig.open(page, '#/board?name=ours&chart=gmetric.shared')
    await rig.signIn(page)
    await page.click('button:text-is("Share")')
    await page.click('button:text-is("Make the link")')
    const link = (await page.textContent('dialog.share code')) ?? ''
    const token = new URLSearchParams(link.split('?')[1]).get('token') ?? ''
    expect(token).toMatch(/^cnb_/)
    await page.click('dialog.share >> text=Access, Tokens')
    await page.waitForSelector('tr:has-text("board ours"):has-text("WATCH gmetric.shared")')

    const guest = await rig.tab()
    const urls: string[] = []
    guest.on('request', (request) => urls.push(`${request.url()} ${JSON.stringify(request.headers())}`))
    await guest.goto(link)
    await guest.waitForSelector('.legend b:text-is("7")')
    expect(await guest.title()).toBe('ours · Cinnabar')
    expect(await guest.locator('nav, a, form, [name=password]').count()).toBe(0)
    expect(await guest.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie])).toEqual([
      0,
      0,
      '',
    ])
    expect(urls.filter((url) => url.includes(token))).toEqual([])
    expect(rig.server.errors).not.toContain(token)
    // Another chart in the address is not for this token.
    await guest.goto(link.replace('gmetric.shared', 'gmetric.hidden'))
    await guest.waitForSelector('.chart-card [role=alert]')
    expect(await guest.locator('.legend').count()).toBe(0)

    const admin = await connect(`tcp://127.0.0.1:${rig.server.tcpPort}`, { identity: 'admin', password: PASSWORD })
    const { value } = (await admin.execute('token.list', {})).plain as PlainRecord
    const made = (value as readonly PlainRecord[]).find(({ name }) => name === 'board ours')
    await admin.execute('token.revoke', { token: made?.['token'] as number })
    await admin.close()
    await guest.waitForSelector('.banner[role=alert]')
    await guest.goto('about:blank')
    await guest.goto(link)
    await guest.waitForSelector('text=The link has expired, or was revoked')
    await guest.close()
  })

  it('has nothing from elsewhere, and nothing inline', async ({ page, rig }) => {
    const hosts = new Set<string>()
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    const response = await rig.open(page)
    expect(response?.headers()['content-security-policy']).not.toContain('unsafe')
    await rig.signIn(page)
    await page.waitForSelector('.tiles')
    expect([...hosts]).toEqual([`127.0.0.1:${rig.server.httpPort}`])
  })

  it('says in words what is refused, and that an address shows nothing', async ({ page, rig }) => {
    await rig.open(page, '#/metrics/no.metric')
    await rig.signIn(page)
    await page.waitForSelector('[role=alert]:text-is("There is no such metric, or you may not read it.")')
    await rig.open(page, '#/access/nonsense')
    await page.waitForSelector('h1:text-is("No such page")')
    expect(await page.title()).toBe('No such page · Cinnabar')
    await rig.open(page, '#/access/roles')
    await page.waitForSelector('[aria-current=page]:text-is("Roles")')
    expect(await page.title()).toBe('Roles · Cinnabar')
  })

  it('shows hostile names as text', async ({ page, rig }) => {
    await rig.push(HOSTILE, 1)
    await rig.open(page, `#/metrics?match=${encodeURIComponent('img')}`)
    await rig.signIn(page)
    await page.waitForSelector('td a')
    expect(await page.locator('td a').first().textContent()).toContain('<img src=x')
    expect(await page.locator('td img').count()).toBe(0)
    expect(await page.title()).toBe('Metrics · Cinnabar')
  })

  it('comes back by itself after the server was killed', { timeout: 120_000 }, async ({ page, rig }) => {
    await rig.open(page)
    await rig.signIn(page)
    await page.waitForSelector('.tiles strong')
    await rig.server.end('SIGKILL')
    await page.waitForSelector('.banner')
    await rig.server.start()
    await page.waitForSelector('.banner', { state: 'detached' })
    const url = `tcp://127.0.0.1:${rig.server.tcpPort}`
    const late = await connect(url, { identity: 'admin', password: PASSWORD }, { name: 'after-the-restart' })
    await page.waitForSelector('.name:has-text("after-the-restart")')
    await late.close()
  })

  it('signs out, and knows nothing any more', async ({ page, rig }) => {
    await rig.open(page)
    await rig.signIn(page)
    await page.click('text=Sign out')
    await page.waitForSelector('[name=password]')
    expect(await page.inputValue('[name=password]')).toBe('')
  })
})
