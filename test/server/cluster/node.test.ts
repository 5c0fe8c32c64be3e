/** A node among others: who founds, who leads, and what happens to the rest, over a log and a bus in memory. */
import { afterEach, describe, expect, test } from 'vitest'
import type { NodeState } from '../../../server/cluster/state.ts'
import { StorageError } from '../../../storage/store.ts'
import { LEASE_MS, ModelCluster, type ModelNode } from './model.ts'

let cluster: ModelCluster
afterEach(() => cluster.end())

/** The one that leads, of nodes n1, n2 ... that run. */
async function running(count: number): Promise<ModelNode> {
  cluster = await ModelCluster.running(count)
  return cluster.leader
}

const write = (count: number): Promise<void> => cluster.write(count)
/** Everything that was acknowledged is in the database of every node, in order. */
function expectNothingLost(): void {
  for (const kept of cluster.kept) expect(kept).toEqual(cluster.acknowledged)
}
const own = ({ name, node }: ModelNode): NodeState | undefined =>
  node.state().nodes.find((state) => state.name === name)
const others = (leader: ModelNode): ModelNode[] => cluster.othersThan(leader)

describe('the founding of a log', () => {
  test('waits for all nodes, and is done by the first of them if all databases are empty', async () => {
    cluster = new ModelCluster(['n1', 'n2', 'n3'])
    cluster.at('n2').start()
    cluster.at('n3').start()
    await cluster.run(10 * LEASE_MS)
    expect(cluster.logs.newest).toBeUndefined()
    expect(cluster.at('n2').node.state().nodes[1]?.obstacle).toBe(
      'the log of the cluster has to be founded, and n1 is not heard',
    )
    cluster.at('n1').start()
    const ms = await cluster.until(() => cluster.leaders.length > 0)
    expect(cluster.leaders).toEqual(['n1'])
    expect(ms).toBeLessThan(2 * LEASE_MS)
    expect(cluster.logs.logs).toHaveLength(1)
    await cluster.run(5 * LEASE_MS)
    expect(cluster.leaders).toEqual(['n1'])
    expect(cluster.at('n1').notices.map(({ detail }) => detail)).toEqual([
      'node n1 founded the log of main with its database',
      'node n1 leads main since epoch 2',
    ])
  })

  test('a single node founds and leads alone', async () => {
    const leader = await running(1)
    expect(leader.name).toBe('n1')
  })

  test('is done by the node whose database has something', async () => {
    cluster = new ModelCluster(['n1', 'n2', 'n3'])
    const { disk } = cluster.at('n3')
    disk.content = ['from before the cluster']
    disk.place = { ...disk.place, sequence: 1 }
    cluster.startAll()
    await cluster.until(() => cluster.leaders.length > 0)
    expect(cluster.leaders).toEqual(['n3'])
    expect(disk.content[0]).toBe('from before the cluster')
    // They are empty, so there is nothing to set aside.
    await cluster.until(() => own(cluster.at('n1'))?.obstacle === undefined)
    expect(cluster.copies.toSorted()).toEqual(['n3', 'n3'])
    expect(cluster.at('n1').aside).toEqual([])
    expect(cluster.at('n1').disk.content).toEqual(disk.content)
  })

  test('is left to a person if several databases have something', async () => {
    cluster = new ModelCluster(['n1', 'n2', 'n3'])
    for (const name of ['n1', 'n3']) {
      const { disk } = cluster.at(name)
      disk.content = [`from before, of ${name}`]
      disk.place = { ...disk.place, sequence: 1 }
    }
    cluster.startAll()
    await cluster.run(10 * LEASE_MS)
    expect(cluster.leaders).toEqual([])
    const obstacle = cluster.at('n2').node.state().nodes[1]?.obstacle
    expect(obstacle).toBe(
      'n1 and n3 have databases that are in no log: run `cinnabar cluster found` on the one to keep',
    )
    const founded = cluster.at('n3').node.found()
    await cluster.until(() => cluster.leaders.length > 0)
    await founded
    expect(cluster.leaders).toEqual(['n3'])
    await cluster.run(3 * LEASE_MS)
    expect(cluster.at('n1').aside.map(({ content }) => content)).toEqual([['from before, of n1']])
  })

  test('by an operator does not wait for the others, and is refused while a node leads', async () => {
    cluster = new ModelCluster(['n1', 'n2', 'n3'])
    cluster.at('n2').start()
    await cluster.run(LEASE_MS)
    const founded = cluster.at('n2').node.found()
    await cluster.until(() => cluster.leaders.length > 0)
    await founded
    cluster.at('n3').start()
    await cluster.run(2 * LEASE_MS)
    expect(cluster.leaders).toEqual(['n2'])
    await expect(cluster.at('n3').node.found()).rejects.toThrow('node n2 leads')
    await expect(cluster.at('n2').node.found()).rejects.toThrow('leads already')
    // There was nothing before.
    expect(cluster.logs.newest?.mayLack).toBe(false)
  })

  test.each([
    ['without the machine that may have had more', 'gone', true],
    ['with a new machine in its place', 'new', true],
    ['with all databases', 'there', false],
  ] as const)('%s: whether it counts as restored', async (_, machine, isRestored) => {
    const leader = await running(3)
    await write(5)
    for (const node of cluster.nodes.values()) node.kill()
    cluster.logs.logs.splice(0)
    if (machine === 'new') leader.setAside()
    const [other] = others(leader) as [ModelNode]
    for (const node of cluster.nodes.values()) if (node !== leader || machine !== 'gone') node.start()
    await cluster.run(2 * LEASE_MS)
    const ordered = machine === 'gone' ? other.node.found() : undefined
    await cluster.until(() => cluster.leaders.length > 0)
    await ordered
    expect(cluster.logs.newest?.mayLack).toBe(isRestored)
    const said = [...cluster.nodes.values()].flatMap(({ logged }) => logged).join('\n')
    expect(said.includes('which may lack records')).toBe(isRestored)
  })
})

