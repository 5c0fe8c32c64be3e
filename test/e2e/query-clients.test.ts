/** What people have ask this server in the language of Prometheus, and get what it answers itself. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
    expect(await answer.json()).toMatchObject({ warnings: [expect.stringContaining('at most 10000 are allowed')] })
  })
})
