/** Notifiers as they come, change and go: their users and channels, the work that a change takes, and what they know of each other. */
import { setImmediate as turn } from 'node:timers/promises'
import { RE2JS } from 're2js'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { GapReason } from '../../../../protocol/monitor/constants.ts'
import { writeGap } from '../../../../protocol/monitor/message.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { OwnChannel } from '../../../../server/kit/delivery.ts'
import type { AlertRow } from '../../../../server/kit/expressions.ts'
import type { Kit } from '../../../../server/kit/kit.ts'
import type { ChannelConnection } from '../../../../server/kit/push.ts'
import type { Steps } from '../../../../server/kit/running.ts'
import { loadConfig } from '../../../../server/start/config.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import type { NotifierOrigin, NotifierTable } from '../../../../server/wings/notify/bodies.ts'
import type { NotifyGroups } from '../../../../server/wings/notify/groups.ts'
import { Notifiers } from '../../../../server/wings/notify/notifiers.ts'
import type { IsMuted } from '../../../../server/wings/notify/running-notifier.ts'
import type { Change } from '../../../../storage/store.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const CHANNEL = 'default/notify:pager:'
const WEBHOOK = 'url = "webhook+https://h.example/"\ngroup_wait = "1h"'
const HEARTBEAT = 'url = "heartbeat+https://h.example/"'

class Channel {
  readonly delivered = {
    owner: { tenant: 'default' },
    bindings: new Map([[1, {}]]),
    queue: {
      counts: { queued: 0, inFlight: 0 },
      commit: (id: number, through: boolean) => done.push(`commit ${id} ${through}`),
    },
    outbox: {
      drained: () => {},
      failed: (error: unknown) => {
        throw error
      },
    },
  }
  state: OwnChannel['state'] = 'free'
  connection: ChannelConnection | undefined
  #changed: () => void = () => {}

  onChange(changed: () => void): void {
    this.#changed = changed
  }

  async bind(): Promise<void> {
    if (failing === 'bind') throw new Error('no room')
  }

  attach(connection: ChannelConnection): void {
    this.connection = connection
    this.become('taken')
  }

  detach(): void {
    this.become('free')
  }

  become(state: OwnChannel['state']): void {
    if (this.state === 'deleted') return
    this.state = state
    this.#changed()
  }
}

let clock: FakeClock
let channels: Map<string, Channel>
let done: string[]
/** Holds up the ends of users. */
let gate: Promise<void> | undefined
let work: (steps: Steps<unknown>) => unknown
let notifiers: Notifiers
/** What cannot be done now. */
let failing: 'channelOf' | 'bind' | undefined
/** The alerts that there are. */
let rows: AlertRow[]
/** What was stored. */
let stored: Change[]
/** Whether an alert may be read, by its labels. */
let mayRead: (textOf: (name: string) => string | undefined) => boolean

beforeEach(() => {
  clock = new FakeClock()
  channels = new Map()
  done = []
  gate = undefined
  failing = undefined
  rows = []
  stored = []
  mayRead = () => true
  work = finish
  const delivery = {
    async channelOf({ tenant, name }: { readonly tenant: string; readonly name: string }) {
      const key = `${tenant}/${name}`
      if (failing === 'channelOf') throw new Error('no room')
      const channel = channels.get(key) ?? new Channel()
      channels.set(key, channel)
      done.push(`begin ${key}`)
      return channel
    },
    haltOthers: (_prefix: string, isWanted: (user: { readonly tenant: string; readonly name: string }) => boolean) =>
      [...channels.keys()]
        .map((key) => ({ tenant: key.split('/')[0] ?? '', name: key.split('/')[1] ?? '' }))
        .filter((user) => !isWanted(user)),
    async endOwn({ tenant, name }: { readonly tenant: string; readonly name: string }) {
      const key = `${tenant}/${name}`
      await gate
      channels.get(key)?.become('deleted')
      if (channels.delete(key)) done.push(`end ${key}`)
    },
  }
  const journal = { change: (change: Change) => void stored.push(change), whenStored: () => Promise.resolve() }
  const kit = {
    clock,
    log: { warn() {}, info() {}, error() {} },
    poll: { work: async (_party: unknown, steps: Steps<unknown>) => work(steps) },
    expressions: { watch: { queryOf: () => undefined, saidOf: () => undefined, problemOf: () => 'late' } },
    peer: {
      delivery,
      stored: { journal, notifyGroups: [], notifyAlerts: [], alerts: () => rows },
      view: {
        tenants: () => ['default'],
        readRights: () => ({
          mayReadRemembered: (_owner: unknown, _metric: string, textOf: (name: string) => string | undefined) =>
            mayRead(textOf),
          covers: () => true,
        }),
        waiting: () => [],
      },
    },
  }
  const log = { add: () => {}, forget: (place: string) => void done.push(`forget ${place}`) }
  const tokens = { issue: () => '' }
  const isMuted: IsMuted = function* () {
    yield
    return false
  }
  notifiers = new Notifiers(kit as unknown as Kit, log as never, isMuted, tokens as never)
})

