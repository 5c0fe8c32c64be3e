/** Feeds that are sent to nodes that follow: they reach consumers at the node that leads, over ends of either, once each. */
import { createSocket } from 'node:dgram'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Consumer, connect } from '../../client/index.ts'
import { KilledServer } from '../chaos/kills/server.ts'
import { join, str, u32 } from '../support/bytes.ts'
import { clusterTable } from '../support/cluster-table.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { NatsServers, natsMissing } from '../support/nats.ts'

const NODES = ['n1', 'n2', 'n3'] as const
const login = { identity: 'admin', password: 'a password for tests' }
/** A gmetric packet with the value of a STRING metric. */
const STRING_VALUE = 133

interface Node {
  readonly name: string
  readonly server: KilledServer
  readonly udpPort: number
}

let nats: NatsServers
let nodes: readonly Node[]
let consumer: Consumer
const socket = createSocket('udp4')

async function nodeAt(name: string): Promise<Node> {
  const udpPort = await freePort()
  const server = new KilledServer({ udpPort, tcpPort: await freePort(), logLevel: 'error' })
  server.append(clusterTable({ node: name, nodes: NODES, nats: nats.urls, port: await freePort() }))
  server.launch()
  return { name, server, udpPort }
}

beforeEach(async () => {
  nats = await NatsServers.start(1)
  nodes = await Promise.all(NODES.map(nodeAt))
  const urls = nodes.map(({ server }) => `tcp://127.0.0.1:${server.port}`)
  consumer = await connect(urls, login, { name: 'all', waitForServerMs: 60_000 })
}, 120_000)

afterEach(async () => {
  await consumer?.close()
  await Promise.all(nodes.map(({ server }) => server.remove()))
  await nats.stop()
})

function send(to: Node, value: string): Promise<void> {
  const packet = join(u32(STRING_VALUE), str('h1'), str('count'), u32(0), str('%s'), str(value))
  return new Promise((resolve, reject) => {
    socket.send(packet, to.udpPort, '127.0.0.1', (error) => (error ? reject(error) : resolve()))
  })
}

async function leader(): Promise<Node> {
  return eventually(async () => {
    const { plain } = await consumer.query('producer.cluster')
    const name = (plain as { leader?: string }).leader
    const node = nodes.find((each) => each.name === name)
    if (node === undefined) throw new Error('no node leads')
    return node
  })
}

describe.skipIf(natsMissing)('a feed of a node that follows', () => {
  it('reaches a durable channel', async () => {
    const leads = await leader()
    const follows = nodes.find((node) => node !== leads) as Node
    await consumer.follow('gmetric.count', { host: 'h1' })
    const values = consumer[Symbol.asyncIterator]()
    await new Promise((r) => setTimeout(r, 2000))
    console.log((await consumer.query('producer.sensors')).elements.map((e) => JSON.stringify(e.plain)).filter((t) => /link|gmetric/.test(t)).join('\n'))
    await send(follows, '1')
    const { value } = await values.next()
    console.log(value?.metric, value?.plain, value?.labels)
    for (const { server } of nodes) server.healthy()
    expect(value?.plain).toBe('1')
  }, 60_000)
})
