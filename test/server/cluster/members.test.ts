/** Who was heard, and who leads by that. */
import { expect, test } from 'vitest'
import type { Alive } from '../../../server/cluster/alive.ts'
import { AwakeTime, Members } from '../../../server/cluster/members.ts'
import { NOWHERE } from '../../../storage/sqlite/log-places.ts'

const LEASE_MS = 1_000

function alive(node: string, more: Partial<Alive> = {}): Alive {
  return {
    node,
    run: 'r',
    role: 'follower',
    epoch: 0,
    since: 0,
    address: `${node}:7654`,
    place: { ...NOWHERE, log: 1, epoch: 1, sequence: 1 },
    lagMs: 0,
    obstacle: undefined,
    leaves: false,
    format: 1,
    version: 'v',
    configuration: 'c',
    answers: true,
    ...more,
  }
}

function members() {
  const time = { now: 0 }
  const nodes = ['n1', 'n2', 'n3'].map((name) => ({ name, host: name, port: 7654 }))
  const made = new Members({ node: 'n1', nodes, leaseMs: LEASE_MS, now: () => time.now })
  return { time, made }
}

test('a leader is one while it is heard, and longer while it starts', () => {
  const { time, made } = members()
  expect(made.take(alive('n2', { role: 'starting', epoch: 1 }))).toBe(true)
  time.now = 4_999
  expect(made.isLeaderless()).toBe(false)
  expect(made.take(alive('n2', { role: 'leader', epoch: 1 }))).toBe(false)
  time.now += 999
  expect(made.isLeaderless()).toBe(false)
  time.now += 1
  expect(made.isLeaderless()).toBe(true)
  expect(made.isLeaderless(100)).toBe(false)
})

test('an earlier epoch does not count while a later one is heard', () => {
  const { time, made } = members()
  made.take(alive('n2', { role: 'leader', epoch: 5 }))
  expect(made.take(alive('n3', { role: 'leader', epoch: 4 }))).toBe(false)
  expect(made.leader?.node).toBe('n2')
  expect(made.take(alive('n3', { role: 'leader', epoch: 6 }))).toBe(true)
  // A later log counts more than a later epoch.
  const place = { ...NOWHERE, log: 2 }
  expect(made.take(alive('n2', { role: 'leader', epoch: 1, place }))).toBe(true)
  time.now = 2 * LEASE_MS
  expect(made.take(alive('n3', { role: 'leader', epoch: 6 }))).toBe(true)
})

test('a node that says that it leads no more is not waited for', () => {
  const { made } = members()
  made.take(alive('n2', { role: 'leader', epoch: 5 }))
  expect(made.take(alive('n2', { leaves: true }))).toBe(true)
  expect(made.leader).toBeUndefined()
  expect(made.isLeaderless()).toBe(true)
})

test('one that is about to take over is waited for, but not for ever', () => {
  const { time, made } = members()
  time.now = 2 * LEASE_MS
  for (let beat = 0; beat < 20; beat++) {
    made.take(alive('n2', { role: 'starting' }))
    expect(made.isLeaderless()).toBe(false)
    time.now += 200
  }
  time.now += 1_000
  made.take(alive('n2', { role: 'starting' }))
  expect(made.isLeaderless()).toBe(true)
})

test('two that are about to take over keep the third waiting no longer than one', () => {
  const { time, made } = members()
  time.now = 2 * LEASE_MS
  for (let beat = 0; beat < 25; beat++) {
    made.take(alive('n2', { role: 'starting' }))
    made.take(alive('n3', { role: 'starting' }))
    expect(made.isLeaderless()).toBe(false)
    time.now += 200
  }
  made.take(alive('n2', { role: 'starting' }))
  made.take(alive('n3', { role: 'starting' }))
  expect(made.isLeaderless()).toBe(true)
  // One that has given up, and begins again, is waited for again.
  made.take(alive('n2'))
  expect(made.isLeaderless()).toBe(true)
  made.take(alive('n2', { role: 'starting' }))
  expect(made.isLeaderless()).toBe(false)
})

