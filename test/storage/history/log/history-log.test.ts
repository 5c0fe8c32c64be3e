/** Histories of two nodes over a real log: what one has recorded is at the other, once, whoever leads when. */
import { rmSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Log } from '../../../../storage/replicated/log.ts'
import { eventually } from '../../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../../support/nats.ts'
import { NOW, TestHistoryNode } from './test-history-node.ts'

let nats: NatsServers
// Skipped where there is no nats-server.
describe.skipIf(natsMissing !== undefined)('the log of histories', () => {
  let [one, other]: TestHistoryNode[] = []
  let number = 0
  let cluster = ''

  beforeAll(async () => {
    nats = await NatsServers.start(1)
  })
  afterAll(() => nats?.stop())

  beforeEach(() => {
    cluster = `main${++number}`
    one = new TestHistoryNode(() => nats.urls)
    other = new TestHistoryNode(() => nats.urls)
  })
  afterEach(async () => {
    for (const node of [one, other]) {
      await node?.close().catch(() => {})
      if (node !== undefined) rmSync(node.directory, { recursive: true })
    }
  })

  const nodes = (): [TestHistoryNode, TestHistoryNode] => [one as TestHistoryNode, other as TestHistoryNode]

  it('has what was recorded at the node that follows, with the position and the losses', async () => {
    const [leader, follower] = nodes()
    await follower.follow(cluster)
    await leader.lead(cluster, 1)
    leader.take(['a', 'b'], 1)
    await leader.stored()
    leader.take(['a', 'b'], 2, [{ native: '', fromMs: NOW, toMs: NOW + 1, count: 3, reason: 'why' }])
    leader.logged.describe('acme', {
      native: 'test.load',
      families: [{ name: 'load', type: 'gauge', help: 'Load', unit: '' }],
    })
    await leader.stored()
    await eventually(() => expect(follower.transaction).toBe(4))
    await eventually(() => expect(follower.lines()).toEqual(leader.lines()))
    expect(follower.lines()).toEqual(['a 1 1', 'a 2 2', 'b 1 2', 'b 2 3'])
    expect(follower.losses()).toMatchObject([{ count: 3, reason: 'why' }])
    await eventually(() => expect(follower.history.families('acme', undefined, 5)).toMatchObject([{ help: 'Load' }]))
  })

  it('has what is too much for one record in several', async () => {
    const [leader, next] = nodes()
    await leader.lead(cluster, 1)
    const long = Array.from({ length: 3 }, (_, at) => `${at}`.repeat(3 << 20))
    for (const host of long) leader.take([host], 1)
    await leader.stored()
    expect(leader.transaction).toBe(3)
    expect(leader.history.log.place?.sequence).toBeGreaterThan(4)
    await next.lead(cluster, 2)
    expect(next.lines()).toEqual(leader.lines())
  })

  it('is read to its end before another node leads: nothing that was stored is missing, and nothing twice', async () => {
    const [leader, next] = nodes()
    await leader.lead(cluster, 1)
    for (let at = 1; at <= 5; at++) {
      leader.take(['a'], at)
      await leader.stored()
    }
    await next.lead(cluster, 2)
    expect(next.lines()).toEqual(leader.lines())
    expect(next.transaction).toBe(5)
    expect(next.losses()).toEqual([])
    expect(next.history.figures().tenants.get('acme')).toMatchObject({ samples: 5 })
  })

  it('takes nothing of a node that has led before, which may follow then', async () => {
    const [before, next] = nodes()
    await before.lead(cluster, 1)
    before.take(['a'], 1)
    await before.stored()
    await next.lead(cluster, 2)
    before.take(['a'], 2)
    await before.stored()
    expect(before.failure).toMatchObject({ code: 'DEPOSED' })
    expect(before.lines()).toEqual(['a 1 1'])
    next.take(['b'], 3)
    await next.stored()
    await before.close()
    before.open()
    await expect(before.lead(cluster, 1)).rejects.toMatchObject({ code: 'DEPOSED' })
    await before.log.close()
    await before.follow(cluster)
    await eventually(() => expect(before.lines()).toEqual(['a 1 1', 'b 3 3']))
  })

  it('has what is dropped, and tenants that are removed, where they come', async () => {
    const [leader, follower] = nodes()
    await follower.follow(cluster)
    await leader.lead(cluster, 1)
    leader.take(['a', 'b'], 1)
    const matcher = { label: 'host', operator: '=', text: 'a' } as const
    for (const _ of leader.logged.drop({ tenant: 'acme', matchers: [matcher] })) await turn()
    leader.take(['a'], 2)
    await leader.stored()
    expect(leader.lines()).toEqual(['a 2 2', 'b 1 2'])
    await eventually(() => expect(follower.lines()).toEqual(['a 2 2', 'b 1 2']))
    expect(() =>
      leader.logged.drop({ tenant: 'acme', matchers: [{ ...matcher, operator: '=~', text: '(' }] }).next(),
    ).toThrow('is no regular expression')
    leader.logged.removeTenant('acme')
    leader.take(['c'], 3)
    await leader.stored()
    await eventually(() => expect(follower.lines()).toEqual(['c 3 3']))
  })

  it('goes on where a node was that is opened again', async () => {
    const [leader, follower] = nodes()
    await follower.follow(cluster)
    await leader.lead(cluster, 1)
    leader.take(['a'], 1)
    await leader.stored()
    await eventually(() => expect(follower.transaction).toBe(1))
    await follower.close()
    leader.take(['a'], 2)
    await leader.stored()
    follower.open()
    await follower.follow(cluster)
    await eventually(() => expect(follower.lines()).toEqual(['a 1 1', 'a 2 2']))
    expect(follower.losses()).toEqual([])
  })

  it('that is gone is founded anew by who leads; others go on with it, and state what they have missed', async () => {
    const [leader, follower] = nodes()
    await follower.follow(cluster)
    await leader.lead(cluster, 1)
    leader.take(['a'], 1)
    await leader.stored()
    await eventually(() => expect(follower.transaction).toBe(1))
    await follower.close()
    leader.take(['a'], 2)
    await leader.stored()
    await leader.close()
    const { urls: servers } = nats
    const logs = await Log.connect({ cluster, node: 'b', servers, replicas: 1, maxBytes: 1, content: 'history' })
    await logs.removeBefore(2)
    await logs.close()
    leader.open()
    await leader.lead(cluster, 2)
    leader.take(['a'], 3)
    await leader.stored()
    expect([leader.history.log.place?.log, leader.losses()]).toEqual([2, []])
    follower.open()
    await follower.follow(cluster)
    await eventually(() => expect(follower.lines()).toEqual(['a 1 1', 'a 3 3']))
    expect(follower.losses()).toMatchObject([
      { native: '', fromMs: NOW + 1, reason: expect.stringContaining('missed') },
    ])
  })

  it.each([['more'], ['as many'], ['fewer']])(
    'that another node has founded under the same number, with %s records, is no other one: both have all of it',
    async (how) => {
      const [one, other] = nodes()
      await one.lead(cluster, 1)
      for (let at = 1; at <= 3; at++) {
        one.take(['a'], at)
        await one.stored()
      }
      await one.close()
      const { urls: servers } = nats
      const logs = await Log.connect({ cluster, node: 'b', servers, replicas: 1, maxBytes: 1, content: 'history' })
      await logs.removeBefore(2)
      await logs.close()
      await other.lead(cluster, 2)
      const records = how === 'more' ? 5 : how === 'as many' ? 3 : 1
      for (let at = 11; at < 11 + records; at++) {
        other.take(['b'], at)
        await other.stored()
      }
      const known = other.lines()
      expect([known.length, other.history.log.place?.log]).toEqual([records, 1])
      await other.close()
      one.open()
      await one.lead(cluster, 3)
      if (how === 'fewer') {
        // It is not known what the end of it was: it is taken for one that was cut off.
        expect(one.history.log.place?.log).toBe(2)
        return
      }
      expect(one.lines()).toEqual(['a 1 1', 'a 2 2', 'a 3 3', ...known])
      expect(one.losses()).toMatchObject([{ native: '', reason: expect.stringContaining('missed') }])
      one.take(['c'], 20)
      await one.stored()
      other.open()
      await other.follow(cluster)
      await eventually(() => expect(other.lines()).toEqual([...known, 'c 20 20']))
    },
  )

  it('has a node that follows say when it has applied what was there', async () => {
    const [leader, follower] = nodes()
    await leader.lead(cluster, 1)
    leader.take(['a'], 1)
    await leader.stored()
    await follower.follow(cluster)
    await eventually(() => expect(follower.reached).toEqual(['a 1 1']))
  })
})
