/** The nats-server that leads the log has less of it than another, or a record that no other has. */
import { afterEach, expect, test } from 'vitest'
import { LEASE_MS, ModelCluster } from './model.ts'

let cluster: ModelCluster
afterEach(() => cluster.end())

const logged = (): string[] => [...cluster.nodes.values()].flatMap(({ logged }) => logged)

/** The leader of three nodes is gone, and is not heard any more when the nats-servers answer again. */
async function withoutLeader(): Promise<void> {
  cluster = await ModelCluster.running(3)
  await cluster.write(20)
  cluster.leader.kill()
  cluster.logs.hasMajority = false
  await cluster.run(5 * LEASE_MS)
  cluster.logs.hasMajority = true
}

test('another one is asked to lead it, once, by one node, and no missing node is waited for', async () => {
  await withoutLeader()
  cluster.logs.behind = 7
  expect(await cluster.until(() => cluster.leaders.length > 0)).toBeLessThan(4 * LEASE_MS)
  expect(cluster.logs.logs).toHaveLength(1)
  await cluster.write(3)
  cluster.at('n1').start()
  await cluster.run(3 * LEASE_MS)
  for (const kept of cluster.kept) expect(kept).toEqual(cluster.acknowledged)
  expect(logged().filter((line) => line.includes('was asked to lead it'))).toHaveLength(1)
})

test('what a follower was promised, and the log has lost, keeps it from nothing', async () => {
  cluster = await ModelCluster.running(3)
  cluster.logs.promised = 1
  await cluster.write(20)
  await cluster.run(3 * LEASE_MS)
  cluster.leader.kill()
  expect(await cluster.until(() => cluster.leaders.length > 0)).toBeLessThan(2 * LEASE_MS)
  await cluster.write(3)
})

test('if none has more, that is asked now and then, and the missing node is waited for', async () => {
  await withoutLeader()
  cluster.logs.newest?.records.splice(-7)
  await cluster.run(25_000)
  expect(cluster.leaders).toEqual([])
  expect(logged().filter((line) => line.includes('was asked to lead it'))).toHaveLength(3)
  cluster.at('n1').start()
  await cluster.until(() => cluster.leaders.length > 0)
  expect(cluster.logs.logs).toHaveLength(2)
  for (const kept of cluster.kept) expect(kept).toEqual(cluster.acknowledged)
})

test('a database that the leading nats-server does not know stays where it is, and another one is asked to lead the log', async () => {
  await withoutLeader()
  const [n2, n3] = [cluster.at('n2'), cluster.at('n3')]
  for (const node of [n2, n3]) node.kill()
  cluster.logs.different = n2.disk.place.sequence
  for (const node of [n2, n3]) node.start()
  await cluster.until(() => cluster.leaders.length > 0)
  expect(logged().filter((line) => line.includes('has another record than the database'))).not.toEqual([])
  expect([...n2.aside, ...n3.aside, ...cluster.copies]).toEqual([])
  await cluster.write(3)
  cluster.at('n1').start()
  await cluster.run(3 * LEASE_MS)
  for (const kept of cluster.kept) expect(kept).toEqual(cluster.acknowledged)
})

test('a database that no nats-server knows waits until another node leads', async () => {
  await withoutLeader()
  const [n2, n3] = [cluster.at('n2'), cluster.at('n3')]
  for (const node of [n2, n3]) node.kill()
  n2.disk.content[1] = 'something else'
  n2.start()
  await cluster.run(5 * LEASE_MS)
  expect([n2.aside, cluster.leaders]).toEqual([[], []])
  expect(n2.logged.join('\n')).toContain('it needs a copy of a database: its own is not part of the log')
  await cluster.run(100_000)
  // Another one may not be any better, so that is not asked for ever.
  expect(n2.logged.filter((line) => line.includes('has another record than the database'))).toHaveLength(4)
  n3.start()
  await cluster.until(() => n2.aside.length > 0)
  await cluster.write(3)
  await cluster.run(3 * LEASE_MS)
  expect(cluster.leaders).toEqual(['n3'])
})
