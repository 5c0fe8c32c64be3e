/** Three machines with a node of a cluster and a nats-server on each: processes that can be ended, frozen, cut off and started again. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Log } from '../../../storage/replicated/log.ts'
import type { LogOptions } from '../../../storage/replicated/options.ts'
import { streamName } from '../../../storage/replicated/stream.ts'
import { KilledServer } from '../../rig/killed-server/killed-server.ts'
import { canMount, SmallDisk } from '../../rig/small-disk.ts'
import type { FeedTarget } from '../../rig/world/feed.ts'
import type { Listener } from '../../rig/world/link.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { CLUSTER_NAME, type ClusterTable, clusterTable } from '../../support/cluster-table.ts'
import { freePort } from '../../support/free-port.ts'
import { NatsServers } from '../../support/nats.ts'
import type { Random } from '../../support/random.ts'
import { type Cable, type Machine, Machines } from './machines.ts'
import { StoreCopies } from './store-copies.ts'

const NAMES = ['n1', 'n2', 'n3']
const BOUNDS_MS = 60_000
const IN_STEP_MS = 20_000
/** A leader makes a backup for each copy of its database, and leaves 128 MiB free. */
const DISK_MIB = 384
const LOG_BYTES = 2 ** 30

export interface ChaosNode {
  readonly name: string
  readonly index: number
  readonly server: KilledServer
  /** Where its feed is listened for while it leads. */
  readonly udpPort: number
  /** 0: it does not listen for HTTP. */
  readonly httpPort: number
  /** Its data directory, if that is a disk of its own. */
  readonly disk: SmallDisk | undefined
  /** Frozen, or unplugged: consumers go elsewhere. */
  isAway: boolean
}

/** What differs from three nodes of this version on disks of their own. */
export interface NodesOptions {
  /** The command `cinnabar` of a node, by its name. */
  readonly programs?: Readonly<Record<string, string>>
  readonly lease?: string
  /** Everything is on loopback, as where no namespace can be made; then the nodes listen for HTTP, too. */
  readonly isOnLoopback?: boolean
  /** Further tables of the configuration of each. */
  readonly toml?: string
}

export class Nodes {
  readonly all: readonly ChaosNode[]
  readonly nats: NatsServers
  readonly machines: Machines
  readonly copies: StoreCopies
  readonly #random: Random
  readonly #files: OperatorDirectory
  readonly #ca: string

  private constructor({ all, nats, machines, random, files, ca }: Parts) {
    this.all = all
    this.nats = nats
    this.machines = machines
    this.copies = new StoreCopies(nats)
    this.#random = random
    this.#files = files
    this.#ca = ca
  }