describe('a takeover', () => {
  test('comes after the lease, and loses nothing that was acknowledged', async () => {
    const leader = await running(3)
    await write(20)
    leader.kill()
    const ms = await cluster.until(() => cluster.leaders.length > 0)
    expect(ms).toBeGreaterThan(LEASE_MS * 0.7)
    expect(ms).toBeLessThan(LEASE_MS * 2)
    const [next] = cluster.leaders
    expect(next).toBe('n2')
    expect(cluster.at('n2').notices.at(-1)?.detail).toMatch(
      /^node n2 leads main since epoch 3; n1 was last heard \d\.\d s ago$/,
    )
    await write(3)
    leader.start()
    await cluster.run(2 * LEASE_MS)
    expect(cluster.leaders).toEqual(['n2'])
    expectNothingLost()
    const state = leader.node.state()
    expect(state).toMatchObject({ leader: 'n2', epoch: 3, node: 'n1' })
    expect(state.nodes.map(({ name, role }) => [name, role])).toEqual([
      ['n1', 'follower'],
      ['n2', 'leader'],
      ['n3', 'follower'],
    ])
  })

  test('is for the node that has more of the log', async () => {
    const leader = await running(3)
    cluster.at('n2').isCut = true
    await write(5)
    cluster.at('n2').isCut = false
    // Before n2 has read what it has missed.
    cluster.at('n2').process?.clock.freeze()
    leader.kill()
    await cluster.until(() => cluster.leaders.length > 0)
    expect(cluster.leaders).toEqual(['n3'])
    cluster.at('n2').process?.clock.thaw()
    await cluster.run(3 * LEASE_MS)
    expect(cluster.leaders).toEqual(['n3'])
    expectNothingLost()
  })

  test('of two at once ends with one that leads and one that follows', async () => {
    const leader = await running(3)
    leader.kill()
    // Neither hears the other, but both reach the log.
    await cluster.until(() => cluster.leaders.length > 0 || [...cluster.nodes.values()].some(isStarting))
    await cluster.until(() => cluster.leaders.length === 1)
    await cluster.run(3 * LEASE_MS)
    expect(cluster.leaders).toHaveLength(1)
  })

  test('deposes nobody who has begun to lead while the node had not yet ended following', async () => {
    const leader = await running(3)
    cluster.at('n2').endingMs = 4 * LEASE_MS
    leader.kill()
    await cluster.until(() => cluster.leaders.length > 0)
    await cluster.run(6 * LEASE_MS)
    expect(cluster.leaders).toEqual(['n3'])
    expect(cluster.at('n2').node.state()).toMatchObject({ leader: 'n3', epoch: 3 })
  })

  test('leaves no obstacle on a node that had asked the nats-servers in vain', async () => {
    const leader = await running(3)
    leader.process?.clock.freeze()
    cluster.logs.hasMajority = false
    await cluster.run(2 * LEASE_MS)
    leader.process?.clock.thaw()
    await cluster.run(LEASE_MS)
    cluster.logs.hasMajority = true
    await cluster.run(3 * LEASE_MS)
    expect(cluster.leaders).toEqual([leader.name])
    const obstacles = leader.node.state().nodes.map(({ obstacle }) => obstacle)
    expect(obstacles).toEqual([undefined, undefined, undefined])
  })

  test('comes although the nats-servers take longer than a lease to say where the log ends', async () => {
    const leader = await running(3)
    await write(5)
    cluster.logs.answerMs = 3 * LEASE_MS
    leader.kill()
    await cluster.until(() => cluster.leaders.length > 0)
    leader.start()
    await cluster.until(() => own(leader)?.obstacle === undefined)
    await write(2)
    await cluster.run(LEASE_MS)
    expectNothingLost()
  })

  test('whose node waits for the nats-servers does not keep it from ending', async () => {
    const leader = await running(3)
    for (const node of others(leader)) node.kill()
    const [node] = others(leader) as [ModelNode]
    cluster.logs.answerMs = Number.POSITIVE_INFINITY
    node.start()
    await cluster.run(20 * LEASE_MS)
    node.node.stop()
    const ms = await cluster.until(() => node.process?.ended === 'stopped')
    expect(ms).toBeLessThan(LEASE_MS / 10)
  })

  test('does not happen on a node that is cut from NATS, or has an obstacle', async () => {
    const leader = await running(3)
    for (const node of others(leader)) node.isCut = true
    await cluster.run(5 * LEASE_MS)
    expect(cluster.leaders).toEqual([leader.name])
    leader.kill()
    await cluster.run(5 * LEASE_MS)
    expect(cluster.leaders).toEqual([])
    cluster.at('n3').isCut = false
    await cluster.until(() => cluster.leaders.length > 0)
    expect(cluster.leaders).toEqual(['n3'])
  })
})

