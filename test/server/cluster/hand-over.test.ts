/** A leader that hands over: another node leads soon, and one only tries to. Over a log and a bus in memory. */
import { afterEach, expect, test } from 'vitest'
import { LEASE_MS, ModelCluster, type ModelNode } from './model.ts'

let cluster: ModelCluster
afterEach(() => cluster.end())

/** The one that leads, of nodes n1, n2 ... that run. */
async function running(count: number): Promise<ModelNode> {
  cluster = await ModelCluster.running(count)
  return cluster.leader
}

const others = (leader: ModelNode): ModelNode[] => cluster.othersThan(leader)

test('hands over within a second, and does not lead again for a while', async () => {
  const leader = await running(3)
  await cluster.write(5)
  await cluster.run(LEASE_MS)
  await expect((others(leader)[0] as ModelNode).node.handOver()).rejects.toThrow('does not lead')
  const handedOver = leader.node.handOver()
  const ms = await cluster.until(() => others(leader).some(({ leads }) => leads))
  await handedOver
  expect(ms).toBeLessThan(1_000)
  const [next] = others(leader).filter(({ leads }) => leads)
  next?.kill()
  await cluster.until(() => cluster.leaders.length > 0)
  expect(cluster.leaders).not.toContain(leader.name)
  for (const node of others(leader)) node.kill()
  await cluster.until(() => leader.leads)
  expect(leader.disk.content.filter((id) => cluster.acknowledged.includes(id))).toEqual(cluster.acknowledged)
})

test.each([0, 100, 200, 300])(
  'hands over under a feed %i ms after a beat, and only one node tries to lead',
  async (ms) => {
    const leader = await running(3)
    await cluster.run(ms)
    await cluster.write(5)
    const handedOver = leader.node.handOver()
    await cluster.until(() => others(leader).some(({ leads }) => leads))
    await handedOver
    await cluster.run(LEASE_MS)
    expect(cluster.leaders).toEqual([others(leader)[0]?.name])
    const tried = others(leader).flatMap(({ logged }) => logged.filter((line) => line.includes('could not lead')))
    expect(tried).toEqual([])
  },
)

test('is stopped: hands over, and its run ends', async () => {
  const leader = await running(2)
  leader.node.stop()
  await cluster.until(() => others(leader)[0]?.leads === true, 1_000)
  expect(leader.process?.ended).toBe('stopped')
  const [next] = others(leader)
  next?.node.stop()
  await cluster.run(100)
  expect(next?.process?.ended).toBe('stopped')
  expect(cluster.leaders).toEqual([])
})

test('hands over after a freeze, while another node leads: it follows that one, and keeps nothing that the log has not', async () => {
  const leader = await running(3)
  await cluster.write(5)
  leader.process?.clock.freeze()
  leader.process?.server?.write()
  const handedOver = leader.node.handOver()
  await cluster.until(() => cluster.leaders.length === 2)
  const [next] = others(leader).filter(({ leads }) => leads)
  leader.process?.clock.thaw()
  await cluster.until(() => !leader.leads, 1_000)
  await handedOver
  expect(cluster.leaders).toEqual([next?.name])
  await cluster.write(5)
  await cluster.run(LEASE_MS)
  expect(leader.process?.ended).toBe('not yet')
  expect(leader.logged).toContain(`node ${leader.name} no longer leads main, and follows`)
  expect(cluster.kept).toEqual([cluster.acknowledged, cluster.acknowledged, cluster.acknowledged])
})

test('hands over while it is cut from NATS: what it has accepted cannot be stored, so its process ends, and the next follows', async () => {
  const leader = await running(3)
  leader.isCut = true
  leader.process?.server?.write()
  const handedOver = leader.node.handOver()
  const ms = await cluster.until(() => !leader.leads)
  await handedOver
  expect(ms).toBeGreaterThanOrEqual(20_000)
  expect(leader.process?.ended).toEqual(new Error('the server could not be stopped'))
  leader.isCut = false
  leader.start()
  await cluster.write(5)
  await cluster.run(LEASE_MS)
  expect(leader.leads).toBe(false)
  expect(cluster.kept).toEqual([cluster.acknowledged, cluster.acknowledged, cluster.acknowledged])
})

test('a node that is still opening its database when another one leads gives up, and deposes nobody', async () => {
  const leader = await running(3)
  await cluster.write(5)
  const [slow, next] = others(leader) as [ModelNode, ModelNode]
  slow.openingMs = 10 * LEASE_MS
  leader.kill()
  // The others wait for it no longer than for one that has begun an epoch.
  await cluster.until(() => next.leads)
  await cluster.write(5)
  await cluster.until(() => slow.logged.some((line) => line.includes('could not lead')))
  await cluster.run(LEASE_MS)
  expect(cluster.leaders).toEqual([next.name])
  expect([...cluster.logs.leaders.values()]).toEqual([leader.name, next.name])
  expect(slow.disk.content).toEqual(next.disk.content)
})
