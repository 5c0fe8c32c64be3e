/** Three nodes of a cluster and their nats-servers, each a process of its own that can be ended, frozen and started again. */
import { rmSync } from 'node:fs'
import { Log } from '../../../storage/replicated/log.ts'
import { streamName } from '../../../storage/replicated/stream.ts'
import { CLUSTER_NAME, clusterTable } from '../../support/cluster-table.ts'
import { freePort } from '../../support/free-port.ts'
import { NatsServers } from '../../support/nats.ts'
import type { Random } from '../../support/random.ts'
import { KilledServer } from '../kills/server.ts'

const NAMES = ['n1', 'n2', 'n3']
const BOUNDS_MS = 60_000

export interface ChaosNode {
  readonly name: string
  readonly server: KilledServer
  /** Where its feed is listened for while it leads. */
  readonly udpPort: number
  isFrozen: boolean
}

export class Nodes {
  readonly all: readonly ChaosNode[]
  readonly nats: NatsServers
  readonly #random: Random

  private constructor(all: readonly ChaosNode[], nats: NatsServers, random: Random) {
    this.all = all
    this.nats = nats
    this.#random = random
  }

  /** `random` says which node a consumer connects to. */
  static async start(random: Random): Promise<Nodes> {
    const nats = await NatsServers.start(3)
    const all: ChaosNode[] = []
    const addresses = await Promise.all(NAMES.map(async (name) => ({ name, port: await freePort() })))
    const nodes = new Nodes(all, nats, random)
    try {
      for (const name of NAMES) {
        const udpPort = await freePort()
        const server = new KilledServer({ udpPort, tcpPort: await freePort(), logLevel: 'error' })
        all.push({ name, server, udpPort, isFrozen: false })
        server.append(clusterTable({ node: name, nodes: addresses, nats: nats.urls }))
        server.launch()
      }
      return nodes
    } catch (error) {
      await nodes.remove()
      throw error
    }
  }

  /** Where one of the nodes that run takes consumers; 0 if none runs. */
  get port(): number {
    const running = this.all.filter(({ server, isFrozen }) => server.running && !isFrozen)
    return running.length === 0 ? 0 : this.#random.pick(running).server.port
  }

  named(name: string): ChaosNode {
    const node = this.all.find((each) => each.name === name)
    if (node === undefined) throw new Error(`there is no node ${JSON.stringify(name)}`)
    return node
  }

  freeze(node: ChaosNode): void {
    node.isFrozen = true
    node.server.signal('SIGSTOP')
  }

  thaw(node: ChaosNode): void {
    node.server.signal('SIGCONT')
    node.isFrozen = false
  }

  /** Throws if a node ended by itself, or complained. */
  healthy(): void {
    for (const { server } of this.all) server.healthy()
  }

  /** The number of the newest log. */
  async newestLog(): Promise<number> {
    const { urls } = this.nats
    const log = await Log.connect({
      cluster: CLUSTER_NAME,
      node: 'judge',
      servers: urls,
      replicas: urls.length,
      maxBytes: 2 ** 30,
    })
    try {
      return (await log.bounds(BOUNDS_MS)).log
    } finally {
      await log.close()
    }
  }

  /** The index of the nats-server that leads the stream of the log. */
  async streamLeader(): Promise<number> {
    return this.nats.streamLeader(streamName(CLUSTER_NAME, await this.newestLog()))
  }

  /** Ends the nodes by SIGTERM, all at once. Throws if one of them does not end well. */
  async stop(): Promise<void> {
    await Promise.all(this.all.map(({ server }) => server.stop()))
    this.healthy()
  }

  async remove(): Promise<void> {
    await Promise.all(this.all.map(({ server }) => server.remove()))
    await this.nats.stop()
    for (const { server } of this.all) rmSync(server.directory, { recursive: true, force: true })
  }
}