const isStarting = ({ process }: ModelNode): boolean => process?.node.state().nodes[0]?.role === 'leader'

describe('a node that leads no more', () => {
  test('after a freeze gives way to the one that leads by then', async () => {
    const leader = await running(3)
    await write(5)
    leader.process?.clock.freeze()
    await cluster.until(() => cluster.leaders.length === 2)
    const next = others(leader).find(({ leads }) => leads)
    await write(5)
    leader.process?.clock.thaw()
    const ms = await cluster.until(() => cluster.leaders.length === 1)
    expect(ms).toBeLessThan(LEASE_MS)
    expect(cluster.leaders).toEqual([next?.name])
    await cluster.run(LEASE_MS)
    expectNothingLost()
    expect(leader.logged.join('\n')).toContain(`node ${leader.name} no longer leads main`)
  })

  test('goes on leading after a short freeze, and a follower that was frozen deposes nobody', async () => {
    const leader = await running(3)
    leader.process?.clock.freeze()
    await cluster.run(LEASE_MS / 2)
    leader.process?.clock.thaw()
    const [follower] = others(leader)
    follower?.process?.clock.freeze()
    await cluster.run(10 * LEASE_MS)
    follower?.process?.clock.thaw()
    await cluster.run(3 * LEASE_MS)
    expect(cluster.leaders).toEqual([leader.name])
    expect(cluster.logs.leaders.size).toBe(1)
  })

  test('cut from NATS gives up after three leases, and follows when it is back', async () => {
    const leader = await running(3)
    await write(5)
    leader.isCut = true
    leader.process?.server?.write()
    const ms = await cluster.until(() => !leader.leads)
    expect(ms).toBeGreaterThan(2.5 * LEASE_MS)
    expect(ms).toBeLessThan(4 * LEASE_MS)
    expect(cluster.leaders).toHaveLength(1)
    await write(5)
    leader.isCut = false
    await cluster.run(2 * LEASE_MS)
    expectNothingLost()
    expect(leader.process?.ended).toBe('not yet')
  })

  test('comes back to nats-servers that answer one question and not the next: it does not end, however often that is', async () => {
    const leader = await running(3)
    await write(2)
    leader.kill()
    cluster.logs.refusals = 20
    leader.start()
    await cluster.until(() => cluster.logs.refusals === 0)
    await cluster.until(() => cluster.leaders.length === 1)
    await cluster.run(3 * LEASE_MS)
    expect([...cluster.nodes.values()].map(({ process }) => process?.ended)).toEqual(['not yet', 'not yet', 'not yet'])
    expect(leader.node.state().nodes.map(({ obstacle }) => obstacle)).toEqual([undefined, undefined, undefined])
    expectNothingLost()
  })

  test('cut off with a nats-server of its own gives up, although it hears itself', async () => {
    const leader = await running(3)
    await write(5)
    leader.isAlone = true
    leader.process?.server?.write()
    const ms = await cluster.until(() => !leader.leads)
    expect(ms).toBeGreaterThan(2.5 * LEASE_MS)
    expect(ms).toBeLessThan(7 * LEASE_MS)
    expect(leader.logged.join('\n')).toContain('no other node is heard, and no majority of the nats-servers answers')
    expect(cluster.leaders).toHaveLength(1)
    await write(5)
    leader.isAlone = false
    await cluster.run(2 * LEASE_MS)
    expectNothingLost()
    expect(leader.process?.ended).toBe('not yet')
  })

  test('goes on while no other node runs, or no majority of the nats-servers is there', async () => {
    const leader = await running(3)
    for (const node of others(leader)) node.kill()
    await cluster.run(10 * LEASE_MS)
    expect(leader.leads).toBe(true)
    for (const node of others(leader)) node.start()
    await cluster.run(2 * LEASE_MS)
    cluster.logs.hasMajority = false
    await cluster.run(10 * LEASE_MS)
    expect(leader.leads).toBe(true)
  })
})