/** One that somebody has put; `told` and `more` are the other keys of its table. */
function put(name: string, more = '', told = WEBHOOK): NotifierTable {
  const toml = `[[notify]]\nname = "${name}"\n${told}\n${more}`
  const [table] = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) }).notify
  if (table === undefined) throw new Error('there is no table')
  const reader = () => ({ userId: 1, tenant: 'default', name: 'ann', role: 'author' })
  return {
    ...table,
    body: '',
    origin: { author: 'ann', user: 1, problem: '', reader, read: async () => '', addressFor: async () => '127.0.0.1' },
  }
}

const failure: NotifiedAlert = {
  kind: 'failure',
  labels: [
    ['alertname', 'CinnabarNotifierFails'],
    ['notifier', 'other'],
  ],
  annotations: [],
  state: 'firing',
  value: '1',
  sinceMs: 1,
  firedMs: 1,
  endedMs: 0,
  group: 'notifiers',
  rule: 'CinnabarNotifierFails',
  fingerprint: 'f0',
}

it('one that is put again while that of its name ends has a channel of its own, and keeps it', async () => {
  await notifiers.follow([put('pager')])
  let open = (): void => {}
  gate = new Promise((resolve) => {
    open = resolve
  })
  const changes = [notifiers.follow([]), notifiers.follow([put('pager')])]
  for (let turns = 0; turns < 5; turns++) await turn()
  open()
  await Promise.all(changes)
  expect(done).toEqual([`begin ${CHANNEL}`, 'forget default/pager', `end ${CHANNEL}`, `begin ${CHANNEL}`])
  expect(channels.get(CHANNEL)?.state).toBe('taken')
})

it('one that is changed twice before it has begun knows what was told', async () => {
  await notifiers.follow([put('pager')])
  notifiers.find('default', 'pager')?.observe(failure)
  await Promise.all([
    notifiers.follow([put('pager', 'send_resolved = false\n')]),
    notifiers.follow([put('pager', 'external_url = "https://c.example"\n')]),
  ])
  const pager = notifiers.find('default', 'pager')
  expect(pager?.groups?.alerts().map(({ fingerprint }) => fingerprint)).toEqual(['f0'])
  expect([...(pager?.failures() ?? [])]).toHaveLength(1)
})

it('nothing is kept of what one has told whose place a heartbeat takes', async () => {
  await notifiers.follow([put('pager')])
  notifiers.find('default', 'pager')?.observe(failure)
  await notifiers.follow([put('pager', 'send_resolved = false\n')])
  expect(stored.filter((change) => 'remove' in change)).toEqual([])
  await notifiers.follow([put('pager', '', HEARTBEAT)])
  const notifier = 'default/pager'
  expect(stored.filter((change) => 'remove' in change)).toMatchObject([
    { remove: 'notify alert', notifier, fingerprint: 'f0' },
    { remove: 'notify group', notifier },
  ])
  await notifiers.follow([put('pager')])
  expect(notifiers.find('default', 'pager')?.groups?.alerts()).toEqual([])
})