test('one that was silent while it took over, and takes over again, is waited for again', () => {
  const { time, made } = members()
  time.now = 2 * LEASE_MS
  made.take(alive('n2', { role: 'starting' }))
  // A silence that is shorter makes no other attempt of it.
  time.now += 1.5 * LEASE_MS
  made.take(alive('n2', { role: 'starting' }))
  time.now += 3.5 * LEASE_MS
  expect(made.isLeaderless()).toBe(true)
  made.take(alive('n2', { run: 'another', role: 'starting' }))
  expect(made.isLeaderless()).toBe(false)
  for (let beat = 0; beat < 5; beat++) {
    made.take(alive('n2', { run: 'another', role: 'starting' }))
    expect(made.isLeaderless()).toBe(false)
    time.now += LEASE_MS - 1
  }
  time.now += 5
  made.take(alive('n2', { run: 'another', role: 'starting' }))
  expect(made.isLeaderless()).toBe(true)
})

test('those go first that are in a newer log, then those with a smaller name, and only if they could lead', () => {
  const { made } = members()
  const own = { node: 'n2', place: { ...NOWHERE, log: 1, epoch: 1, sequence: 5 } }
  made.take(alive('n1', { place: own.place }))
  expect(made.rank(own)).toBe(1)
  made.take(alive('n3', { place: own.place }))
  expect(made.rank(own)).toBe(1)
  made.take(alive('n3', { place: { ...own.place, log: 2 } }))
  expect(made.rank(own)).toBe(2)
  for (const hindrance of [{ obstacle: 'its disk is full' }, { lagMs: 2 * LEASE_MS }, { leaves: true }]) {
    made.take(alive('n3', { place: { ...own.place, log: 2 }, ...hindrance }))
    expect(made.rank(own)).toBe(1)
  }
})

test('who goes first does not depend on how far the others were in the log when they were last heard', () => {
  const { made } = members()
  const own = { node: 'n2', place: { ...NOWHERE, log: 1, epoch: 2, sequence: 5 } }
  made.take(alive('n1', { place: { ...own.place, epoch: 1, sequence: 3 } }))
  made.take(alive('n3', { place: { ...own.place, sequence: 7 } }))
  expect(made.rank(own)).toBe(1)
})

test('nodes that are not configured are kept up to a number, and do not decide about the log', () => {
  const { made } = members()
  for (let node = 0; node < 20; node++) made.take(alive(`x${node}`))
  expect(made.ignored).toBe(4)
  const own = { role: 'follower', place: NOWHERE, lagMs: 0, obstacle: undefined, version: 'v' } as const
  const states = made.states(own)
  expect(states.map(({ name }) => name)).toHaveLength(3 + 16)
  // Their addresses are not known, whatever they say.
  expect(new Set(states.map(({ address }) => address))).toEqual(new Set(['n1:7654', 'n2:7654', 'n3:7654', '']))
  expect(made.places()).toEqual([])
  made.take(alive('n3'))
  expect(made.places()).toHaveLength(1)
})

test('a node whose database is in an earlier log than that of the leader could not lead', () => {
  const { made } = members()
  const at = (log: number) => ({ ...NOWHERE, log, epoch: 1, sequence: 9 })
  const own = { role: 'follower', place: at(4), lagMs: 0, obstacle: undefined, version: 'v' } as const
  made.take(alive('n2', { role: 'leader', epoch: 2, place: at(4) }))
  made.take(alive('n3', { place: at(3) }))
  const obstacles = (place = own.place) => made.states({ ...own, place }).map(({ obstacle }) => obstacle)
  expect(obstacles()).toEqual([undefined, undefined, 'it is in log 3, and the cluster in 4'])
  expect(obstacles(at(2))[0]).toBe('it is in log 2, and the cluster in 4')
  made.take(alive('n3', { place: at(3), obstacle: 'its disk is full' }))
  expect(obstacles()[2]).toBe('its disk is full')
  made.take(alive('n3', { place: at(4) }))
  expect(obstacles()).toEqual([undefined, undefined, undefined])
})

test('a freeze counts as one step', () => {
  let now = 0
  const awake = new AwakeTime(() => now, 100)
  now = 60
  expect(awake.now()).toBe(60)
  now = 1_000_000
  expect(awake.now()).toBe(160)
  now += 10
  expect(awake.now()).toBe(170)
})
