/** A copy of the leader's database that an operator asks for, over a log and a bus in memory. */
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { Copying } from '../../../server/cluster/copying.ts'
import { Reports } from '../../../server/cluster/reports.ts'
import { LEASE_MS, ModelCluster, type ModelNode } from './model.ts'

let cluster: ModelCluster
afterEach(() => cluster.end())

describe('a copy that an operator asks for', () => {
  test('replaces the database of a follower, which follows again', async () => {
    cluster = await ModelCluster.running(3)
    const { leader } = cluster
    await cluster.write(5)
    await cluster.run(LEASE_MS)
    const [node] = cluster.othersThan(leader) as [ModelNode]
    const had = [...node.disk.content]
    await node.node.copy()
    await expect(node.node.copy()).rejects.toThrow(`the database of ${leader.name} is being copied already`)
    await cluster.write(5)
    await cluster.until(() => node.node.copyState.phase === 'done')
    await cluster.write(2)
    await cluster.run(LEASE_MS)
    for (const kept of cluster.kept) expect(kept).toEqual(cluster.acknowledged)
    expect(node.aside.map(({ content }) => content)).toEqual([had])
    expect(cluster.leaders).toEqual([leader.name])
    // It may lead, and may be asked again.
    leader.kill()
    await cluster.until(() => cluster.leaders.length > 0)
    await cluster.write(2)
  })

  test('is refused by the node that leads, and where none does', async () => {
    cluster = await ModelCluster.running(2)
    const { leader } = cluster
    await expect(leader.node.copy()).rejects.toThrow('this node leads')
    const [node] = cluster.othersThan(leader) as [ModelNode]
    cluster.logs.hasMajority = false
    leader.kill()
    await cluster.run(5 * LEASE_MS)
    await expect(node.node.copy()).rejects.toThrow('no node leads, so there is no database to copy')
    expect(node.node.copyState.phase).toBe('none')
  })

  test('fails if the leader ends meanwhile: the database is as it was, and the node may lead', async () => {
    cluster = await ModelCluster.running(2)
    const { leader } = cluster
    await cluster.write(5)
    await cluster.run(LEASE_MS)
    const [node] = cluster.othersThan(leader) as [ModelNode]
    await node.node.copy()
    await cluster.until(() => cluster.copies.length > 0)
    leader.kill()
    await cluster.until(() => node.leads)
    expect(node.node.copyState).toMatchObject({ phase: 'failed', problem: 'no answer' })
    expect(node.aside).toEqual([])
    await cluster.write(1)
  })
})

test('a copy is given up when its leader leads no more, since that may have ended before it answered', async () => {
  const copying = new Copying({
    config: { name: 'main', node: 'n2', nodes: [], leaseMs: LEASE_MS },
    log: pino({ level: 'silent' }),
    reports: new Reports(pino({ level: 'silent' }), 'n2'),
    copy: (_leader, _progress, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('it was given up')))),
  })
  const copied = copying.run('n1', 'was to be replaced', new AbortController().signal)
  copying.followLeader('n1')
  expect(copying.state.phase).toBe('copying')
  copying.followLeader('n3')
  expect(await copied).toBe(false)
  expect(copying.state).toMatchObject({ phase: 'failed', problem: 'it was given up' })
  expect(copying.neededBy(false)).toContain('; that of n1 could not be copied: it was given up')
})