it('one whose channel was removed says so, and can be made anew, as long as there is its tenant', async () => {
  const tables = [put('pager')]
  await notifiers.follow(tables)
  expect(notifiers.hasStopped).toBe(false)
  channels.get(CHANNEL)?.become('deleted')
  channels.delete(CHANNEL)
  const removed = notifiers.find('default', 'pager')
  expect([removed?.isStopped, removed?.problem, removed?.status?.().state]).toEqual([
    true,
    'its channel was removed',
    'stopped',
  ])
  expect(notifiers.hasStopped).toBe(true)
  await notifiers.follow(tables)
  expect(notifiers.hasStopped).toBe(false)
  expect(channels.get(CHANNEL)?.state).toBe('taken')
  await notifiers.follow([{ ...put('pager'), tenant: 'gone' }])
  channels.get(CHANNEL.replace('default', 'gone'))?.become('deleted')
  expect([notifiers.find('gone', 'pager')?.isStopped, notifiers.hasStopped]).toEqual([true, false])
})

it('no step of a change compiles more than one regular expression', async () => {
  const compile = vi.spyOn(RE2JS, 'compile')
  const waiting: (() => boolean)[] = []
  work = (steps) =>
    new Promise((resolve) => {
      waiting.push(() => {
        const { done, value } = steps.next()
        if (done === true) resolve(value)
        return done === true
      })
    })
  const more = `match = ['a=~"b+"', 'c=~"d+"']\ninhibit = [{ source = ['a=~"e+"'], target = ['a=~"f+"'] }]\n`
  const following = notifiers.follow(['one', 'two'].map((name) => put(name, more)))
  await turn()
  work = finish
  expect(compile).not.toHaveBeenCalled()
  const compiled: number[] = []
  while (waiting.length > 0) {
    const before = compile.mock.calls.length
    const step = waiting.shift() as () => boolean
    if (!step()) waiting.push(step)
    compiled.push(compile.mock.calls.length - before)
    await turn()
  }
  await following
  expect([Math.max(...compiled), compile.mock.calls.length]).toEqual([1, 8])
  compile.mockRestore()
})

/** Something was lost on the way to the notifier, which has heard of it. */
async function lose(reason: GapReason): Promise<void> {
  const writer = new XdrWriter()
  writeGap(writer, { transaction: 7, metric: 1, count: 3, from: 0, to: 0, reason })
  const connection = channels.get(CHANNEL)?.connection as ChannelConnection
  await new Promise<void>((written) => connection.writeValues(writer.copy(), written))
}

it('that another one fails goes on over a comparison after a loss', async () => {
  await notifiers.follow([put('pager')])
  const pager = notifiers.find('default', 'pager')
  pager?.observe(failure)
  await lose(GapReason.overflow)
  expect(pager?.counts.lost).toBe(3)
  expect(pager?.groups?.stateOf(failure)).toBe('firing')
})

describe('an alert of a rule that is named like that of a notifier that fails', () => {
  const times = { active: 1, fired: 1, kept: undefined, resolved: undefined, missing: undefined }
  const names = { rule: '["default","f","notifiers","CinnabarNotifierFails"]', labels: JSON.stringify(failure.labels) }
  const known = (): readonly NotifiedAlert[] => notifiers.find('default', 'pager')?.groups?.alerts() ?? []

  beforeEach(async () => {
    rows = [{ ...names, annotations: '[]', state: 'firing', value: '1', ...times }]
    await notifiers.follow([put('pager')])
  })

  it('goes on, also where its notifier is put again', async () => {
    expect(known()).toMatchObject([{ rule: 'CinnabarNotifierFails', state: 'firing' }])
    await notifiers.follow([put('pager', 'send_resolved = false\n')])
    notifiers.sweep()
    expect(known()).toMatchObject([{ state: 'firing' }])
    expect([...(notifiers.find('default', 'pager')?.failures() ?? [])]).toEqual([])
  })

  it.each([
    ['it', 'is told to nobody who may not read it', false],
    ['the other, which has its labels', 'is told whatever may be read', true],
  ])('%s %s', (_which, _what, fails) => {
    const pager = notifiers.find('default', 'pager')
    if (fails) pager?.observe({ ...failure, fingerprint: known()[0]?.fingerprint ?? '' })
    mayRead = () => false
    clock.jumpWall(3_600_000)
    const { groups } = pager as { readonly groups: NotifyGroups }
    expect(finish(groups.next())?.alerts.map(({ kind }) => kind)).toEqual(fails ? ['failure'] : undefined)
  })
})

