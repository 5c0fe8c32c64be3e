/**
 * A cluster (docs/cluster.md) as the place of a demonstration: three nodes and three nats-servers. The node that leads is killed;
 * another one takes over, and the killed one follows it when it is started again.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connect, type Consumer, valueToJson } from '../../client/index.ts'
import type { JsonRecord } from '../cluster-node.ts'
import { ExitCode, Failure } from '../failure.ts'
import { killsOf } from './kills.ts'
import { DemoNatsServers } from './nats-servers.ts'
import { formatThousands } from './output.ts'
import type { DemoLogin, DemoPlace } from './place.ts'
import { ReservedPort } from './reserved-port.ts'
import type { Demonstration } from './scenario.ts'
import { DemoServer } from './server.ts'
import { Stage } from './stage.ts'

const INTRODUCTION = [
  '                   ┌──►  n1 ──┐',
  '1, 2, 3 …  ────────┤     n2   ├──►  a consumer, at any of them',
  '  to the leader    └     n3 ──┘',
  '',
  'A source counts. A consumer has to handle each number exactly once and in order. One of the',
  'three nodes leads, and is killed three times with kill -9. What is stored is then in the log',
  'of the cluster and may not be lost: another node takes over. The source cannot see what is',
  'stored: before a kill it pauses until all is.',
  '',
] as const
const NODES = ['n1', 'n2', 'n3'] as const
/** How long the nodes may take to choose who leads, and to have the same. */
const PATIENCE_MS = 60_000
const POLL_MS = 50

interface ClusterParts {
  readonly nats: DemoNatsServers
  readonly ports: readonly ReservedPort[]
  readonly nodes: readonly [DemoServer, ...DemoServer[]]
}

export async function demonstrateCluster(connect: Connect): Promise<Demonstration> {
  const place = await DemoCluster.create(connect)
  return {
    introduction: INTRODUCTION,
    ...killsOf(new Stage({ place, connect })),
    conclude: () => place.conclude(),
  }
}

class DemoCluster implements DemoPlace {
  readonly name = 'the cluster'
  /** Rejects with Failure if any of the processes ends by itself. */
  readonly failed: Promise<never>
  readonly #nats: DemoNatsServers
  /** At which the nodes reach each other. */
  readonly #ports: readonly ReservedPort[]
  readonly #nodes: readonly DemoServer[]
  readonly #password: string
  readonly #connect: Connect
  #leader: DemoServer
  #killed: DemoServer | undefined
  #killedMs = 0

  static async create(connect: Connect): Promise<DemoCluster> {
    const nats = await DemoNatsServers.create()
    const adminPassword = randomBytes(18).toString('base64url')
    const ports = await Promise.all(NODES.map(() => ReservedPort.reserve()))
    const addresses = ports.map(({ number }, index) => ({ name: NODES[index] as string, port: number }))
    const nodes: DemoServer[] = []
    for (const node of NODES) {
      const cluster = { node, nodes: addresses, nats: nats.urls, adminPassword }
      nodes.push(await DemoServer.create({ cluster }))
    }
    return new DemoCluster({ nats, ports, nodes: nodes as [DemoServer, ...DemoServer[]] }, adminPassword, connect)
  }

  private constructor({ nats, ports, nodes }: ClusterParts, password: string, connect: Connect) {
    this.#nats = nats
    this.#ports = ports
    this.#nodes = nodes
    this.#password = password
    this.#connect = connect
    this.#leader = nodes[0]
    this.failed = Promise.race([nats.failed, ...nodes.map(({ failed }) => failed)])
    this.failed.catch(() => {})
  }

  get smonPort(): number {
    return this.#leader.smonPort
  }

  async login(): Promise<DemoLogin> {
    const url = this.#nodes.map(({ port }) => `tcp://127.0.0.1:${port}`)
    return { url, credentials: { identity: 'admin', password: this.#password } }
  }

  async start(): Promise<readonly string[]> {
    await this.#nats.start()
    await Promise.all(this.#nodes.map((node) => node.start()))
    await this.#findLeader()
    return [
      `three nats-servers are up, processes ${this.#nats.pids.join(', ')}, data in ${this.#nats.directory}`,
      ...this.#nodes.map(({ name, pid, directory }) => `node ${name} is up, process ${pid}, data in ${directory}`),
      `${this.#leader.name} leads`,
    ]
  }

  async kill(): Promise<string> {
    const { name, pid } = this.#leader
    this.#killedMs = performance.now()
    this.#killed = this.#leader
    await this.#leader.kill()
    return `${pid}, ${name}`
  }

  async recover(): Promise<readonly string[]> {
    const killed = this.#killed as DemoServer
    await this.#findLeader()
    const seconds = ((performance.now() - this.#killedMs) / 1_000).toFixed(1)
    await killed.start()
    return [
      `${this.#leader.name} leads, and has answered ${seconds} s after the kill`,
      `${killed.name} is up again, process ${killed.pid}, and follows`,
    ]
  }

  /** Waits until all nodes have the same, and says what that is. */
  async conclude(): Promise<readonly string[]> {
    const consumer = await this.#reader()
    try {
      const end = performance.now() + PATIENCE_MS
      for (;;) {
        const state = await stateAt(consumer)
        const nodes = state['nodes'] as readonly JsonRecord[]
        const sequences = nodes.map(({ sequence }) => Number(sequence))
        const [first = 0] = sequences
        const isOne = nodes.every(({ role }) => role !== 'not heard') && sequences.every((each) => each === first)
        if (isOne)
          return [
            `all three nodes have everything up to record ${formatThousands(first)} of the log, epoch ${state['epoch']}`,
          ]
        if (performance.now() > end) {
          throw new Failure(ExitCode.FAILED, `the nodes do not have the same records: ${sequences.join(', ')}`)
        }
        await sleep(POLL_MS)
      }
    } finally {
      await consumer.close()
    }
  }

  /** Kills all processes and deletes everything they have written. */
  async remove(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.remove()))
    await this.#nats.remove()
    for (const port of this.#ports) port.release()
  }

  async #findLeader(): Promise<void> {
    const consumer = await this.#reader()
    try {
      const { leader } = await stateAt(consumer)
      const node = this.#nodes.find(({ name }) => name === leader)
      if (node === undefined) throw new Failure(ExitCode.FAILED, `no node leads: ${leader}`)
      this.#leader = node
    } finally {
      await consumer.close()
    }
  }

  async #reader(): Promise<Consumer> {
    const { url, credentials } = await this.login()
    return this.#connect(url, credentials, { durable: false, reconnect: false, waitForServerMs: PATIENCE_MS })
  }
}

async function stateAt(consumer: Consumer): Promise<JsonRecord> {
  const { value } = await consumer.query('producer.cluster')
  return valueToJson(value) as JsonRecord
}
