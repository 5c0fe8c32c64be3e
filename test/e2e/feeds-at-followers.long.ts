/** Feeds that are sent to nodes that follow: they reach consumers at the node that leads, each value once, whichever node ends. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect as connectTo } from 'node:net'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Consumer, connect, type PlainRecord } from '../../client/index.ts'
import { WITHOUT_HISTORY } from '../bench/measured.ts'
import { KilledServer } from '../rig/killed-server/killed-server.ts'
import { DEFINE_A } from '../server/wings/smon/fixture.ts'
import { join, str, u32 } from '../support/bytes.ts'
import { clusterTable } from '../support/cluster-table.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { NatsServers, natsMissing } from '../support/nats.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
const NODES = ['n1', 'n2', 'n3'] as const
const TAKEOVERS = 2
const BURST = 50
const LOGIN = { identity: 'admin', password: 'a password for tests' }
/** Of the hook, in which nats-servers and nodes start. */
const START_MS = 120_000
/** Of each step in it, and of a query: shorter than what waits for them, which could not say why. */
const PATIENCE_MS = 45_000
/** Whoever leads and is not run for so long is replaced, and loses what it has not stored; no machine is that busy. */
const LEASE = '3s'
/** The value of a STRING metric, in a packet of gmetric. */
const STRING_VALUE = 133

interface Node {
  readonly name: string
  readonly server: KilledServer
  readonly ports: { readonly gmetric: number; readonly smon: number; readonly statsd: number }
}

let nats: NatsServers
let nodes: readonly Node[]
let consumer: Consumer
const socket = createSocket('udp4')
afterAll(() => socket.close())

async function nodeAt(
  name: string,
  places: readonly { readonly name: string; readonly port: number }[],
): Promise<Node> {
  const ports = { gmetric: await freePort(), smon: await freePort(), statsd: await freePort() }
  const server = new KilledServer({ udpPort: ports.gmetric, tcpPort: await freePort(), logLevel: 'error' })
  // A history would bind what links have, too.
  server.append(
    `${WITHOUT_HISTORY}[smon]\ntcp = "127.0.0.1:${ports.smon}"\n[[smon.source]]\nname = "here"\naddress = "127.0.0.1"\n` +
      `[[statsd]]\nudp = "127.0.0.1:${ports.statsd}"\nflush = "1s"\n` +
      clusterTable({ node: name, nodes: places, nats: nats.urls, lease: LEASE }),
  )
  server.launch()
  return { name, server, ports }
}

/** A value of a host of its own for each node: each has an order of its own. */
function send(to: Node, count: number): Promise<void> {
  const address = `10.0.0.${NODES.indexOf(to.name as 'n1') + 1}:host-of-${to.name}`
  const packet = join(u32(STRING_VALUE), str(address), str('count'), u32(1), str('%s'), str(String(count)))
  return datagram(packet, to.ports.gmetric)
}

function datagram(packet: Uint8Array, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(packet, port, '127.0.0.1', (error) => (error ? reject(error) : resolve()))
  })
}

/** The node that leads, other than the one that has led until now. */
function leader(before?: Node): Promise<Node> {
  return eventually(async () => {
    const { plain } = await consumer.query('producer.cluster')
    const { leader: name } = plain as { readonly leader?: string }
    const node = nodes.find((each) => each.name === name)
    if (node === undefined || node === before) throw new Error(`${name} leads`)
    return node
  })
}

const others = (node: Node): Node[] => nodes.filter((each) => each !== node)

/** Values that were sent to a node, in the order in which they come. */
class Received {
  readonly #counts = new Map<string, number[]>()
  readonly gaps: string[] = []

  constructor(consumer: Consumer) {
    consumer.on('gap', ({ reason }) => this.gaps.push(String(reason)))
  }

  take(host: string, count: number): void {
    const counts = this.#counts.get(host) ?? []
    counts.push(count)
    this.#counts.set(host, counts)
  }

