/** The alerting rules and the dashboard: promtool judges the rules, and what both name is in what a server shows. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { nodeExposition } from '../../server/cluster/own-figures.ts'
import { command } from '../support/bytes.ts'
import { PublishingProducer, tokenFor } from '../support/publisher.ts'
import { NO_TRAFFIC, TestCluster } from '../support/test-cluster.ts'

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const shipped = (name: string): string => fileURLToPath(new URL(`../../packaging/prometheus/${name}`, import.meta.url))
const ALERTS = shipped('alerts.yml')
const DASHBOARD = shipped('dashboard.json')

/** Names in an expression that the server would have to show; metrics of hosts are those of their senders. */
function namesIn(expression: string): string[] {
  return expression.match(/\b(?:producer|ganglia|cinnabar)_[a-z_]+\b/g) ?? []
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

describe('the rules and the dashboard', () => {
  it('name only what a server shows', async () => {
    const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: readonly Panel[] }
    const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    expressions.push(...(readFileSync(ALERTS, 'utf8').match(/^ *expr: .*$/gm) ?? []))
    const named = new Set(expressions.flatMap(namesIn))
    expect(named.size).toBeGreaterThan(12)

    const server = await PublishingProducer.start()
    const id = await server.root.collect('test.a')
    await server.root.ok((seq) => command.subscribe(seq, id))
    server.producer.push.push('test.a', { type: BasicType.DOUBLE, value: 1 }, 1)
    const token = await tokenFor(server.root, 'root', 'COLLECT *')
    const answer = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    const shown = new Set((await answer.text()).match(/^[a-z_]+(?=[{ ])/gm))
    await server.stop()
    const cluster = new TestCluster().state()
    const refused = { refusedRequests: 0, refusedConnections: 0 }
    const figures = { cpuSeconds: 1, residentBytes: 1, ...refused, traffic: NO_TRAFFIC }
    const node = [...nodeExposition(cluster, figures, { wallMs: 0, uptimeMs: 0 }).text()].join('')
    for (const name of node.match(/^[a-z_]+(?=[{ ])/gm) ?? []) shown.add(name)
    // Those of hosts: test/server/wings/gmetric has them.
    const ofHosts = ['ganglia_host_up', 'ganglia_host_late', 'cinnabar_last_heard_seconds']
    expect([...named].filter((name) => !shown.has(name) && !ofHosts.includes(name))).toEqual([])
  })
})

// promtool comes with Debian's package prometheus.
describe.skipIf(!hasPromtool)('promtool (apt install prometheus)', () => {
  it('fires each alert when it should, and only then', () => {
    const directory = mkdtempSync(join(tmpdir(), 'cinnabar-rules-'))
    const series = (name: string, values: string): object => ({ series: name, values })
    const alert = (alertname: string, labels: object | undefined, eval_time = '20m'): object => {
      const exp_alerts = labels === undefined ? [] : [{ exp_labels: labels }]
      return { eval_time, alertname, exp_alerts }
    }
    const critical = { severity: 'critical', job: 'cinnabar', instance: 'a' }
    const warning = { severity: 'warning', instance: 'a' }
    const channel = '{instance="a",channel="7",identity="app",name="n"'
    const tests = {
      rule_files: [ALERTS],
      tests: [
        {
          interval: '1m',
          input_series: [
            series('up{job="cinnabar",instance="a"}', '0x20'),
            series('producer_stats_storage_ok{job="cinnabar",instance="a"}', '0x20'),
            series('producer_stats_disk_free_bytes{instance="a"}', '9x20'),
            series('producer_stats_disk_size_bytes{instance="a"}', '100x20'),
            series('ganglia_host_up{instance="a",host="web1"}', '0x20'),
            series(`producer_channels_lag_seconds${channel}}`, '301x20'),
            series(`producer_channels_dropped_total${channel},cause="overflow"}`, '0+1x20'),
            series(`producer_channels_dropped_total${channel},cause="purged"}`, '0+1x20'),
            series('producer_sensors_failed{instance="a",sensor="qmf"}', '1x20'),
            series('cinnabar_cluster_leader{job="nodes",instance="n1"}', '1x4 0x16'),
            series('cinnabar_cluster_leader{job="nodes",instance="n2"}', '0x20'),
            series('cinnabar_cluster_able{job="nodes",instance="n1"}', '1x20'),
            series('cinnabar_cluster_able{job="nodes",instance="n2"}', '0x20'),
            series('cinnabar_cluster_lag_seconds{job="nodes",instance="n1"}', '0x20'),
          ],
          alert_rule_test: [
            alert('CinnabarDown', critical),
            alert('CinnabarStoresNothing', critical),
            alert('CinnabarDiskFills', warning),
            alert('CinnabarDiskFills', undefined, '9m'),
            alert('CinnabarHostSilent', { ...warning, host: 'web1' }),
            alert('CinnabarChannelLags', { ...warning, channel: '7', identity: 'app', name: 'n' }),
            alert('CinnabarValuesLost', { ...warning, channel: '7', identity: 'app', name: 'n', cause: 'overflow' }),
            alert('CinnabarSensorFailed', { ...warning, sensor: 'qmf' }),
            alert('CinnabarClusterWithoutLeader', undefined, '4m'),
            alert('CinnabarClusterWithoutLeader', { severity: 'critical', job: 'nodes' }),
            alert('CinnabarNodeCannotLead', { severity: 'warning', job: 'nodes', instance: 'n2' }),
          ],
        },
      ],
    }
    // Annotations are for people; labels say which alert it is. JSON is YAML.
    const rules = readFileSync(ALERTS, 'utf8').replace(/^ *annotations:\n.*\n/gm, '')
    writeFileSync(join(directory, 'alerts.yml'), rules)
    writeFileSync(join(directory, 'test.yml'), JSON.stringify({ ...tests, rule_files: ['alerts.yml'] }))
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'test.yml'], {
      cwd: directory,
      encoding: 'utf8',
    })
    rmSync(directory, { recursive: true })
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('SUCCESS')])
    expect(spawnSync('promtool', ['check', 'rules', ALERTS]).status).toBe(0)
  })
})
