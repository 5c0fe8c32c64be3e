/** Heartbeats go out while all rules can be evaluated in time, and only then. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import { EvaluationWatch } from '../../../../server/kit/expressions.ts'
import { loadConfig } from '../../../../server/start/config.ts'
import { Heartbeat } from '../../../../server/wings/notify/heartbeat.ts'
import { eventually } from '../../../support/eventually.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const MINUTE = 60_000
let receiver: Server
let received: string[]
let status: number
let problem: string | undefined
let clock: FakeClock
let heartbeat: Heartbeat

beforeEach(async () => {
  received = []
  status = 200
  problem = undefined
  clock = new FakeClock()
  receiver = createServer(async (request, response) => {
    let length = 0
    for await (const part of request) length += (part as Buffer).length
    received.push(`${request.method} ${request.url} ${length}`)
    response.writeHead(status).end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo
  const toml = `[[notify]]\nname = "outside"\nurl = "heartbeat+http://127.0.0.1:${port}/ping/1"\n`
  const [table] = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) }).notify
  if (table === undefined) throw new Error('there is no table')
  const watch = new EvaluationWatch()
  watch.answeredBy({
    problemOf: (tenant) => (tenant === 'default' ? problem : 'another tenant'),
    queryOf: () => undefined,
    saidOf: () => undefined,
  })
  heartbeat = new Heartbeat({ ...table, body: '' }, { clock, log: createLogger('silent'), expressions: { watch } })
})

afterEach(() => {
  heartbeat.stop()
  receiver.closeAllConnections()
  receiver.close()
})

const beats = (count: number) => eventually(() => expect(heartbeat.counts.delivered).toBe(count))
/** What was begun has come to its end: the next time is known. */
const judged = (detail: RegExp) => eventually(() => expect(heartbeat.status().detail).toMatch(detail))

it('is sent at once and every interval, with an empty body', async () => {
  await heartbeat.start()
  await beats(1)
  expect(clock.advanceToNext()).toBe(true)
  await beats(2)
  expect(clock.wallMs()).toBe(1_700_000_000_000 + MINUTE)
  expect(received).toEqual(['POST /ping/1 0', 'POST /ping/1 0'])
  expect(heartbeat.status()).toMatchObject({ name: 'notify/outside', state: 'telling', counters: { delivered: 2 } })
})

it('is not sent while a rule fails or is late, and again soon after', async () => {
  problem = 'the group g is late'
  await heartbeat.start()
  await judged(/: nothing is sent: the group g is late$/)
  clock.advance(MINUTE)
  expect(heartbeat.status().state).toBe('failed')
  expect(received).toEqual([])
  problem = undefined
  await eventually(() => {
    clock.advanceToNext()
    expect(heartbeat.counts.delivered).toBeGreaterThan(0)
  })
  expect(heartbeat.status().state).toBe('telling')
})

it('is sent again before its interval is over where the service did not take it', async () => {
  status = 503
  await heartbeat.start()
  await judged(/: the receiver answered 503$/)
  status = 200
  clock.advance(10_000)
  await beats(1)
  expect(received).toHaveLength(2)
})

it('is not sent after its end', async () => {
  await heartbeat.start()
  await beats(1)
  heartbeat.stop()
  expect(clock.advanceToNext()).toBe(false)
})
