/**
 * Notifiers of the configuration in a server: one whose receiver is away, and what they tell when the clock is set, or time has passed
 * unseen.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { defaultConfig, loadConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer } from '../../../support/publisher.ts'
import type { Json } from '../../../support/records.ts'

const EVER_MS = 36_500 * 86_400_000
const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

let receiver: Server
/** Of each path, what was taken: alerts and their states; and the key of each request. */
let taken: Map<string, string[]>
let keys: Map<string, string[]>
/** Paths that nobody answers well. */
let away: Set<string>
let server: PublishingProducer

beforeEach(async () => {
  taken = new Map()
  keys = new Map()
  away = new Set()
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const path = request.url ?? ''
    const { alerts } = JSON.parse(Buffer.concat(parts).toString()) as Json
    keys.set(path, [...(keys.get(path) ?? []), String(request.headers['idempotency-key'])])
    const text = alerts.map(({ labels, status }: Json) => `${labels.alertname} ${status}`).join(', ')
    if (!away.has(path)) taken.set(path, [...(taken.get(path) ?? []), text])
    response.writeHead(away.has(path) ? 503 : 204).end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
})
afterEach(async () => {
  await server.stop()
  receiver.closeAllConnections()
  receiver.close()
})

/** A server with these notifiers, each with a path of its own. */
async function start(tables: Readonly<Record<string, string>>): Promise<void> {
  const { port } = receiver.address() as AddressInfo
  const toml = Object.entries(tables).map(
    ([name, keys]) => `[[notify]]\nname = "${name}"\nurl = "webhook+http://127.0.0.1:${port}/${name}"\n${keys}\n`,
  )
  const { notify } = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml.join('')) })
  const { history, alerts } = defaultConfig()
  server = await PublishingProducer.start({
    config: {
      notify,
      history: { ...history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['rules.*'] },
      alerts: { ...alerts, builtin: false },
    },
  })
}

/** These alerts fire from now on, and no others. */
async function fire(...names: readonly string[]): Promise<void> {
  const rules = names.map((name) => `      - { alert: ${name}, expr: vector(1) }\n`)
  const text = `groups:\n  - name: g\n    interval: 1m\n    rules:\n${rules.join('')}`
  // A connection that was there before may have been idle for too long.
  await done(await server.producer.seat('root'), 'rules.put', { name: 'a.yml', rules: text })
}

async function passes(ms = 5 * SECOND): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 5 * SECOND) {
    server.producer.clock.advance(5 * SECOND)
    await server.producer.settle()
  }
}

const until = (holds: () => void | Promise<void>): Promise<void> =>
  eventually(async () => {
    await passes()
    await holds()
  })

const AT_ONCE = 'group_wait = "0s"\ngroup_interval = "0s"'

it("a receiver that is away delays its own notifications, and nobody else's", async () => {
  await start({ there: AT_ONCE, away: AT_ONCE })
  away.add('/away')
  await fire('One')
  await until(() => {
    expect(taken.get('/there')).toEqual(['One firing'])
    expect(keys.get('/away')?.length).toBeGreaterThan(1)
  })
  await fire('Two')
  await until(() => expect(taken.get('/there')?.slice(1).sort()).toEqual(['One resolved', 'Two firing']))
  // What was under way is sent again, as it was, and nothing else before it.
  expect(new Set(keys.get('/away')).size).toBe(1)
  expect(taken.get('/away')).toBeUndefined()
  away.clear()
  await until(() => expect(taken.get('/away')).toHaveLength(3))
  expect(taken.get('/away')?.[0]).toBe('One firing')
  expect(taken.get('/away')?.slice(1).sort()).toEqual(['One resolved', 'Two firing'])
})

// The monotonic clock does not move where the other one is set, and neither does it while the machine is suspended.
it.each([
  ['set forward', (ms: number) => server.producer.clock.jumpWall(ms)],
  ['ahead, since the process was stopped', (ms: number) => server.producer.clock.leap(ms)],
])(
  'with a clock that is %s, what is due is told once; set back again, nobody waits until the next repetition',
  async (_how, sleep) => {
    await start({ pager: 'group_by = []\ngroup_wait = "0s"\ngroup_interval = "2m"\nrepeat_interval = "30d"' })
    await fire('One')
    await until(() => expect(taken.get('/pager')).toEqual(['One firing']))
    sleep(31 * DAY)
    await until(() => expect(taken.get('/pager')).toEqual(['One firing', 'One firing']))
    await passes(10 * MINUTE)
    expect(taken.get('/pager')).toHaveLength(2)
    server.producer.clock.jumpWall(-31 * DAY)
    await passes(2 * MINUTE)
    expect(taken.get('/pager')).toHaveLength(2)
    await fire('One', 'Two')
    await until(() => expect(taken.get('/pager')?.slice(2)).toEqual(['Two firing, One firing']))
  },
)
