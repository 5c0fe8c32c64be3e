/**
 * The specification of alert generators (prometheus/compliance, alert_generator/specification.md), clause by clause, as far as it is about
 * rule files, what an Alertmanager is sent, and the API. The clauses about the states of alerts are in evaluation/groups.test.ts.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LabelSet } from '../../../../promql/label-set.ts'
import { finished, MemorySource } from '../../../../promql/memory-source.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig, loadConfig } from '../../../../server/start/config.ts'
import { RuleEvaluation } from '../../../../server/wings/alerts/rules/evaluation.ts'
import { rulesOf } from '../../../../server/wings/alerts/rules/group.ts'
import { type RuleDefinition, readRuleFile } from '../../../../server/wings/alerts/rules/rule-file.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import type { Json } from '../../../support/records.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

describe('Alerting Rules, The Format', () => {
  const FILE = {
    groups: [
      { name: 'defaults', rules: [{ alert: 'A', expr: 'up == 0' }] },
      {
        name: 'given',
        interval: '30s',
        rules: [{ alert: 'B', expr: 'up == 0', for: '1m30s', labels: { a: 'b' }, annotations: { c: '{{ $value }}' } }],
      },
    ],
  }
  const groupsOf = async (text: string) => {
    const file = await readRuleFile(text)
    if ('problems' in file) throw new Error(JSON.stringify(file.problems))
    return file.groups
  }

  it('is YAML, or JSON of the same structure', async () => {
    const [defaults, given] = await groupsOf(JSON.stringify(FILE, undefined, 2))
    expect([defaults?.name, given?.name, given?.intervalMs]).toEqual(['defaults', 'given', 30 * SECOND])
    expect(given?.rules).toMatchObject([{ kind: 'alert', name: 'B', forMs: 90 * SECOND }])
  })

  it('`interval` is a minute if it is left out, and `for` is 0s', async () => {
    const [defaults] = await groupsOf(JSON.stringify(FILE))
    expect(defaults?.intervalMs).toBeUndefined()
    expect(defaultConfig().alerts.interval).toBe(MINUTE)
    expect(defaults?.rules).toMatchObject([{ forMs: 0 }])
  })

  it('the name of a group is unique in its file', async () => {
    const [group] = FILE.groups
    const file = await readRuleFile(JSON.stringify({ groups: [group, group] }))
    expect(file).toMatchObject({ problems: [{ message: 'two groups are called "defaults"' }] })
  })

  it('Constraints 1: rules keep the order of the file', async () => {
    const rules = ['C', 'A', 'B'].map((alert) => ({ alert, expr: 'up == 0' }))
    const [group] = await groupsOf(JSON.stringify({ groups: [{ name: 'g', rules }] }))
    expect(group?.rules.map(({ name }: RuleDefinition) => name)).toEqual(['C', 'A', 'B'])
  })
})

it('Constraints 2: optional functions and variables of templates are not refused, and come to nothing', async () => {
  const text =
    '[{{ tmpl "x" . }}{{ $externalLabels.a }}{{ .ExternalLabels.a }}{{ externalURL }}{{ pathPrefix }}{{ $externalURL }}{{ .ExternalURL }}{{ range query "up" }}{{ strvalue . }}{{ end }}{{ safeHtml "" }}]'
  const rules = [
    { alert: 'A', expr: 'up == 0', annotations: { text, links: '{{ graphLink "up" }}{{ tableLink "up" }}' } },
  ]
  const file = await readRuleFile(JSON.stringify({ groups: [{ name: 'g', rules }] }))
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  const [rule] = file.groups[0]?.rules ?? []
  if (rule?.kind !== 'alert') throw new Error('there is no alert')
  const data = { labels: new Map(), externalLabels: new Map(), externalUrl: '', value: 1 }
  const query = () => [{ Labels: new Map([['job', 'a']]), Value: 1 }]
  const shown = rule.annotations.get('text')?.execute(data, { timeMs: 0, externalUrl: '', query })
  expect(shown).toBe('[]')
})

it('pending State Conditions: annotations that change are those of the last evaluation', async () => {
  const rules = [{ alert: 'Waits', expr: 'a > 10', for: '1h', annotations: { summary: 'now {{ $value }}' } }]
  const file = await readRuleFile(JSON.stringify({ groups: [{ name: 'g', rules }] }))
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  const [rule] = file.groups.flatMap((group) => rulesOf(group))
  if (rule === undefined) throw new Error('there is no rule')
  const source = new MemorySource()
  const found: string[] = []
  for (const [minute, value] of [11, 12, 12, 13].entries()) {
    const timeMs = minute * MINUTE
    source.add(LabelSet.of([['__name__', 'a']]), [[timeMs, value]])
    const surroundings = { externalLabels: new Map<string, string>(), externalUrl: '' }
    rule.adopt(finished(rule.evaluate(new RuleEvaluation(source, timeMs, surroundings))))
    for (const { state, activeMs, annotations } of rule.alerts.values())
      found.push(`${state} since ${activeMs}: ${annotations}`)
  }
  expect(found).toEqual([11, 12, 12, 13].map((value) => `pending since 0: {summary="now ${value}"}`))
})

describe('in a server that tells an Alertmanager', () => {
  const EVER_MS = 36_500 * 86_400_000
  const INTERVAL = 30 * SECOND
  const RULES = `groups:
  - name: g
    interval: 30s
    rules:
      - alert: High
        expr: test_a > 10
        for: 1m
        labels: { foo: bar }
        annotations: { summary: 'now {{ $value }}' }
      - alert: Never
        expr: test_a > 1000
      - alert: Waits
        expr: test_a > 10
        for: 100d
      - alert: Same
        expr: label_replace(test_a, "x", "1", "", "") > 10 or label_replace(test_a, "x", "2", "", "") > 10
        labels: { x: same }
`
  interface Sent {
    readonly atMs: number
    readonly alerts: readonly Json[]
  }

  let directory: string
  let server: PublishingProducer
  let receiver: Server
  let sent: Sent[]
  let value: number
  let token: string

  beforeEach(async () => {
    sent = []
    value = 1
    directory = mkdtempSync(join(tmpdir(), 'cinnabar-generator-'))
    writeFileSync(join(directory, 'rules.yml'), RULES)
    receiver = createServer(async (request, response) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part as Buffer)
      const alerts = JSON.parse(Buffer.concat(parts).toString()) as Json[]
      sent.push({ atMs: server.producer.clock.wallMs(), alerts })
      response.end()
    })
    receiver.listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    const { port } = receiver.address() as AddressInfo
    const toml = `[[notify]]\nname = "am"\nurl = "alertmanager+http://127.0.0.1:${port}"\nexternal_url = "https://mon.example"\n`
    const { notify } = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
    const { history, alerts } = defaultConfig()
    const metrics = ['test.*', 'rules.*']
    server = await PublishingProducer.start({
      config: {
        history: { ...history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics },
        alerts: { ...alerts, builtin: false, rules: [join(directory, '*.yml')] },
        notify,
      },
    })
    token = await tokenFor(server.root, 'root', '')
  })

  afterEach(async () => {
    await server.stop()
    receiver.closeAllConnections()
    receiver.close()
    rmSync(directory, { recursive: true, force: true })
  })

  /** Time goes on in steps of five seconds, each with a value, until it holds. */
  async function until(holds: () => void | Promise<void>): Promise<void> {
    const { producer } = server
    const { clock } = producer
    await eventually(async () => {
      clock.advance(5 * SECOND)
      producer.push.push('test.a', { type: BasicType.DOUBLE, value }, clock.microseconds())
      await producer.settle()
      await holds()
    })
  }

  /** So long passes. */
  async function pass(ms: number): Promise<void> {
    const endMs = server.producer.clock.wallMs() + ms
    await until(() => expect(server.producer.clock.wallMs()).toBeGreaterThanOrEqual(endMs))
  }

  async function get(path: string): Promise<Json> {
    const answer = await fetch(`${server.url}/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } })
    return answer.json()
  }

  const high = async (): Promise<Json> => (await get('rules')).data.groups[0].rules[0]
  const stateIs = (state: string) => until(async () => expect((await high()).state).toBe(state))
  const timesOf = ({ startsAt, endsAt }: Json) => ({ startMs: Date.parse(startsAt), endMs: Date.parse(endsAt) })

  it('Sending Alerts: what fires at once and every minute, with FiredAt; what has ended for 15 minutes, with ResolvedAt', async () => {
    value = 11
    await stateIs('firing')
    const { activeAt } = (await high()).alerts[0]
    await until(() => expect(sent.length).toBeGreaterThanOrEqual(3))
    const [first] = sent[0]?.alerts ?? []
    expect(first, 'Alert Format').toEqual({
      labels: { alertname: 'High', foo: 'bar', host: 'h1' },
      annotations: { summary: 'now 11' },
      startsAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      endsAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      generatorURL: 'https://mon.example/#/query?expr=test_a%20%3E%2010&show=chart',
    })
    const firedMs = Date.parse(activeAt) + MINUTE
    for (const [index, { atMs, alerts }] of sent.entries()) {
      expect(alerts).toHaveLength(1)
      const { startMs, endMs } = timesOf(alerts[0])
      expect(startMs, 'startsAt is FiredAt').toBe(firedMs)
      expect(atMs, 'only what fires and what has ended is sent').toBeGreaterThanOrEqual(firedMs)
      expect(endMs, 'endsAt is later than the next time').toBeGreaterThan(atMs + 2 * MINUTE)
      const before = sent[index - 1]
      if (before !== undefined) expect(atMs - before.atMs, 'ResendDelay').toBeGreaterThanOrEqual(MINUTE)
    }
    value = 1
    const count = sent.length
    await stateIs('inactive')
    await until(() => expect(timesOf(sent.at(-1)?.alerts[0]).endMs).toBeLessThan(server.producer.clock.wallMs()))
    const ended = timesOf(sent.at(-1)?.alerts[0])
    expect(ended.startMs, 'startsAt is FiredAt also when it has ended').toBe(firedMs)
    expect((ended.endMs - firedMs) % INTERVAL, 'endsAt is ResolvedAt, the time of an evaluation').toBe(0)
    await pass(17 * MINUTE)
    const resolved = sent.slice(count).filter(({ alerts }) => timesOf(alerts[0]).endMs === ended.endMs)
    expect(resolved.length, 'what has ended is sent again').toBeGreaterThan(2)
    const last = sent.length
    await pass(3 * MINUTE)
    expect(sent.length, 'until 15 minutes after ResolvedAt').toBe(last)
    value = 12
    await until(() => expect(sent.length).toBeGreaterThan(last))
    expect(sent.at(-1)?.alerts).toMatchObject([{ annotations: { summary: 'now 12' } }])
    expect(timesOf(sent.at(-1)?.alerts[0]).startMs, 'a new alert has a new FiredAt').toBeGreaterThan(ended.endMs)
  }, 120_000)

  it('firing State Conditions: annotations that change are those of what is sent next', async () => {
    value = 11
    await until(() => expect(sent.at(-1)?.alerts).toMatchObject([{ annotations: { summary: 'now 11' } }]))
    value = 13
    await until(async () => expect((await high()).alerts).toMatchObject([{ annotations: { summary: 'now 13' } }]))
    const count = sent.length
    await until(() => expect(sent.length).toBeGreaterThan(count + 1))
    expect(sent.at(-1)?.alerts).toMatchObject([{ annotations: { summary: 'now 13' } }])
  }, 60_000)

  it('Time Series to Create: samples of 1 at the times of the evaluations, which are in the history', async () => {
    value = 11
    await stateIs('firing')
    const expr = encodeURIComponent('ALERTS{alertname="High"}[20m]')
    await until(async () => {
      const { data } = await get(`query?query=${expr}&time=${server.producer.clock.wallMs() / SECOND}`)
      const of = (state: string): [number, string][] =>
        data.result.find(({ metric }: Json) => metric.alertstate === state)?.values ?? []
      expect(of('firing').length).toBeGreaterThan(2)
      const { lastEvaluation } = (await get('rules')).data.groups[0]
      const { activeAt } = (await high()).alerts[0]
      const times = [...of('pending'), ...of('firing')].map(([seconds]) => seconds * SECOND)
      const first = Date.parse(activeAt)
      expect((Date.parse(lastEvaluation) - first) % INTERVAL).toBe(0)
      // Each evaluation since it is active has one, the first of them and that after `for` among these.
      expect(times).toEqual(times.map((_, index) => first + index * INTERVAL))
      expect(of('firing')[0]?.[0]).toBe((first + MINUTE) / SECOND)
      expect(new Set([...of('pending'), ...of('firing')].map(([, text]) => text))).toEqual(new Set(['1']))
    })
  }, 60_000)

  // Of `health` unknown the specification wants a text in `lastError`, which Prometheus itself does not have.
  it('GET /api/v1/rules and /api/v1/alerts: their fields, the states of rules, and their health', async () => {
    const before = (await get('rules')).data.groups[0].rules
    expect(before.map(({ health }: Json) => health)).toEqual(['unknown', 'unknown', 'unknown', 'unknown'])
    value = 11
    await stateIs('firing')
    const { status, data } = await get('rules')
    expect(status).toBe('success')
    const [group] = data.groups
    expect(group).toMatchObject({ name: 'g', interval: 30, lastEvaluation: expect.stringMatching(/Z$/) })
    const [first, never, waits, same] = group.rules
    expect(first).toMatchObject({
      type: 'alerting',
      name: 'High',
      query: 'test_a > 10',
      duration: 60,
      labels: { foo: 'bar' },
      annotations: { summary: 'now {{ $value }}' },
      health: 'ok',
      state: 'firing',
      evaluationTime: expect.any(Number),
      lastEvaluation: expect.stringMatching(/Z$/),
      alerts: [
        {
          activeAt: expect.stringMatching(/Z$/),
          state: 'firing',
          value: expect.any(String),
          labels: { alertname: 'High', foo: 'bar', host: 'h1' },
          annotations: { summary: 'now 11' },
        },
      ],
    })
    expect(Number(first.alerts[0].value)).toBe(11)
    expect(first.lastError ?? '', '`lastError` is empty where the health is ok').toBe('')
    expect([never.state, never.alerts, never.health]).toEqual(['inactive', [], 'ok'])
    expect(waits).toMatchObject({ state: 'pending', duration: 8_640_000, alerts: [{ state: 'pending' }], health: 'ok' })
    expect([same.state, same.health], 'Step 4').toEqual(['inactive', 'err'])
    expect(same.lastError).toMatch(/same labelset/)
    const all = await get('alerts')
    expect(all).toEqual({ status: 'success', data: { alerts: group.rules.flatMap(({ alerts }: Json) => alerts) } })
  }, 60_000)
})
