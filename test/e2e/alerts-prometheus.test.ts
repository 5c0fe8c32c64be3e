/**
 * Debian's Prometheus and a server evaluate the same rule file over the same target: `/api/v1/alerts` of both has the same alerts, with
 * the same labels, annotations, states and values, and `/api/v1/rules` the same rules. The server has one
 * alert more, which says that the rule `Same` fails, as it does on purpose.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { tokenFor } from '../support/publisher.ts'
import { hasPrometheus, RealPrometheus } from '../support/real-prometheus.ts'
import type { Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const RULES = `groups:
  - name: pools
    interval: 1s
    rules:
      - record: pool:used:ratio
        expr: sum by (pool) (used) / sum by (pool) (size)
      - alert: Full
        expr: pool:used:ratio > 0.8
        for: 3s
        labels: { severity: '{{ if gt $value 0.9 }}page{{ else }}ticket{{ end }}' }
        annotations:
          summary: '{{ $labels.pool }} is at {{ $value | humanizePercentage }} of {{ with query "sum(size)" }}{{ . | first | value }}{{ end }}'
      - alert: Filling
        expr: pool:used:ratio > 0.5
        for: 1h
        labels: { severity: info }
      - alert: Lingers
        expr: used{pool="c"} == 1
        keep_firing_for: 1h
      - alert: Same
        expr: used
        labels: { pool: one, disk: one }
      - alert: Gone
        expr: absent(used{pool="d"})
  - name: of alerts
    interval: 1s
    rules:
      - alert: Many
        expr: count by (alertname) (ALERTS{alertname!~"Many|CinnabarRuleFails"}) > 1
`
/** The alert of a rule that fails, which Prometheus does not have. */
const OF_FAILING_RULES = 'CinnabarRuleFails'

const FULL = { 'a",disk="1': 95, 'a",disk="2': 96, 'b",disk="1': 70, 'c",disk="1': 1 }
const EMPTIER = { 'a",disk="1': 40, 'a",disk="2': 41, 'b",disk="1': 85, 'd",disk="1': 5 }

let used: Readonly<Record<string, number>> = FULL
let target: Server | undefined
let peer: RealPrometheus | undefined
let server: ServerProcess | undefined
afterEach(async () => {
  await peer?.stop()
  await server?.end('SIGKILL')
  await server?.remove()
  target?.close()
})

async function dataOf(url: string, path: string, token = ''): Promise<Json> {
  const answer = await fetch(`${url}/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } })
  return ((await answer.json()) as Json).data
}

/** When it began differs by less than an interval. */
const comparable = ({ labels, annotations, state, value, keepFiringSince }: Json): string =>
  JSON.stringify([Object.entries(labels).sort(), annotations, state, value, keepFiringSince !== undefined])
const comparableRule = ({ name, query, duration, keepFiringFor, labels, annotations, health, type, state }: Json) =>
  JSON.stringify([
    name,
    query,
    duration,
    keepFiringFor,
    Object.entries(labels ?? {}).sort(),
    annotations,
    health,
    type,
    state,
  ])

// Debian's Prometheus may be missing.
it.skipIf(!hasPrometheus)('both have the same alerts at each stage (apt-get install prometheus)', async () => {
  target = createServer((_request, response) => {
    const lines = Object.entries(used).map(
      ([pool, value]) => `used{pool="${pool}"} ${value}\nsize{pool="${pool}"} 100\n`,
    )
    response.setHeader('content-type', 'text/plain; version=0.0.4')
    response.end(lines.join(''))
  }).listen(0, '127.0.0.1')
  await once(target, 'listening')
  const { port } = target.address() as AddressInfo
  const scraping = `[[scrape]]\nname = "pools"\nurl = "http://127.0.0.1:${port}/metrics"\ninterval = "1s"\n`
  const own = new ServerProcess(
    `${scraping}[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n[history]\nresolution = "0"\n`,
  )
  server = own
  const file = join(own.directory, 'a.rules.yml')
  writeFileSync(file, RULES)
  await own.start()
  const token = await tokenFor(await own.seat(), 'admin', '')
  const url = `http://127.0.0.1:${own.httpPort}`
  const theirs = await RealPrometheus.start({
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    rule_files: [file],
    scrape_configs: [{ job_name: 'pools', static_configs: [{ targets: [`127.0.0.1:${port}`] }] }],
  })
  peer = theirs
  const same = async (...wanted: readonly string[]): Promise<void> => {
    await eventually(async () => {
      const [their, our] = await Promise.all([dataOf(theirs.url, 'alerts'), dataOf(url, 'alerts', token)])
      const isOfFailingRule = ({ labels }: Json): boolean => labels.alertname === OF_FAILING_RULES
      const failing = our.alerts.filter(isOfFailingRule)
      expect(failing.map(({ labels, state }: Json) => ({ ...labels, state }))).toEqual([
        {
          ...{ alertname: OF_FAILING_RULES, file: 'a.rules.yml', group: 'pools', rule: 'Same', severity: 'warning' },
          state: 'pending',
        },
      ])
      const ofRules = our.alerts.filter((alert: Json) => !isOfFailingRule(alert))
      expect(ofRules.map(comparable).sort()).toEqual(their.alerts.map(comparable).sort())
      const states = ofRules.map(({ labels: { alertname, pool = '' }, state }: Json) => `${alertname} ${pool} ${state}`)
      expect(states.sort()).toEqual([...wanted].sort())
    })
    await eventually(async () => {
      const [their, our] = await Promise.all([dataOf(theirs.url, 'rules'), dataOf(url, 'rules', token)])
      const [theirRules, ourRules] = [their, our].map(({ groups }) => groups.flatMap(({ rules }: Json) => rules))
      const isOfFailingRules = ({ name }: Json): boolean => name === OF_FAILING_RULES
      expect(ourRules.filter(isOfFailingRules)).toMatchObject([{ health: 'ok', type: 'alerting', state: 'pending' }])
      const inFile = ourRules.filter((rule: Json) => !isOfFailingRules(rule))
      expect(inFile.map(comparableRule).sort()).toEqual(theirRules.map(comparableRule).sort())
    })
  }
  await same(
    'Full a firing',
    'Filling a pending',
    'Filling b pending',
    'Lingers c firing',
    'Gone d firing',
    'Many  firing',
  )
  used = EMPTIER
  await same('Full b firing', 'Filling b pending', 'Lingers c firing')
})
