/** A cluster of one or three nodes and as many nats-servers, all on this machine, for measurements. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { until } from '../rig/patience.ts'
import { CLUSTER_NAME, clusterTable } from '../support/cluster-table.ts'
import { freePort } from '../support/free-port.ts'
import { decoded, type Json } from '../support/records.ts'
import { launched, type Setup } from './durable-cinnabar.ts'
import { seatAt } from './durable-consumer.ts'
import { ServerUnderTest } from './processes/server-under-test.ts'

const NATS_SERVER = 'nats-server'
const LEASE = '2s'
/** Between two looks at what the followers say of themselves, which they do five times a lease. */
const LAG_LOOK_MS = 200

export interface BenchNode {
  readonly name: string
  readonly port: number
  /** Where it listens for its feed. */
  readonly feedPort: number
  readonly server: ServerUnderTest
}

export interface BenchClusterSetup {
  readonly directory: string
  readonly size: number
  /** How many values there will be. */
  readonly values: number
  /** What listens for the feed, and further sections. */
  readonly sections: (feedPort: number) => Pick<Setup, 'more' | 'gmetric'>
}

export class BenchCluster {
  readonly leader: BenchNode
  readonly followers: readonly BenchNode[]
  readonly nats: readonly ServerUnderTest[]
  /** The longest that a follower was behind, in ms, since this was made. */
  largestLagMs = 0
  #isStopped = false
  readonly #watch: Promise<void>

  private constructor(leader: BenchNode, followers: readonly BenchNode[], nats: readonly ServerUnderTest[]) {
    this.leader = leader
    this.followers = followers
    this.nats = nats
    this.#watch = this.#watchLag()
  }

  /** Resolves when a node leads. */
  static async start(setup: BenchClusterSetup): Promise<BenchCluster> {
    const nats = await startNats(setup.directory, setup.size)
    const nodes = await startNodes(
      setup,
      nats.map(({ url }) => url),
    )
    const servers = nats.map(({ server }) => server)
    try {
      const leader = await leaderOf(nodes)
      const followers = nodes.filter((node) => node !== leader)
      return new BenchCluster(leader, followers, servers)
    } catch (error) {
      for (const server of [...nodes.map(({ server }) => server), ...servers]) await server.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#watch
    for (const { server } of [this.leader, ...this.followers]) await server.stop()
    for (const server of this.nats) await server.stop()
  }

  async #watchLag(): Promise<void> {
    const seat = await seatAt(this.leader.port)
    while (!this.#isStopped) {
      const { nodes } = decoded(await seat.query('producer.cluster')) as { nodes: Json[] }
      this.largestLagMs = Math.max(this.largestLagMs, ...nodes.map(({ lag_ms: lagMs }) => Number(lagMs)))
      await setTimeout(LAG_LOOK_MS)
    }
    seat.peer.destroy()
  }
}

interface BenchNats {
  readonly url: string
  readonly server: ServerUnderTest
}

async function startNats(directory: string, size: number): Promise<BenchNats[]> {
  const ports: { port: number; route: number }[] = []
  for (let index = 0; index < size; index++) ports.push({ port: await freePort(), route: await freePort() })
  const routes = ports.map(({ route }) => `"nats-route://127.0.0.1:${route}"`).join(', ')
  const start = async (index: number): Promise<BenchNats> => {
    const { port, route } = ports[index] as { port: number; route: number }
    const path = join(directory, `nats${index + 1}`)
    const config =
      `server_name: nats${index + 1}\nlisten: "127.0.0.1:${port}"\n` +
      `jetstream { store_dir: ${JSON.stringify(path)}, max_file_store: 20GB }\n`
    const cluster = `cluster { name: bench, listen: "127.0.0.1:${route}", routes: [${routes}] }\n`
    writeFileSync(`${path}.conf`, size > 1 ? config + cluster : config)
    const server = await ServerUnderTest.start({ program: NATS_SERVER, args: ['-c', `${path}.conf`], port })
    return { url: `nats://127.0.0.1:${port}`, server }
  }
  return Promise.all(ports.map((_, index) => start(index)))
}

async function startNodes(setup: BenchClusterSetup, nats: readonly string[]): Promise<BenchNode[]> {
  const { directory: parent, size, values, sections } = setup
  const names = Array.from({ length: size }, (_, index) => `n${index + 1}`)
  const nodes = await Promise.all(names.map(async (name) => ({ name, port: await freePort() })))
  const start = async (name: string): Promise<BenchNode> => {
    const [port, feedPort] = [await freePort(), await freePort()]
    const { more, ...others } = sections(feedPort)
    const table = clusterTable({ node: name, nodes, nats, lease: LEASE })
    const server = await launched({ directory: join(parent, name), port, values, more: `${more}${table}`, ...others })
    return { name, port, feedPort, server }
  }
  return Promise.all(names.map(start))
}

/** Asks until a node leads. */
async function leaderOf(nodes: readonly BenchNode[]): Promise<BenchNode> {
  const found: BenchNode[] = []
  await until('a node leads', async () => {
    for (const { port } of nodes) {
      const seat = await seatAt(port).catch(() => undefined)
      if (seat === undefined) continue
      const { name, leader } = decoded(await seat.query('producer.cluster'))
      seat.peer.destroy()
      const node = nodes.find((each) => each.name === leader)
      if (name === CLUSTER_NAME && node !== undefined) found.push(node)
    }
    return found.length > 0
  })
  return found[0] as BenchNode
}
