/** `cinnabar alerts` and `rules list`: what is asked of a server, and how its answer is printed. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCli } from '../fake-cli.ts'

let server: Server
let url: string
let asked: string[]
let answer: unknown
beforeEach(async () => {
  asked = []
  server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ status: 'success', data: answer }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => new Promise((resolve) => server.close(resolve)))

const run = (...words: string[]) => runCli(words, undefined, { env: { CINNABAR_URL: url, CINNABAR_TOKEN: 't0' } })
const listed = async (...words: string[]) => {
  const { out, code } = await run(...words)
  return { lines: out.join('\n'), code }
}

// As Prometheus 2.42 answers.
const alert = {
  labels: { alertname: 'Full', pool: 'a', severity: 'page' },
  annotations: { summary: 'a is at 95.5%' },
  state: 'firing',
  activeAt: '2026-11-30T02:23:40.881Z',
  value: '9.55e-01',
}
const rule = {
  name: 'Same',
  query: 'used',
  duration: 0,
  labels: {},
  annotations: {},
  alerts: [],
  health: 'err',
  lastError: 'vector contains metrics with the same labelset after applying alert labels',
  evaluationTime: 0.0021,
  lastEvaluation: '2026-11-30T02:23:40.881Z',
  type: 'alerting',
  state: 'inactive',
}

it('lists alerts with their states, labels and annotations', async () => {
  answer = { alerts: [alert] }
  const { lines, code } = await listed('alerts')
  expect([code, asked]).toEqual([0, ['/api/v1/alerts Bearer t0']])
  expect(lines).toMatch(/^STATE +FOR +ALERT +VALUE +LABELS +ANNOTATIONS/)
  expect(lines).toMatch(/firing +\S.* +Full +0\.955 +pool=a severity=page +summary=a is at 95\.5%/)
  expect(JSON.parse((await listed('alerts', '--json')).lines)).toEqual(alert)
})

it('says that there are none', async () => {
  answer = { alerts: [] }
  expect(await run('alerts')).toMatchObject({ code: 0, out: [], err: ['no alert is pending, and none fires'] })
  answer = { groups: [] }
  expect(await run('rules', 'list')).toMatchObject({ code: 0, out: [], err: ['the server evaluates no rules'] })
})

it('lists rules with their health', async () => {
  answer = { groups: [{ name: 'pools', file: '/etc/a.yml', interval: 15, limit: 0, rules: [rule] }] }
  const { lines, code } = await listed('rules', 'list')
  expect([code, asked]).toEqual([0, ['/api/v1/rules Bearer t0']])
  expect(lines).toMatch(/pools +Same +alerting +inactive +err +15 s +2 ms +vector contains metrics/)
})
