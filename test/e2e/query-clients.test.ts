/** What people have ask this server in the language of Prometheus, and get what it answers itself. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { PrometheusDriver } from 'prometheus-query'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Child } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { hasPrometheus, RealPrometheus } from '../support/real-prometheus.ts'
import { RememberingServer } from '../support/remembering-server.ts'

const INTERVAL = 15
const SAMPLES = 240
/** A whole minute, an hour ago. */
const START = Math.floor(Date.now() / 60_000) * 60 - INTERVAL * SAMPLES
const END = START + INTERVAL * (SAMPLES - 1)

/** Counters that start again, far from zero, to which older versions extrapolate otherwise; and a series that ends. */
function dump(): string {
  const times = Array.from({ length: SAMPLES }, (_, at) => START + at * INTERVAL)
  const counters = ['a', 'b', 'c'].flatMap((job, index) =>
    times.map((time, at) => `asked_requests_total{job="${job}"} ${(1000 + (at % 100)) * (index + 1)} ${time}`),
  )
  const ended = times.slice(0, 100).map((time, at) => `asked_ended ${at === 99 ? 'NaN' : at} ${time}`)
  return ['# TYPE asked_requests counter', ...counters, '# TYPE asked_ended gauge', ...ended, '# EOF', ''].join('\n')
}

let server: RememberingServer
beforeAll(async () => {
  server = await RememberingServer.start(dump())
}, 120_000)
afterAll(() => server.remove())

/** Off the samples: older versions of Prometheus close ranges on the left. */
const RANGE = { start: String(START + 7), end: String(END + 7), step: '60' }
const EXPRESSIONS = [
  'asked_requests_total',
  'sum by (job) (rate(asked_requests_total[5m]))',
  'asked_requests_total{job!="a",job=~"a|b"}',
  'asked_requests_total{job!~"b|c"} offset 5m',
  'max_over_time(asked_ended[10m])',
]

/** Sums are added up in another order elsewhere. */
function rounded(data: unknown): unknown[] {
  const { result } = data as { result: { metric: object; values: [time: number, value: string][] }[] }
  return result.map(({ metric, values }) => ({
    metric,
    values: values.map(([time, value]) => [time, Number(value).toPrecision(9)]),
  }))
}

// Prometheus is not everywhere.
describe.skipIf(!hasPrometheus)('prometheus with remote_read (apt install prometheus)', () => {
  let prometheus: RealPrometheus
  beforeAll(async () => {
    const token = join(server.process.directory, 'token')
    writeFileSync(token, server.token, { mode: 0o600 })
    const url = `${server.url}/api/v1/read`
    prometheus = await RealPrometheus.start({
      remote_read: [{ url, read_recent: true, authorization: { credentials_file: token } }],
    })
  }, 60_000)
  afterAll(() => prometheus?.stop())

  it.each(EXPRESSIONS)('evaluates over what it has read: %s', async (query) => {
    const answer = await fetch(`${prometheus.url}/api/v1/query_range?${new URLSearchParams({ query, ...RANGE })}`)
    const { data, warnings } = (await answer.json()) as { data: { result: unknown[] }; warnings?: unknown }
    expect(warnings).toBeUndefined()
    expect(data.result.length).toBeGreaterThan(0)
    expect(rounded(data)).toEqual(rounded(await server.data('query_range', { query, ...RANGE })))
  })

  it('is told what is wrong', async () => {
    const query = `{job=~"${'(a|b)+'.repeat(2_000)}"}`
    const answer = await fetch(`${prometheus.url}/api/v1/query`, {
      method: 'POST',
      body: new URLSearchParams({ query }),
    })
    expect(await answer.json()).toMatchObject({ warnings: [expect.stringContaining('at most 5000 are allowed')] })
  })
})

// vmalert is not everywhere.
describe.skipIf(spawnSync('which', ['vmalert']).status !== 0)('vmalert (apt install victoria-metrics)', () => {
  const RULES = {
    groups: [
      {
        name: 'asked',
        interval: '1s',
        rules: [
          {
            alert: 'MuchAsked',
            expr: 'sum by (job) (asked_requests_total) > 2000',
            labels: { severity: 'page' },
            annotations: { summary: '{{ $labels.job }}' },
          },
        ],
      },
    ],
  }
  /** What comes to the Alertmanager. */
  let received: { labels: Record<string, string>; annotations: Record<string, string> }[] = []
  let alertmanager: Server
  let vmalert: Child | undefined
  beforeAll(async () => {
    alertmanager = createServer(async (request, response) => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece)
      received.push(...(JSON.parse(Buffer.concat(pieces).toString()) as typeof received))
      response.end()
    }).listen(0, '127.0.0.1')
    await once(alertmanager, 'listening')
  })
  afterAll(async () => {
    await vmalert?.end('SIGKILL')
    alertmanager.closeAllConnections()
    alertmanager.close()
  })

  it('evaluates its rules here', { timeout: 60_000 }, async () => {
    const { directory } = server.process
    // JSON is YAML, too.
    writeFileSync(join(directory, 'rules.yml'), JSON.stringify(RULES))
    writeFileSync(join(directory, 'vmalert-token'), server.token, { mode: 0o600 })
    const { port } = alertmanager.address() as AddressInfo
    vmalert = new Child(
      'vmalert',
      [
        '-rule=rules.yml',
        `-datasource.url=${server.url}`,
        '-datasource.bearerTokenFile=vmalert-token',
        `-notifier.url=http://127.0.0.1:${port}`,
        `-httpListenAddr=127.0.0.1:${await freePort()}`,
      ],
      { cwd: directory },
    )
    await eventually(() => {
      expect(vmalert?.errors).not.toContain('failed')
      const jobs = received.map(({ labels, annotations }) => [
        labels['job'],
        labels['severity'],
        annotations['summary'],
      ])
      expect([...new Set(jobs.map((job) => job.join(' ')))].sort()).toEqual(['b page b', 'c page c'])
    })
    received = []
  })
})

describe('prometheus-query', () => {
  it('asks for values, ranges and series', async () => {
    const driver = new PrometheusDriver({ endpoint: server.url, headers: { authorization: server.authorization } })
    const now = await driver.instantQuery('asked_requests_total{job="a"}', END * 1_000)
    expect(now.resultType).toBe('vector')
    expect(
      now.result.map(({ metric, value }) => [metric.name, metric.labels, value.time.getTime(), value.value]),
    ).toEqual([['asked_requests_total', { job: 'a' }, END * 1_000, 1_039]])
    const range = await driver.rangeQuery('sum(asked_requests_total)', START * 1_000, (START + 60) * 1_000, 30)
    expect(range.result.map(({ values }) => values.map(({ value }: { value: number }) => value))).toEqual([
      [6_000, 6_012, 6_024],
    ])
    const found = await driver.series('asked_ended', START * 1_000, END * 1_000)
    expect(found.map(({ name, labels }) => [name, labels])).toEqual([['asked_ended', {}]])
    expect(await driver.labelNames()).toEqual(['__name__', 'job'])
    expect(await driver.labelValues('job')).toEqual(['a', 'b', 'c'])
    await expect(driver.instantQuery('sum(')).rejects.toMatchObject({
      httpStatus: 400,
      prometheus: { errorType: 'bad_data', error: expect.stringContaining('1:5: parse error') },
    })
  })
})
