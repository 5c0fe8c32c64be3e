/** Rules in a server, over a real history: what consumers, Prometheus' API and the history have of alerts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import type { SourcesConfig } from '../../../../server/start/wings.ts'
import { done } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

const EVER_MS = 36_500 * 86_400_000
const RULES = `groups:
  - name: load
    interval: 10s
    rules:
      - record: test:a:twice
        expr: test_a * 2
      - alert: High
        expr: test:a:twice > 10
        for: 30s
        labels: { severity: page }
        annotations: { summary: '{{ $labels.host }} is at {{ $value }}' }
`

let directory: string
let server: PublishingProducer
let token: string
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-alerts-'))
  writeFileSync(join(directory, 'rules.yml'), RULES)
  server = await PublishingProducer.start({
    config: {
      history: { ...defaultConfig().history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['test.*', 'rules.*'] },
      alerts: { ...defaultConfig().alerts, builtin: false, rules: [join(directory, '*.yml')] },
    },
  })
  token = await tokenFor(server.root, 'root', '')
})
afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

let value = 0

/** Time goes on, and the value is sent every five seconds, until it holds. */
async function until(holds: () => void | Promise<void>): Promise<void> {
  const { producer } = server
  await eventually(async () => {
    producer.clock.advance(1_000)
    const { clock } = producer
    if (clock.wallMs() % 5_000 === 0)
      producer.push.push('test.a', { type: BasicType.DOUBLE, value }, clock.microseconds())
    await producer.settle()
    await holds()
  })
}