  of(node: Node): readonly number[] {
    return this.#counts.get(`host-of-${node.name}`) ?? []
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

/** Resolves when the links of the node that leads to all nodes have everything that is wanted bound. */
async function linked(bindings: number): Promise<void> {
  await eventually(async () => {
    const sensors = (await consumer.query('producer.sensors')).elements.map(({ plain }) => plain as PlainRecord)
    const links = sensors.filter(({ name }) => String(name).startsWith('link/'))
    expect(links.map(({ state }) => state)).toEqual(NODES.map(() => 'listening'))
    for (const { counters } of links) expect((counters as PlainRecord)['bindings']).toBe(bindings)
  })
}

// The log of a cluster needs a real nats-server.
describe.skipIf(natsMissing !== undefined)(`a feed of a node that follows${howTo}`, () => {
  beforeEach(async () => {
    nats = await NatsServers.start(1)
    const places = await Promise.all(NODES.map(async (name) => ({ name, port: await freePort() })))
    nodes = await Promise.all(NODES.map((name) => nodeAt(name, places)))
    const urls = nodes.map(({ server }) => `tcp://127.0.0.1:${server.port}`)
    consumer = await connect(urls, LOGIN, { name: 'all', waitForServerMs: PATIENCE_MS, deadlineMs: PATIENCE_MS })
  }, START_MS)
  afterEach(async () => {
    await consumer.close()
    await Promise.all(nodes.map(({ server }) => server.remove()))
    await nats.stop()
  })

  it('reaches a durable channel once and in order, while one leader after the other is killed', async () => {
    const received = new Received(consumer)
    await consumer.follow('gmetric.count', {}, ({ labels, plain }) => {
      received.take(String(labels['host']), Number(plain))
    })
    const running = consumer.run()
    let leads = await leader()
    await linked(1)
    const sent = new Map(nodes.map((node) => [node, 0]))
    const burst = async (to: readonly Node[]): Promise<void> => {
      for (let i = 0; i < BURST; i++) {
        for (const node of to) {
          const count = (sent.get(node) ?? 0) + 1
          sent.set(node, count)
          await send(node, count)
        }
      }
    }
    const arrived = (): Promise<void> =>
      eventually(() => {
        for (const node of nodes) expect(received.of(node)).toEqual(upTo(sent.get(node) ?? 0))
      })
    for (let takeover = 0; takeover < TAKEOVERS; takeover++) {
      // What the leader is sent is stored before it ends: nothing tells a sender of datagrams that it is.
      await burst(nodes)
      await arrived()
      const before = leads
      await burst(others(before))
      await before.server.kill()
      await burst(others(before))
      leads = await leader(before)
      await arrived()
      await burst(others(before))
      await arrived()
      before.server.launch()
      await linked(1)
    }
    for (const { server } of nodes) server.healthy()
    await consumer.close()
    await running
    // A leader that is killed may have had something that was not stored, which nobody can know.
    expect(new Set(received.gaps)).toEqual(new Set(['restart']))
  }, 600_000)

  it('is what this producer has, in answers, in its catalogue, and for streams', async () => {
    const leads = await leader()
    const [first, second] = others(leads) as [Node, Node]
    const { elements } = await consumer.query('producer.metrics', { match: 'gmetric.*' })
    expect(elements).toEqual([])
    await eventually(async () => {
      await send(first, 1)
      const value = await consumer.query('gmetric.count', { host: `host-of-${first.name}` })
      expect(value.plain).toBe('1')
    })
    await send(leads, 7)
    await eventually(async () => {
      const all = await consumer.query('gmetric.count')
      expect(all.elements.map(({ plain }) => plain).sort()).toEqual(['1', '7'])
    })
    await eventually(async () => {
      const listed = await consumer.query('producer.metrics', { match: 'gmetric.*' })
      expect(listed.elements.map(({ plain }) => (plain as PlainRecord)['name'])).toEqual(['gmetric.count'])
    })
    // Both count, each for itself.
    await eventually(async () => {
      // Again for each look: what is counted in one second is there for a second, and not in the same one at both.
      for (const node of [first, second]) await datagram(Buffer.from('hits:3|c'), node.ports.statsd)
      const { elements: hits } = await consumer.query('statsd.hits')
      expect(hits.map(({ labels }) => labels['node']).sort()).toEqual([first.name, second.name].sort())
      for (const { plain } of hits) {
        expect(Number(plain)).toBeGreaterThan(0)
        expect(Number(plain) % 3).toBe(0)
      }
    })
    const values = consumer[Symbol.asyncIterator]()
    await consumer.follow('smon.aaaa', { source: 'here' })
    await linked(1)
    const feed = connectTo(first.ports.smon, '127.0.0.1')
    await once(feed, 'connect')
    feed.write(DEFINE_A)
    const { value } = await values.next()
    expect([value?.metric, Number(value?.plain)]).toEqual(['smon.aaaa', 100])
    feed.destroy()
    for (const { server } of nodes) server.healthy()
  }, 300_000)
})
