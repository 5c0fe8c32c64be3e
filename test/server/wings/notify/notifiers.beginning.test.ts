/** How notifiers begin: what is refused, what happens meanwhile, what is shown of it, and steps that throw. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType, GapReason } from '../../../../protocol/monitor/constants.ts'
import { writeGap } from '../../../../protocol/monitor/message.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { OwnChannel, WantedBindings } from '../../../../server/kit/delivery.ts'
import type { AlertRow } from '../../../../server/kit/expressions.ts'
import type { Kit } from '../../../../server/kit/kit.ts'
import type { ChannelConnection } from '../../../../server/kit/push.ts'
import type { Steps } from '../../../../server/kit/running.ts'
import { loadConfig } from '../../../../server/start/config.ts'
import { alertOfPending } from '../../../../server/wings/notify/approval-alerts.ts'
import type { NotifierOrigin, NotifierTable } from '../../../../server/wings/notify/bodies.ts'
import type { InForce } from '../../../../server/wings/notify/in-force.ts'
import { Notifiers } from '../../../../server/wings/notify/notifiers.ts'
import { eventually } from '../../../support/eventually.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

let clock: FakeClock
let notifiers: Notifiers
/** What is done when a channel is looked for, and when metrics are to be bound. */
let finding: () => void
let binding: (wanted: WantedBindings) => void
/** The names of the alerts that fire. */
let firing: string[]
/** What the first alert that is looked at from now on throws. */
let fault: Error | undefined
let logged: string[]
/** The transactions that were committed. */
let committed: number[]
let connection: ChannelConnection | undefined
/** What reading the stored groups throws once. */
let storedFault: Error | undefined

beforeEach(() => {
  clock = new FakeClock()
  finding = () => {}
  binding = () => {}
  firing = []
  fault = undefined
  logged = []
  committed = []
  connection = undefined
  storedFault = undefined
  const channel = {
    delivered: {
      owner: { tenant: 'default' },
      bindings: new Map(),
      queue: { counts: { queued: 0, inFlight: 0 }, commit: (id: number) => committed.push(id) },
      outbox: { drained() {}, failed() {} },
    },
    get state(): OwnChannel['state'] {
      return connection === undefined ? 'free' : 'taken'
    },
    onChange() {},
    bind: async (wanted: WantedBindings) => binding(wanted),
    attach(made: ChannelConnection) {
      connection = made
    },
    detach() {
      connection = undefined
    },
  }
  const kit = {
    clock,
    log: {
      warn() {},
      info: (_: unknown, text: string) => logged.push(text),
      error: (_: unknown, text: string) => logged.push(text),
    },
    // As the server does it where nobody waits: at once, and what is thrown then is thrown to whoever asks.
    poll: { work: (_party: unknown, steps: Steps<unknown>) => finish(steps) },
    expressions: { watch: { queryOf: () => undefined, saidOf: () => undefined, problemOf: () => undefined } },
    peer: {
      delivery: {
        async channelOf() {
          finding()
          return channel
        },
        haltOthers: () => [],
      },
      stored: {
        journal: { change() {}, whenStored: () => Promise.resolve() },
        get notifyGroups() {
          const error = storedFault
          storedFault = undefined
          if (error !== undefined) throw error
          return []
        },
        notifyAlerts: [],
        *alerts() {
          const error = fault
          fault = undefined
          if (error !== undefined) throw error
          yield* firing.map(rowOf)
        },
      },
      view: {
        tenants: () => ['default'],
        readRights: () => ({ mayReadRemembered: () => true, covers: () => true }),
        waiting: () => [],
      },
    },
  }
  const isMuted = function* () {
    yield
    return false
  }
  notifiers = new Notifiers(kit as unknown as Kit, { add() {}, forget() {} } as never, isMuted, {} as never)
})
afterEach(() => notifiers.stop())

function rowOf(name: string): AlertRow {
  const times = { active: 1, fired: 1, kept: undefined, resolved: undefined, missing: undefined }
  const labels = JSON.stringify([['alertname', name]])
  return {
    rule: JSON.stringify(['default', 'f', 'g', name]),
    labels,
    annotations: '[]',
    state: 'firing',
    value: '1',
    ...times,
  }
}