describe('a database that does not fit to the log', () => {
  test('is ahead of it: nobody leads until all are heard, and the most advanced founds the next log', async () => {
    const leader = await running(3)
    await write(10)
    await cluster.run(LEASE_MS)
    for (const node of cluster.nodes.values()) node.kill()
    // The nats-servers have lost the end of the log.
    cluster.logs.newest?.records.splice(4)
    cluster.at('n2').start()
    cluster.at('n3').start()
    await cluster.run(10 * LEASE_MS)
    expect(cluster.leaders).toEqual([])
    leader.start()
    await cluster.until(() => cluster.leaders.length > 0)
    expect(cluster.logs.newest?.number).toBe(2)
    await write(2)
    await cluster.run(LEASE_MS)
    expectNothingLost()
  })

  test('is ahead of it while nodes run: the leader is deposed, and founds the next log', async () => {
    await running(3)
    await write(10)
    await cluster.run(LEASE_MS)
    cluster.logs.newest?.records.splice(4)
    await cluster.until(() => {
      for (const { process } of cluster.nodes.values()) process?.server?.write()
      return cluster.logs.newest?.number === 2
    })
    await write(2)
    await cluster.run(LEASE_MS)
    expectNothingLost()
    expect(cluster.leaders).toHaveLength(1)
  })

  test('all of the log is lost: the same', async () => {
    const leader = await running(3)
    await write(10)
    await cluster.run(LEASE_MS)
    for (const node of others(leader)) node.kill()
    await cluster.run(3 * LEASE_MS)
    cluster.logs.logs.splice(0)
    await cluster.until(() => {
      leader.process?.server?.write()
      return !leader.leads
    })
    await cluster.run(5 * LEASE_MS)
    expect(cluster.leaders).toEqual([])
    for (const node of others(leader)) node.start()
    await cluster.until(() => cluster.leaders.length > 0)
    expect(cluster.logs.newest?.number).toBe(2)
    await write(1)
    await cluster.run(LEASE_MS)
    expectNothingLost()
  })

  test('is not part of it: the node fetches a copy, and the own one is set aside and reported when that is whole', async () => {
    const leader = await running(3)
    await write(3)
    const [node] = others(leader) as [ModelNode]
    node.kill()
    node.disk.content[1] = 'something else'
    node.start()
    await cluster.until(() => cluster.copies.length > 0)
    expect(node.aside).toHaveLength(0)
    await cluster.until(() => node.aside.length > 0)
    expect(node.logged.join('\n')).toContain('was not part of the log: it was set aside in aside')
    await cluster.run(2 * LEASE_MS)
    expectNothingLost()
  })

  test('is too far behind it: the node says so, fetches a copy by itself, and keeps what it had', async () => {
    const leader = await running(3)
    await write(3)
    await cluster.run(LEASE_MS)
    const [node] = others(leader) as [ModelNode]
    node.kill()
    const had = [...node.disk.content]
    await write(10)
    cluster.logs.forgotten = (cluster.logs.newest?.records.length ?? 0) - 2
    node.start()
    await cluster.until(() => cluster.copies.length > 0)
    expect(own(node)?.obstacle).toBe(`it copies the database of ${leader.name}: 1 of 3 MiB`)
    expect(node.node.copyState).toMatchObject({ phase: 'copying', leader: leader.name, totalBytes: 3 * 2 ** 20 })
    expect(node.disk.content).toEqual(had)
    await cluster.until(() => own(node)?.obstacle === undefined)
    await write(2)
    await cluster.run(LEASE_MS)
    expectNothingLost()
    expect(node.aside.map(({ content }) => content)).toEqual([had])
    expect(node.logged.join('\n')).toContain('was too far behind the log: it was set aside in aside')
    expect(node.node.copyState).toMatchObject({ phase: 'done', aside: 'aside' })
  })

  test('is damaged: the node runs on and waits for an operator, who has a copy made', async () => {
    const leader = await running(3)
    await write(3)
    const [node] = others(leader) as [ModelNode]
    node.kill()
    node.damage = new StorageError('DAMAGED', 'the database cannot be read')
    node.start()
    await cluster.run(10 * LEASE_MS)
    expect(node.process?.ended).toBe('not yet')
    expect(cluster.copies).toEqual([])
    const obstacle =
      'the database cannot be read. If another node leads, `cinnabar cluster copy` on this one replaces it'
    expect(own(node)?.obstacle).toContain(obstacle)
    // The others know it, and do not take its database for an empty one.
    const seen = leader.node.state().nodes.find(({ name }) => name === node.name)
    expect(seen).toMatchObject({ role: 'follower', obstacle: own(node)?.obstacle })
    expect(node.node.leader?.name).toBe(leader.name)
    await node.node.copy()
    await cluster.until(() => own(node)?.obstacle === undefined)
    await write(2)
    await cluster.run(LEASE_MS)
    expectNothingLost()
  })

  test('cannot be opened: the run ends with the error', async () => {
    cluster = new ModelCluster(['n1'])
    const node = cluster.at('n1')
    node.start()
    await cluster.until(() => node.leads)
    node.kill()
    Object.defineProperty(node.disk, 'place', {
      get() {
        throw new StorageError('LOCKED', 'another server is using it')
      },
    })
    node.start()
    await cluster.run(LEASE_MS)
    expect(node.process?.ended).toMatchObject({ code: 'LOCKED' })
  })
})

test('a log is not founded while the database of a node is damaged, but an operator may have it founded', async () => {
  const leader = await running(3)
  await write(3)
  await cluster.run(LEASE_MS)
  for (const node of cluster.nodes.values()) node.kill()
  cluster.logs.logs.splice(0)
  leader.damage = new StorageError('DAMAGED', 'the database cannot be read')
  cluster.startAll()
  await cluster.run(10 * LEASE_MS)
  expect(cluster.leaders).toEqual([])
  const [node] = others(leader) as [ModelNode]
  expect(own(node)?.obstacle).toBe(`the log of the cluster has to be founded, and ${leader.name} is not heard`)
  await expect(leader.node.copy()).rejects.toThrow('no node leads')
  const founding = node.node.found()
  await cluster.until(() => node.leads)
  await founding
  await cluster.until(() => leader.node.leader?.name === node.name)
  await leader.node.copy()
  await cluster.until(() => own(leader)?.obstacle === undefined)
  await write(1)
  await cluster.run(LEASE_MS)
  expectNothingLost()
})