it('what was lost is looked for when no transitions are under way any more, which say it in order', async () => {
  await notifiers.follow([put('pager')])
  fire('Lost')
  const known = (): readonly unknown[] => notifiers.find('default', 'pager')?.groups?.alerts() ?? []
  const { counts } = (channels.get(CHANNEL) as Channel).delivered.queue
  counts.queued = 1
  await lose(GapReason.restart)
  notifiers.sweep()
  expect(known()).toEqual([])
  // Until then it comes again at the next start.
  expect(done).not.toContain('commit 7 false')
  counts.queued = 0
  notifiers.sweep()
  expect(known()).toMatchObject([{ rule: 'Lost', state: 'firing' }])
  expect(done.filter((what) => what.startsWith('commit'))).toEqual(['commit 7 false'])
})

/** Alerts of these names fire. */
function fire(...names: readonly string[]): void {
  const times = { active: 1, fired: 1, kept: undefined, resolved: undefined, missing: undefined }
  rows = names.map((name) => ({
    rule: JSON.stringify(['default', 'f', 'g', name]),
    labels: JSON.stringify([['alertname', name]]),
    annotations: '[]',
    state: 'firing',
    value: '1',
    ...times,
  }))
}

/** The alerts that a notifier knows. */
const knownTo = (name: string): readonly string[] =>
  notifiers
    .find('default', name)
    ?.groups?.alerts()
    .map(({ rule, state }) => `${rule} ${state}`) ?? []

async function sweeps(): Promise<void> {
  for (let times = 0; times < 5; times++) {
    notifiers.sweep()
    await turn()
  }
}

/** What begins from now on does a step when it is told to. Gives what lets all of that go on until something holds, or to its end. */
function inSteps(): (holds?: () => boolean) => void {
  const waiting = new Set<() => boolean>()
  work = (steps) =>
    new Promise((resolve) => {
      waiting.add(() => {
        const { done, value } = steps.next()
        if (done === true) resolve(value)
        return done === true
      })
    })
  return (holds = () => false) => {
    for (let rounds = 0; rounds < 50 && !holds(); rounds++) for (const step of waiting) if (step()) waiting.delete(step)
  }
}

it('a comparison ends with the notifier that began it, and the next one of its name makes it', async () => {
  await notifiers.follow([put('pager')])
  fire('A', 'B', 'C', 'D')
  const old = notifiers.find('default', 'pager')
  const step = inSteps()
  const lost = lose(GapReason.restart)
  step(() => knownTo('pager').length === 2)
  await lost
  expect(knownTo('pager')).toEqual(['A firing', 'B firing'])
  work = finish
  await notifiers.follow([put('pager', 'send_resolved = false\n')])
  expect(knownTo('pager')).toEqual(['A firing', 'B firing', 'C firing', 'D firing'])
  stored.splice(0)
  step()
  await sweeps()
  expect(stored).toEqual([])
  expect(old?.groups?.alertCount).toBe(2)
})

it('a comparison of a notifier that is removed stores nothing', async () => {
  await notifiers.follow([put('pager')])
  fire('A', 'B', 'C', 'D')
  const step = inSteps()
  const lost = lose(GapReason.restart)
  step(() => knownTo('pager').length === 2)
  await lost
  await notifiers.follow([])
  stored.splice(0)
  step()
  await turn()
  expect(stored).toEqual([])
})

