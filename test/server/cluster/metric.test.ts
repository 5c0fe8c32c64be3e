/** `producer.cluster`: what whom is shown, by QUERY and for Prometheus. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command, status } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { PublishingProducer, tokenFor } from '../../support/publisher.ts'
import { decoded } from '../../support/records.ts'
import { LED_SINCE, TestCluster } from '../../support/test-cluster.ts'

const NODE = { version: 'cinnabar/0.1.0', sequence: 1_284_402, obstacle: '' }
const NODES = [
  { ...NODE, name: 'n1', role: 'leader', address: '10.0.0.1:7654', lag_ms: 0 },
  { ...NODE, name: 'n2', role: 'follower', address: '10.0.0.2:7654', lag_ms: 20 },
  {
    name: 'n3',
    role: 'not heard',
    address: '10.0.0.3:7654',
    sequence: 0,
    lag_ms: 0,
    obstacle: 'it is stopped or cut off',
    version: '',
  },
]

describe('producer.cluster', () => {
  let cluster: TestCluster
  let producer: TestProducer
  beforeEach(async () => {
    cluster = new TestCluster()
    producer = await TestProducer.start({ cluster })
    await producer.addUser('boss', { role: 'admin' })
  })
  afterEach(() => producer.stop())

  it('shows an admin who leads, since when, and every node', async () => {
    const boss = await producer.seat('boss')
    const since = LED_SINCE * 1000
    expect(decoded(await boss.query('producer.cluster'))).toEqual({
      name: 'main',
      node: 'n1',
      leader: 'n1',
      epoch: 7,
      since,
      nodes: NODES,
    })
    cluster.change('n2', { lagMs: 12_000, obstacle: 'the disk is full' })
    const { nodes } = decoded(await boss.query('producer.cluster'))
    expect(nodes[1]).toMatchObject({ lag_ms: 12_000, obstacle: 'the disk is full' })
  })

  it('shows others who leads, and no node', async () => {
    const shown = decoded(await (await producer.seat()).query('producer.cluster'))
    expect(Object.keys(shown)).toEqual(['name', 'node', 'leader', 'epoch', 'since'])
  })

  it('can be subscribed like any metric', async () => {
    const boss = await producer.seat('boss')
    const id = await boss.collect('producer.cluster')
    await boss.ok((seq) => command.subscribe(seq, id))
    expect(decoded(await boss.value())).toMatchObject({ epoch: 7 })
    cluster.lead('n2')
    producer.clock.advance(1_000)
    expect(decoded(await boss.value())).toMatchObject({ leader: 'n2', epoch: 8 })
  })
})

it('is not there on a server that is in no cluster', async () => {
  const producer = await TestProducer.start()
  const seat = await producer.seat()
  const { status: answered } = await seat.ask((seq) => command.query(seq, 'producer.cluster'))
  expect(answered).toBe(status.NO_SUCH_METRIC)
  await producer.stop()
})

it('stands in GET /metrics with samples of each node', async () => {
  const server = await PublishingProducer.start({ cluster: new TestCluster() })
  const token = await tokenFor(server.root, 'root', 'COLLECT *')
  const get = async (headers = {}) => (await fetch(`${server.url}/metrics`, { headers })).text()
  const text = await get({ authorization: `Bearer ${token}` })
  expect(await get()).not.toContain('producer_cluster')
  await server.stop()
  const lines = text.split('\n').filter((line) => line.startsWith('producer_cluster'))
  expect(lines).toEqual(
    expect.arrayContaining([
      'producer_cluster_epoch 7',
      'producer_cluster_info{name="main",leader="n1"} 1',
      'producer_cluster_node_leader{node="n1"} 1',
      'producer_cluster_node_leader{node="n2"} 0',
      'producer_cluster_node_lag_seconds{node="n2"} 0.02',
      'producer_cluster_node_sequence{node="n2"} 1284402',
      'producer_cluster_node_able{node="n2"} 1',
      'producer_cluster_node_able{node="n3"} 0',
    ]),
  )
})