function table(name: string, more = '', url = 'webhook+https://h.example/'): NotifierTable {
  const toml = `[[notify]]\nname = "${name}"\nurl = "${url}"\n${more}`
  const [made] = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) }).notify
  return { ...(made as NonNullable<typeof made>), body: '' }
}

const find = (name = 'pager'): InForce => notifiers.find('default', name) as InForce
const known = (name = 'pager'): readonly string[] =>
  find(name)
    .groups?.alerts()
    .map(({ rule }) => rule) ?? []
const WAITS = 'group_wait = "1h"\n'

async function again(): Promise<void> {
  clock.advance(10_000)
  notifiers.sweep()
  await eventually(() => expect(find().isToStart).toBe(false))
}

it('what is refused is bound ten seconds later, and until then the notifier fails', async () => {
  const wanted: (readonly string[])[] = []
  binding = ({ metrics, refused }) => {
    wanted.push(metrics.map(({ name }) => name))
    if (wanted.length < 3) refused('alert', 'the quota of bindings is used up')
  }
  const beganMs = clock.wallMs()
  await notifiers.follow([table('pager', WAITS)])
  const failed = ['it cannot begin: alert cannot be bound: the quota of bindings is used up', beganMs]
  expect([find().problem, find().failingSinceMs]).toEqual(failed)
  await again()
  expect([find().problem, find().failingSinceMs]).toEqual(failed)
  await again()
  await eventually(() => expect([find().problem, find().failingSinceMs]).toEqual(['', undefined]))
  expect(wanted).toEqual([['alert'], ['alert'], ['alert']])
  // The same is not logged again.
  expect(logged).toEqual(['a notifier cannot begin', 'a notifier tells again'])
})

it.each([
  ['begun', [], ['Cause', 'Effect'], undefined],
  ['ended', ['Cause', 'Effect'], ['Effect'], ['Effect']],
])('what inhibits and has %s while the notifier was bound counts', async (_what, before, after, told) => {
  firing = before
  binding = () => {
    firing = after
  }
  const inhibit = `inhibit = [{ source = ['alertname=Cause'], target = ['alertname=Effect'] }]\n`
  await notifiers.follow([table('pager', `${WAITS}match = ['alertname=Effect']\n${inhibit}`)])
  expect(known()).toEqual(['Effect'])
  clock.jumpWall(3_600_000)
  const { groups } = find()
  expect(groups && finish(groups.next())?.alerts.map(({ rule }) => rule)).toEqual(told)
})

