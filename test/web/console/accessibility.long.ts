/** Each view, in both themes and on a phone: axe-core finds nothing, and nothing is wider than the screen. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { connect } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ConsoleRig, consoleTests, howTo, missing } from './rig.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** 240 bytes without a place where a line may be broken, and one that is written from right to left. */
const LONG = 'x'.repeat(240)
const RIGHT_TO_LEFT = 'شبكة'

/** By the URL: what is to be seen before the view is judged, and what is pressed before. */
const VIEWS: readonly (readonly [url: string, shown: string, pressed?: string])[] = [
  ['#/overview', '.tiles strong'],
  ['#/alerts', 'article'],
  ['#/alerts', '.alert-details .chart canvas', 'article a:text-is("Details")'],
  ['#/alerts', 'dialog[open] textarea', 'article button:text-is("Silence")'],
  ['#/alerts/history', '.past-alerts .state-line'],
  ['#/alerts/rules', '.rules td'],
  ['#/alerts/silences', 'td.does button'],
  ['#/alerts/silences?show=ended', '.empty'],
  ['#/alerts/notifications', 'section[aria-label="Notifiers"] .state'],
  ['#/hosts', 'main table td'],
  ['#/metrics', 'main table td'],
  ['#/metrics/gmetric.live', '.chart canvas'],
  ['#/metrics/gmetric.live?.range=7d', 'form.between input', 'button:text-is("from … to")'],
  ['#/metrics/gmetric.live?.range=1h&.at=2020-01-01T00:00:00Z', '.empty:has-text("The history has no value")'],
  ['#/metrics/producer.stats', 'h1'],
  ['#/metrics/host.os?host=n1', '.texts td'],
  ['#/hosts/n1', '.chart canvas'],
  ['#/board?name=', 'nav a:has-text("This server")'],
  ['#/board?board=1', 'nav a[aria-current]:has-text("kept")'],
  ['#/board?chart=gmetric.live&chart=host.load.one,host.mem.free&name=ops', '.chart canvas'],
  ['#/query', '.cm-content'],
  ['#/query?expr=gmetric_live&show=chart&expr=1%2B1&show=table&expr=sum(x%5B5m%5D)&show=table', '.cm-wrong'],
  ['#/query?expr=sum+by+(host)+(gmetric_live%7Bhost%3D~%22.*%22%7D)+%23+x&show=chart', '.legend b'],
  [`#/query?expr=label_replace(vector(1),%22l%22,%22${LONG}%22,%22%22,%22%22)&show=table`, 'td.number'],
  ['#/board?chart=%3Dvector(1)', '.chart canvas'],
  ['#/sources', '.counters dd'],
  ['#/channels', 'main table td'],
  ['#/channels/reports', '.facts td'],
  ['#/controls', 'main table td'],
  ['#/controls/channel.purge', 'form input'],
  ['#/controls/approvals', '.empty'],
  ['#/access/users', 'main tbody td'],
  ['#/access/tenants', 'main tbody td'],
  ['#/access/roles', 'summary'],
  ['#/access/tokens', 'summary'],
  ['#/access/explain', 'form input'],
  ['#/audit', '.audit td.whole'],
]

/** What is used of the results of axe-core. */
interface Found {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

const rules = join(mkdtempSync(join(tmpdir(), 'cinnabar-rules-')), 'always.yml')
writeFileSync(
  rules,
  JSON.stringify({
    groups: [
      {
        name: LONG,
        interval: '1s',
        rules: [
          {
            alert: 'Always',
            expr: 'vector(1) > 0',
            labels: { long: LONG, severity: 'critical' },
            annotations: { summary: LONG },
          },
          {
            alert: RIGHT_TO_LEFT,
            expr: 'vector(1) > 0',
            annotations: { summary: `${RIGHT_TO_LEFT} https://a.example/${LONG}` },
          },
          { alert: 'Fails', expr: 'label_replace(vector(1), "a", "b", "c", "(")', for: '1h' },
        ],
      },
    ],
  }),
)

const it = consoleTests(`[history]
keep = "30d"
[alerts]
builtin = false
rules = ["${rules}"]
[[notify]]
name = "away"
url = "webhook+http://127.0.0.1:9/"
group_wait = "0s"
`)

// A browser is not everywhere.
describe.skipIf(missing)(`every view${howTo}`, () => {
  /** A channel in which something waits, and metrics with names that are hard to show. */
  async function prepare(rig: ConsoleRig): Promise<void> {
    const url = `tcp://127.0.0.1:${rig.server.tcpPort}`
    const one = await connect(url, { identity: 'admin', password: PASSWORD }, { name: 'reports' })
    await one.follow('gmetric.*', {}, () => {})
    await one.execute('alert.silence', { matchers: `alertname="${RIGHT_TO_LEFT}"`, seconds: 3_600n, comment: LONG })
    await one.execute('board.save', { name: `kept ${LONG}`.slice(0, 80), charts: 'chart=gmetric.live', shared: true })
    await one.close()
    for (const name of ['live', LONG, RIGHT_TO_LEFT]) await rig.push(name, 1)
  }

  /** What axe-core finds, as `rule: element`. */
  async function violations(page: Page): Promise<readonly string[]> {
    // The policy of the page forbids scripts from elsewhere; a function of the debugger is not subject to it.
    await page.evaluate(AXE)
    const found: Found = await page.evaluate('axe.run()')
    return found.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
  }

  it.for([
    ['light', { dark: false }],
    ['dark', { dark: true }],
    ['on a phone', { width: 360, height: 740 }],
  ] as const)('%s', { timeout: 120_000 }, async ([, looks], { rig }) => {
    await prepare(rig)
    const page = await rig.tab(looks)
    await rig.open(page)
    await page.waitForSelector('[name=identity]')
    expect(await violations(page)).toEqual([])
    await rig.signIn(page)
    for (const [url, shown, pressed] of VIEWS) {
      await page.waitForSelector('.frame')
      await page.evaluate(`location.hash = '${url}'`)
      if (pressed !== undefined) await page.click(pressed)
      await page.locator(shown).first().waitFor()
      expect({ url, violations: await violations(page) }).toEqual({ url, violations: [] })
      const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      expect({ url, tooWide }).toEqual({ url, tooWide: 0 })
    }
    await page.close()
  })
})
