/**
 * Notifiers of the configuration in a server: one whose receiver is away, one whose channel has lost something, and what they tell
 * when the clock is set, or time has passed unseen.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { defaultConfig, loadConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'

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
    const key = String(request.headers['idempotency-key'])
    // What was under way at a kill comes twice.
    const isTaken = keys.get(path)?.includes(`taken ${key}`) === true
    keys.set(path, [...(keys.get(path) ?? []), away.has(path) ? key : `taken ${key}`])
    const text = alerts.map(({ labels, status }: Json) => `${labels.alertname} ${status}`).join(', ')
    if (!away.has(path) && !isTaken) taken.set(path, [...(taken.get(path) ?? []), text])
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

/** What `producer.notifiers` has of the one that there is. */
async function figures(): Promise<Json> {
  return (decoded(await server.root.query('producer.notifiers')) as Json[])[0]
}

/** Its channel, and how many values are in it. */
async function waiting(): Promise<{ readonly channel: number; readonly count: number }> {
  const channels = decoded(await server.root.query('producer.channels')) as Json[]
  const { channel, in_flight, queued } = channels.find(({ name }) => name === 'notify:pager')
  return { channel: Number(channel), count: Number(in_flight) + Number(queued) }
}

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

it('what its channel has lost is found by what there is: the end of what was told, and what fires', async () => {
  await start({ pager: AT_ONCE })
  await fire('One')
  await until(() => expect(taken.get('/pager')).toEqual(['One firing']))
  away.add('/pager')
  await fire('Two')
  // The end of One is under way, and the notifier knows of Two.
  await until(async () => expect(await figures()).toMatchObject({ transitions: 3 }))
  await fire('Three')
  // That Two has ended waits in the channel until somebody is told that it fired, and what comes after it does, too.
  await until(async () => expect(await waiting()).toMatchObject({ count: 2 }))
  const { channel } = await waiting()
  expect(Number(await done(server.root, 'channel.purge', { channel }))).toBe(2)
  await server.producer.settle()
  server = await PublishingProducer.of(await server.producer.crash())
  away.clear()
  await until(() => expect(taken.get('/pager')).toContain('Three firing'))
  await passes(2 * MINUTE)
  const told = taken.get('/pager') ?? []
  const of = (alert: string): string[] => told.filter((text) => text.startsWith(alert))
  expect(of('One')).toEqual(['One firing', 'One resolved'])
  expect(of('Three')).toEqual(['Three firing'])
  // Of what fired and ended meanwhile somebody may have been told, and then of its end as well.
  expect([[], ['Two firing', 'Two resolved']]).toContainEqual(of('Two'))
  expect(await figures()).toMatchObject({ name: 'pager', problem: '', lost: 2 })
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

it('with a clock that was set back since an alert fires, it is passed on when it has waited anew', async () => {
  const more = 'escalate_to = "next"\nescalate_after = "10m"'
  await start({ pager: `${AT_ONCE}\n${more}`, next: `${AT_ONCE}\nmatch = ['alertname="Nothing"']` })
  await fire('One')
  await until(() => expect(taken.get('/pager')).toEqual(['One firing']))
  server.producer.clock.jumpWall(-31 * DAY)
  await passes(8 * MINUTE)
  expect(taken.get('/next')).toBeUndefined()
  await until(() => expect(taken.get('/next')).toEqual(['One firing']))
})