async function get(path: string): Promise<Json> {
  const answer = await fetch(`${server.url}/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } })
  const { status, data } = (await answer.json()) as Json
  expect(status).toBe('success')
  return data
}

async function subscribed(seat: Seat): Promise<number> {
  const channel = await seat.defChannel()
  await seat.setChannel(channel)
  const id = await seat.collect('alert')
  await seat.ok((seq) => command.subscribe(seq, id, channel))
  return channel
}

const stateOf = async (): Promise<string> => (await get('alerts')).alerts.map(({ state }: Json) => state).join()

it('an alert is pending, fires and ends: as values of `alert`, in the API, and as series of the history', async () => {
  const { producer, root } = server
  await producer.addUser('ann')
  const ann = await producer.seat('ann')
  await subscribed(ann)
  value = 7
  await until(async () => expect(await stateOf()).toBe('pending'))
  await until(async () => expect(await stateOf()).toBe('firing'))
  const { alerts } = await get('alerts')
  expect(alerts).toEqual([
    {
      labels: { alertname: 'High', host: 'h1', severity: 'page' },
      annotations: { summary: 'h1 is at 14' },
      state: 'firing',
      activeAt: expect.stringMatching(/^2023-.*Z$/),
      value: '1.4e+01',
    },
  ])
  const { groups } = await get('rules?type=alert')
  expect(groups).toEqual([
    {
      name: 'load',
      file: join(directory, 'rules.yml'),
      interval: 10,
      limit: 0,
      evaluationTime: expect.any(Number),
      lastEvaluation: expect.stringMatching(/^2023-.*Z$/),
      rules: [
        {
          state: 'firing',
          name: 'High',
          query: 'test:a:twice > 10',
          duration: 30,
          keepFiringFor: 0,
          labels: { severity: 'page' },
          annotations: { summary: '{{ $labels.host }} is at {{ $value }}' },
          alerts,
          health: 'ok',
          evaluationTime: expect.any(Number),
          lastEvaluation: expect.stringMatching(/^2023-.*Z$/),
          type: 'alerting',
        },
      ],
    },
  ])
  value = 1
  await until(async () => expect(await stateOf()).toBe(''))
  const reported = (await ann.values(3)).map(decoded)
  expect(
    reported.map(({ alertname, host, severity, value: { state, sequence, annotations } }: Json) => ({
      ...{ alertname, host, severity, state, sequence },
      summary: annotations.summary,
    })),
  ).toEqual(
    ['pending', 'firing', 'inactive'].map((state, index) => ({
      ...{ alertname: 'High', host: 'h1', severity: 'page', state, sequence: index + 1 },
      summary: 'h1 is at 14',
    })),
  )
  const time = producer.clock.wallMs() / 1_000
  const of = async (query: string): Promise<Json> =>
    (await get(`query?time=${time}&query=${encodeURIComponent(query)}`)).result
  await until(async () =>
    expect((await of('count_over_time(ALERTS{alertstate="firing"}[10m])'))[0]?.value[1]).toMatch(/^[1-9]/),
  )
  expect(await of('ALERTS')).toEqual([])
  const [since] = await of('last_over_time(ALERTS_FOR_STATE{alertname="High"}[10m])')
  expect(Number(since?.value[1]), 'whole seconds, as in Prometheus').toBe(
    Math.floor(Date.parse(alerts[0].activeAt) / 1_000),
  )
  expect((await of('test:a:twice'))[0]).toMatchObject({ metric: { __name__: 'test:a:twice', host: 'h1' } })
  const [figures] = decoded(await root.query('producer.alerts'))
  expect(figures).toMatchObject({ tenant: 'default', groups: 1, rules: 2, failing: 0, firing: 0, missed: 0 })
})

it('nobody is sent a transition or a result before it is stored: both would come again, with other ids', async () => {
  const { producer } = server
  await producer.addUser('ann')
  const ann = await producer.seat('ann')
  const channel = await subscribed(ann)
  const recorded = await ann.collect('rules.test:a:twice')
  // Values that need not wait keep the channel busy: one that is quiet waits for the disk in any case, to have ids.
  const other = await ann.collect('test.a')
  for (const id of [recorded, other]) await ann.ok((seq) => command.subscribe(seq, id, channel))
  await producer.settle()
  const { store } = producer
  store.manual = true
  let [last, results] = [0, 0]
  const early: string[] = []
  value = 7
  await until(async () => {
    const stored = await store.copy().open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })
    const { sequence = 0, reached = 0 } = stored.alertGroups[0] ?? {}
    for (const message of ann.rest()) {
      if (message.kind !== 'value' || message.metric === other) continue
      if (message.metric === recorded) {
        if (Number(message.time) / 1_000 > reached) early.push(`the result of ${message.time}`)
        results++
      } else {
        last = Number(decoded(message).value.sequence)
        if (last > sequence) early.push(`the transition ${last}`)
      }
    }
    store.complete()
    expect(last).toBe(2)
  })
  expect(early).toEqual([])
  expect(results).toBeGreaterThan(2)
})

it('a reload reads the rules again; one with a mistake changes nothing, and says file, line, group and rule', async () => {
  value = 7
  await until(async () => expect(await stateOf()).toBe('pending'))
  const { sources } = server.producer.server.parts
  const reload = async (text: string, pattern = join(directory, '*.yml')): Promise<void> => {
    writeFileSync(join(directory, 'rules.yml'), text)
    const alerts = { ...defaultConfig().alerts, builtin: false, rules: [pattern] }
    const config = { ...defaultConfig(), alerts } as unknown as SourcesConfig
    for (const take of await Promise.all(sources.map((source) => source.prepare?.(config)))) take?.()
  }
  await expect(reload(RULES.replace('> 10', '>> 10'))).rejects.toThrow(
    /rules\.yml:8: group "load", rule "High": could not parse expression/,
  )
  await expect(reload(RULES, join(directory, 'away', '*.yml'))).rejects.toThrow(/its directory cannot be read: ENOENT/)
  const many = Array.from({ length: 2_001 }, (_, index) => `{ name: g${index}, rules: [] }`)
  await expect(reload(`groups: [${many}]`)).rejects.toThrow(
    'alerts.rules: 2001 groups with 0 rules: at most 2000 groups and 20000 rules are evaluated; name fewer files, or join groups',
  )
  expect(await stateOf()).toBe('pending')
  await reload(RULES.replace('for: 30s', 'for: 10m'))
  expect((await get('rules')).groups[0].rules[1]).toMatchObject({ duration: 600, state: 'pending' })
  await reload('groups: []')
  expect((await get('rules')).groups).toEqual([])
  expect(await stateOf()).toBe('')
})

it('an alert whose labels a reader may not read is not shown to him', async () => {
  const { producer, root } = server
  await producer.addUser('bob', { role: 'limited' })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'alert', where: 'host=h1' })
  const bob = await tokenFor(root, 'bob', '')
  value = 7
  await until(async () => expect(await stateOf()).toBe('pending'))
  const answer = await fetch(`${server.url}/api/v1/alerts`, { headers: { authorization: `Bearer ${bob}` } })
  expect(await answer.json()).toEqual({ status: 'success', data: { alerts: [] } })
})

it('alerts are selected by their labels', async () => {
  const { producer } = server
  await producer.addUser('ann')
  const ann = await producer.seat('ann')
  const channel = await ann.defChannel()
  await ann.setChannel(channel)
  const [ticket, page] = [
    await ann.collect('alert', args(['severity', type.string, str('ticket')])),
    await ann.collect('alert', args(['severity', type.string, str('page')])),
  ]
  for (const id of [ticket, page]) await ann.ok((seq) => command.subscribe(seq, id, channel))
  value = 7
  await until(async () => expect(await stateOf()).toBe('firing'))
  const values = await ann.values(2)
  expect(values.map(({ metric }) => metric)).toEqual([page, page])
  expect(ann.rest().filter(({ kind }) => kind === 'value')).toEqual([])
})

// A process that was stopped (SIGSTOP) has both clocks go on; on a machine that was suspended the monotonic one stands still.
it.each([
  ['stopped', (ms: number) => server.producer.clock.leap(ms)],
  ['suspended', (ms: number) => server.producer.clock.jumpWall(ms)],
])(
  'after it was %s for long, what was missed follows in order at its own times, and then what is',
  async (_how, sleep) => {
    const { producer, root } = server
    await producer.addUser('ann')
    const ann = await producer.seat('ann')
    await subscribed(ann)
    value = 7
    await until(async () => expect(await stateOf()).toBe('firing'))
    const asleepMs = producer.clock.wallMs()
    sleep(20 * 60_000)
    const awakeMs = producer.clock.wallMs()
    await until(async () => {
      const { alerts } = await get('alerts')
      expect(alerts).toMatchObject([{ state: 'firing' }])
      expect(Date.parse(alerts[0].activeAt)).toBeGreaterThan(awakeMs)
    })
    const reported = (await ann.values(5)).map((message) => decoded(message).value)
    expect(reported.map(({ state, sequence }) => `${sequence} ${state}`)).toEqual([
      '1 pending',
      '2 firing',
      '3 inactive',
      '4 pending',
      '5 firing',
    ])
    // There were no data meanwhile: it has ended when the last value was five minutes old, and not when the server woke up.
    const endedMs = Number(reported[2].ended) / 1_000
    expect(endedMs).toBeGreaterThan(asleepMs)
    expect(endedMs).toBeLessThanOrEqual(asleepMs + 5 * 60_000 + 20_000)
    const [, firing, , , again] = reported
    expect(Number(again.fired - again.since) / 1_000).toBe(Number(firing.fired - firing.since) / 1_000)
    expect(decoded(await root.query('producer.alerts'))).toMatchObject([{ missed: 0, set_back: 0 }])
  },
)

it('after its clock was set back by an hour, what fires goes on, and ends when it holds no more', async () => {
  const { producer, root } = server
  await producer.addUser('ann')
  const ann = await producer.seat('ann')
  await subscribed(ann)
  value = 7
  await until(async () => expect(await stateOf()).toBe('firing'))
  const activeMs = Date.parse((await get('alerts')).alerts[0].activeAt)
  producer.clock.jumpWall(-3_600_000)
  producer.push.push('test.a', { type: BasicType.DOUBLE, value }, producer.clock.microseconds())
  await until(async () => {
    expect(decoded(await root.query('producer.alerts'))).toMatchObject([{ set_back: 1, firing: 1, missed: 0 }])
  })
  const movedMs = activeMs - Date.parse((await get('alerts')).alerts[0].activeAt)
  expect(movedMs).toBeGreaterThan(3_600_000 - 60_000)
  expect(movedMs).toBeLessThan(3_600_000 + 60_000)
  value = 1
  await until(async () => expect(await stateOf()).toBe(''))
  const reported = (await ann.values(3)).map((message) => decoded(message).value)
  expect(reported.map(({ state, sequence }) => `${sequence} ${state}`)).toEqual(['1 pending', '2 firing', '3 inactive'])
  const [, firing, inactive] = reported
  expect(Number(inactive.fired), 'it fires since a time by the clock that counts now').toBeLessThan(
    Number(firing.fired),
  )
})

it('a batch with the state of an alert has its transition for everybody, also where hundreds have bound it', async () => {
  const { producer } = server
  await producer.addUser('ann')
  const ann = await producer.seat('ann')
  const channel = await ann.defChannel()
  await ann.setChannel(channel)
  const ids: number[] = []
  for (let count = 0; count < 600; count++) ids.push(await ann.collect('alert'))
  for (const id of ids) await ann.ok((seq) => command.subscribe(seq, id, channel))
  await producer.settle()
  value = 7
  const { store } = producer
  await until(async () => {
    const { alertGroups } = await store.copy().open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })
    expect(alertGroups[0]?.sequence).toBe(1)
    // Whatever comes in a later batch is lost.
    server = await PublishingProducer.of(await producer.crash())
  })
  await server.producer.settle()
  const again = await server.producer.seat('ann')
  await again.setChannel(channel)
  const first = (await again.values(600)).filter((message) => Number(decoded(message).value.sequence) === 1)
  expect(new Set(first.map(({ metric }) => metric))).toEqual(new Set(ids))
})
