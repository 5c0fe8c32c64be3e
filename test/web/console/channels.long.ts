/** Channels in the console: the ledger, why values wait, and what can be done with a channel. */
import { describe, expect } from 'vitest'
import { type Consumer, connect } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const VALUES = 7

const it = consoleTests()

// A browser is not everywhere.
describe.skipIf(missing)(`channels in the console${howTo}`, () => {
  const consumer = (rig: ConsoleRig, name: string): Promise<Consumer> =>
    connect(`tcp://127.0.0.1:${rig.server.tcpPort}`, { identity: 'admin', password: PASSWORD }, { name })

  /** A channel that nobody is connected to, and in which values wait. */
  async function waiting(rig: ConsoleRig, name: string): Promise<void> {
    const metric = `waiting_${name}`
    const one = await consumer(rig, name)
    await one.follow(`gmetric.${metric}`, {}, () => {})
    await one.close()
    for (let value = 1; value <= VALUES; value++) await rig.push(metric, value)
  }

  it('shows what waits and why, and leads to the channel', async ({ page, rig }) => {
    await waiting(rig, 'reports')
    await rig.open(page, '#/channels')
    await rig.signIn(page)
    const row = page.locator('tr', { hasText: 'reports' })
    await row.locator(`td.number:text-is("${VALUES}")`).waitFor()
    await row.locator('text=nobody is connected').waitFor()
    await row.locator('a').click()
    await page.waitForSelector('h1:has-text("reports")')
    await page.goBack()
    await page.waitForSelector('h1:text-is("Channels")')
  })

  it('asks in words before it purges, and what it says is what is lost', async ({ page, rig }) => {
    await waiting(rig, 'billing')
    await rig.open(page, '#/channels/billing')
    await rig.signIn(page)
    await page.locator(`.facts tr:has-text("Queued") >> text=/^${VALUES} /`).waitFor()
    await page.click('text=Purge')
    await page.waitForSelector(
      `text=Purge billing? ${VALUES} values that wait in it are lost, and its consumer is informed.`,
    )
    await page.click('dialog[open] >> text=Cancel')
    await page.click('text=Purge')
    await page.click('dialog[open] button.danger')
    await page.locator(`.facts tr:has-text("Dropped") >> text=/${VALUES}, purged ${VALUES}/`).waitFor()
    const one = await consumer(rig, 'billing')
    const { plain } = await one.query('producer.channels', { channel: 'billing' })
    await one.close()
    expect(plain).toMatchObject([{ queued: 0, dropped: { purged: VALUES } }])
  })

  it('stores the settings that were changed, and shows why others are refused', async ({ page, rig }) => {
    await waiting(rig, 'settings')
    await rig.open(page, '#/channels/settings')
    await rig.signIn(page)
    await page.click('text=Configure')
    await page.fill('#setting-max_bytes', '99999999999')
    await page.click('text=Store')
    await page.waitForSelector('dialog[open] .problem:has-text("max_bytes")')
    await page.fill('#setting-max_bytes', '1')
    await page.waitForSelector('dialog[open] :text("Values may be lost: there are")')
    await page.fill('#setting-max_bytes', '9000000')
    await page.waitForSelector('dialog[open] :text("Values may be lost")', { state: 'detached' })
    await page.selectOption('#setting-overflow', 'drop-newest')
    await page.click('text=Store')
    await page.waitForSelector('.facts >> text=8.58 MiB, then drop-newest')
  })

  it('deletes a channel, which is gone then', async ({ page, rig }) => {
    await waiting(rig, 'old')
    await rig.open(page, '#/channels/old')
    await rig.signIn(page)
    await page.click('text=Delete')
    await page.click('dialog[open] button.danger')
    await page.waitForSelector('text=There is no such channel')
  })

  it('filters', async ({ page, rig }) => {
    await rig.open(page, '#/channels?show=dropped')
    await rig.signIn(page)
    await page.waitForSelector('tr:has-text("billing")')
    expect(await page.locator('tr:has-text("reports")').count()).toBe(0)
  })
})