describe('with a receiver', () => {
  let receiver: Server
  let status: number
  let url: string

  beforeEach(async () => {
    status = 204
    receiver = createServer((request, response) => {
      request.resume()
      response.writeHead(status).end()
    })
    receiver.listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    url = `webhook+http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  })
  afterEach(() => {
    receiver.closeAllConnections()
    receiver.close()
  })

  it('one that is not bound fails also where its receiver takes notifications', async () => {
    firing = ['A']
    binding = ({ refused }) => refused('alert', 'no room')
    const beganMs = clock.wallMs()
    await notifiers.follow([table('pager', 'group_wait = "0s"\n', url)])
    await eventually(() => expect(find().counts.delivered).toBe(1))
    expect(find()).toMatchObject({ problem: expect.stringContaining('no room'), failingSinceMs: beganMs })
    expect(find().status?.().state).toBe('failed')
    binding = () => {}
    await again()
    await eventually(() => expect(find()).toMatchObject({ problem: '', failingSinceMs: undefined }))
  })

  it('one that is bound fails as long as its receiver is away', async () => {
    status = 503
    firing = ['A']
    binding = ({ refused }) => refused('alert', 'no room')
    const beganMs = clock.wallMs()
    await notifiers.follow([table('pager', 'group_wait = "0s"\n', url)])
    await eventually(() => {
      clock.advance(1_000)
      expect(find().counts.retries).toBeGreaterThan(0)
    })
    binding = () => {}
    await eventually(async () => {
      await again()
      expect(find().problem).toContain('503')
    })
    expect(find().failingSinceMs).toBe(beganMs)
  })
})

it('a comparison whose step throws is made again, and is logged', async () => {
  firing = ['A']
  binding = () => {
    fault = new Error('broken')
  }
  await notifiers.follow([table('pager', WAITS)])
  expect([known(), find().problem, logged]).toEqual([[], '', ['the work of a notifier has failed']])
  notifiers.sweep()
  expect(known()).toEqual(['A'])
})

it('a loss is committed when it is made up for, also where a step before that has thrown', async () => {
  await notifiers.follow([table('pager', WAITS)])
  firing = ['Lost']
  fault = new Error('broken')
  const writer = new XdrWriter()
  writeGap(writer, { transaction: 7, metric: 1, count: 3, from: 0, to: 0, reason: GapReason.restart })
  await new Promise<void>((written) => connection?.writeValues(writer.copy(), written))
  expect([known(), committed, logged]).toEqual([[], [], ['the work of a notifier has failed']])
  notifiers.sweep()
  expect([known(), committed]).toEqual([['Lost'], [7]])
})

it('one whose groups cannot be made begins all of it later', async () => {
  firing = ['A']
  finding = () => {
    storedFault = new Error('no room')
  }
  await notifiers.follow([table('pager', WAITS)])
  expect([find().problem, connection]).toEqual(['it cannot begin: no room', undefined])
  finding = () => {}
  await again()
  await eventually(() => expect([find().problem, known()]).toEqual(['', ['A']]))
  expect(connection).toBeDefined()
})

it('what a step of an escalation throws is logged, and it is passed on later', async () => {
  firing = ['A']
  const pager = { ...table('pager', WAITS), escalateTo: 'next', escalateAfterMs: 300_000 }
  await notifiers.follow([pager, table('next', `${WAITS}match = ['alertname=Nothing']\n`)])
  clock.advance(400_000)
  fault = new Error('broken')
  notifiers.sweep()
  expect([known('next'), logged]).toEqual([[], ['the work of a notifier has failed']])
  await eventually(() => {
    notifiers.sweep()
    expect(known('next')).toEqual(['A'])
  })
})

it('others are told of one that fails though a step of that has thrown before', async () => {
  await notifiers.follow([table('pager', WAITS), table('other', WAITS)])
  const broken = find('other')
  const observe = broken.observe.bind(broken)
  let calls = 0
  broken.observe = (alert) => {
    if (++calls === 1) throw new Error('broken')
    observe(alert)
  }
  Object.assign(find(), { failingSinceMs: clock.wallMs() })
  clock.advance(300_000)
  notifiers.sweep()
  expect(logged).toEqual(['the notifiers of a tenant cannot be told of those that fail'])
  await eventually(() => {
    notifiers.sweep()
    expect(known('other')).toEqual(['CinnabarNotifierFails'])
  })
})

it('one that another user of the same name puts knows nothing of what waits for approval', async () => {
  const of = (user: number): NotifierTable => {
    const reader = () => ({ userId: user, tenant: 'default', name: 'ann', role: 'admin' })
    const origin: NotifierOrigin = {
      author: 'ann',
      user,
      problem: '',
      reader,
      read: async () => '',
      addressFor: async () => '',
    }
    return { ...table('pager', `${WAITS}approvals = true\nrole = "admin"\n`), origin }
  }
  await notifiers.follow([of(1)])
  const waiting = alertOfPending({ type: BasicType.REC, value: [{ name: 'state', value: 'waiting' }] } as never, 1)
  expect(waiting && find().groups?.take(waiting)).toBe(true)
  await notifiers.follow([{ ...of(1), sendResolved: false }])
  expect(find().groups?.approvals()).toHaveLength(1)
  await notifiers.follow([of(2)])
  expect(find().groups?.approvals()).toEqual([])
})

it('one that is removed while it begins in vain says nothing', async () => {
  finding = () => {
    notifiers.stop()
    throw new Error('no room')
  }
  await notifiers.follow([table('pager', WAITS)])
  expect([logged, find().problem]).toEqual([[], ''])
})