it('a comparison that waits for transitions is made by the next notifier of its name', async () => {
  await notifiers.follow([put('pager')])
  fire('Known')
  await lose(GapReason.restart)
  fire('Known', 'Lost')
  const { counts } = (channels.get(CHANNEL) as Channel).delivered.queue
  counts.queued = 1
  await lose(GapReason.restart)
  await notifiers.follow([put('pager', 'send_resolved = false\n')])
  await sweeps()
  expect(knownTo('pager')).toEqual(['Known firing'])
  counts.queued = 0
  await sweeps()
  expect(knownTo('pager')).toEqual(['Known firing', 'Lost firing'])
})

it.each<[string, (table: NotifierTable) => NotifierTable]>([
  ['matches', (table) => ({ ...table, match: [] })],
  [
    'may be read by its author',
    (table) => ({ ...table, origin: { ...(table.origin as NotifierOrigin), author: 'bob' } }),
  ],
])('one that is changed tells of what fires already and %s now', async (_what, change) => {
  const table = put('pager', "match = ['alertname=A']\n")
  fire('A', 'B')
  mayRead = (labels) => labels('alertname') === 'A'
  await notifiers.follow([table])
  await sweeps()
  expect(knownTo('pager')).toEqual(['A firing'])
  mayRead = () => true
  await notifiers.follow([{ ...change(table), match: [] }])
  await sweeps()
  expect(knownTo('pager')).toEqual(['A firing', 'B firing'])
  stored.splice(0)
  await notifiers.follow([{ ...change(table), match: [], sendResolved: false }])
  await sweeps()
  // Nobody is told twice.
  expect(stored.filter((change) => 'put' in change && change.put === 'notify alert')).toEqual([])
})

it('what is escalated while the next one is put again comes to that', async () => {
  const pager = { ...put('pager'), escalateTo: 'second', escalateAfterMs: 300_000 }
  const second = put('second', "match = ['alertname=Nothing']\n")
  fire('A', 'B', 'C')
  await notifiers.follow([pager, second])
  expect(knownTo('pager')).toHaveLength(3)
  clock.advance(400_000)
  const step = inSteps()
  notifiers.sweep()
  step(() => knownTo('second').length === 1)
  expect(knownTo('second')).toEqual(['A firing'])
  work = finish
  await notifiers.follow([pager, { ...second, sendResolved: false }])
  step()
  for (let times = 0; times < 5; times++) await turn()
  await sweeps()
  expect(knownTo('second')).toEqual(['A firing', 'B firing', 'C firing'])
  expect(notifiers.find('default', 'pager')?.counts.escalated).toBe(3)
})

it.each(['channelOf', 'bind'] as const)(
  'one that cannot begin, since %s fails, says so, begins ten seconds later, and goes on from what was told',
  async (what) => {
    await notifiers.follow([put('pager')])
    fire('A')
    await lose(GapReason.restart)
    failing = what
    await notifiers.follow([put('pager', "match = ['alertname=Nothing']\n")])
    const pager = notifiers.find('default', 'pager')
    const said = () => [pager?.problem, pager?.status?.().state, pager?.failingSinceMs]
    const failed = ['it cannot begin: no room', 'failed', clock.wallMs()]
    expect(said()).toEqual(failed)
    clock.advance(10_000)
    await sweeps()
    expect(said()).toEqual(failed)
    failing = undefined
    clock.advance(9_999)
    await sweeps()
    expect(said()).toEqual(failed)
    clock.advance(1)
    await sweeps()
    expect([said(), knownTo('pager')]).toEqual([['', 'telling', undefined], ['A firing']])
  },
)

it('one that could not begin and is removed begins no more', async () => {
  failing = 'channelOf'
  await notifiers.follow([put('pager')])
  failing = undefined
  await notifiers.follow([])
  clock.advance(10_000)
  await sweeps()
  expect(channels.size).toBe(0)
})