  /** `random` says which node a consumer connects to. */
  static async start(random: Random, options: NodesOptions = {}): Promise<Nodes> {
    const { length } = NAMES
    const machines = options.isOnLoopback
      ? Machines.onLoopback(length, 'everything is on loopback')
      : Machines.make(length)
    const files = new OperatorDirectory()
    try {
      const authority = await Authority.make()
      const ca = files.write('ca.pem', authority.cert)
      const nats = await startNats(machines, authority, files)
      const all: ChaosNode[] = []
      const nodes = new Nodes({ all, nats, machines, random, files, ca })
      try {
        const places = await Promise.all(
          machines.all.map(async ({ addresses: { nodes: host } }, index) => ({
            name: NAMES[index] as string,
            port: await freePort(),
            host,
          })),
        )
        for (const index of NAMES.keys()) all.push(await nodes.#node(index, places, authority, options))
        for (const { server } of all) server.launch()
        return nodes
      } catch (error) {
        await nodes.remove()
        throw error
      }
    } catch (error) {
      machines.remove()
      files.remove()
      throw error
    }
  }

  /** One of the nodes that run and can be reached; port 0 if none can. */
  get listener(): Listener {
    const there = this.all.filter(({ server, isAway }) => server.running && !isAway)
    return there.length === 0 ? { port: 0 } : this.#random.pick(there).server.listener
  }

  /** How the log is reached from here, as a node of that name. */
  logOptions(node: string): LogOptions {
    const { urls } = this.nats
    const tls = this.machines.missing === undefined ? { tls: { ca: this.#ca } } : {}
    return { cluster: CLUSTER_NAME, node, servers: urls, replicas: urls.length, maxBytes: LOG_BYTES, ...tls }
  }

  named(name: string): ChaosNode {
    const node = this.all.find((each) => each.name === name)
    if (node === undefined) throw new Error(`there is no node ${JSON.stringify(name)}`)
    return node
  }

  /** Where a feed of a node goes. */
  feedOf({ index, server, udpPort }: ChaosNode): FeedTarget {
    const { host } = this.machines.all[index] as Machine
    return { host, port: udpPort, table: `/proc/${server.pid}/net/udp` }
  }

  freeze(node: ChaosNode): void {
    node.isAway = true
    node.server.signal('SIGSTOP')
  }

  thaw(node: ChaosNode): void {
    node.server.signal('SIGCONT')
    node.isAway = false
  }

  /** Unplugs the machine of a node; gives what plugs it in again. The rig still reaches it, if nothing else is said. */
  cutOff(node: ChaosNode, cables: readonly Cable[] = ['nodes', 'nats']): () => void {
    const { machines } = this
    node.isAway = true
    for (const from of cables) machines.unplug(node.index, from)
    return () => {
      for (const into of cables) machines.plug(node.index, into)
      node.isAway = false
    }
  }

  /** What can be seen from outside while nobody serves: which nodes run, and what the nats-servers have of the log, and lead. */
  async look(): Promise<string> {
    const running = this.all.filter(({ server }) => server.running).map(({ name }) => name)
    return `nodes ${running.join(' ')} run; ${await this.nats.look()}`
  }

  /** Throws if a node ended by itself, or complained. */
  healthy(): void {
    for (const { server } of this.all) server.healthy()
  }

  /** A node that does not run gets an empty disk. */
  erase({ server }: ChaosNode): void {
    const data = dirname(server.database)
    for (const name of readdirSync(data)) rmSync(join(data, name), { recursive: true })
  }

  /** Databases that a node has set aside are removed, as an operator would. Gives how many there were. */
  removeSetAside(): number {
    let count = 0
    for (const { server } of this.all) {
      const data = dirname(server.database)
      if (!existsSync(data)) continue
      for (const name of readdirSync(data)) {
        if (!name.startsWith('set-aside-')) continue
        count++
        rmSync(join(data, name), { recursive: true })
      }
    }
    return count
  }

  /** The number of the newest log. */
  async newestLog(): Promise<number> {
    const log = await Log.connect(this.logOptions('judge'))
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

  /**
   * Resolves when each nats-server has what any of them has of the log. One that was put back may never get there, since it had
   * promised what it does not know any more: then it goes on without that.
   */
  async inStep(): Promise<void> {
    const newest = this.newestLog().then((log) => this.nats.inStep(streamName(CLUSTER_NAME, log), IN_STEP_MS))
    await newest.catch(() => {})
  }

  /** Ends the nodes by SIGTERM, all at once. Throws if one of them does not end well. */
  async stop(): Promise<void> {
    await Promise.all(this.all.map(({ server }) => server.stop()))
    this.healthy()
  }

  async remove(): Promise<void> {
    await Promise.all(this.all.map(({ server }) => server.kill()))
    for (const { disk } of this.all) disk?.unmount()
    await Promise.all(this.all.map(({ server }) => server.remove()))
    await this.copies.remove()
    await this.nats.stop()
    this.machines.remove()
    this.#files.remove()
  }

  async #node(
    index: number,
    nodes: ClusterTable['nodes'],
    authority: Authority,
    options: NodesOptions,
  ): Promise<ChaosNode> {
    const { programs = {}, lease = '1s', isOnLoopback = false, toml = '' } = options
    const machine = this.machines.all[index] as Machine
    const { name } = nodes[index] as { readonly name: string }
    const [udpPort, tcpPort] = [await freePort(), await freePort()]
    const httpPort = isOnLoopback ? await freePort() : 0
    const program = programs[name]
    const server = new KilledServer({
      udpPort,
      tcpPort,
      httpPort,
      logLevel: 'error',
      machine,
      ...(program && { program }),
    })
    const disk = canMount() ? SmallDisk.mount(dirname(server.database), DISK_MIB) : undefined
    const nats = this.nats.innerUrls
    const tls = this.machines.missing === undefined ? await this.#certificate(name, authority) : undefined
    server.append(clusterTable({ node: name, nodes, nats, lease, tls }) + toml)
    return { name, index, server, udpPort, httpPort, disk, isAway: false }
  }

  async #certificate(name: string, authority: Authority): Promise<{ ca: string; cert: string; key: string }> {
    const { cert, key } = await authority.node([name])
    const write = (end: string, text: string): string => this.#files.write(`${name}.${end}`, text)
    return { ca: this.#ca, cert: write('pem', cert), key: write('key', key) }
  }
}

interface Parts {
  readonly all: readonly ChaosNode[]
  readonly nats: NatsServers
  readonly machines: Machines
  readonly random: Random
  readonly files: OperatorDirectory
  readonly ca: string
}

/** On loopback without TLS. */
async function startNats(machines: Machines, authority: Authority, files: OperatorDirectory): Promise<NatsServers> {
  const ips = machines.all.flatMap(({ host, addresses }) => [host, addresses.nats])
  const tls = machines.missing === undefined ? files.server(await authority.node([], ips)) : undefined
  return NatsServers.start(3, {
    tls,
    machines: machines.all.map(({ host, addresses, command }) => ({ host, address: addresses.nats, command })),
  })
}
