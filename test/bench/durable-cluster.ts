/**
 * `durable --cluster 1|3`: the same workload through a cluster of so many nodes and nats-servers, and through one server alone, in the
 * same run and in turn. All processes share this machine; on machines of their own each node and each nats-server has what it needs
 * for itself, so processor time is counted apart for the leader, the followers and the nats-servers.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { CLUSTER_NAME, clusterTable } from '../support/cluster-table.ts'
import { freePort } from '../support/free-port.ts'
import { decoded } from '../support/records.ts'
import { cinnabar, launched } from './durable-cinnabar.ts'
import { seatAt } from './durable-consumer.ts'
import { type Figures, runOnce } from './durable-run.ts'
import { type OkLatency, okLatency } from './ok-latency.ts'
import type { Contender, Started } from './peers/contender.ts'
import type { Commits } from './processes/end.ts'
import { ServerUnderTest } from './processes/server-under-test.ts'

const NATS_SERVER = 'nats-server'
const LEASE = '2s'
const LOOK_MS = 50

export interface ClusterBench {
  /** Of nodes, and of nats-servers. */
  readonly size: number
  readonly values: number
  readonly commits: Commits
  readonly runs: number
  readonly dir: string
}

interface Measured {
  readonly figures: Figures
  readonly ok: OkLatency
}

/** The medians of all runs; ratios are medians of the ratios of those that ran side by side. */
export async function benchCluster({ size, values, commits, runs, dir }: ClusterBench): Promise<object> {
  const contenders = [cinnabar(values, commits), clusterOf(size, values, commits)] as const
  const pairs: (readonly [Measured, Measured])[] = []
  for (let run = 0; run < runs; run++) {
    const measured: Measured[] = []
    for (const index of run % 2 === 0 ? [0, 1] : [1, 0]) {
      const one = await measure(contenders[index] as Contender, dir)
      measured[index] = one
      const { name, valuesPerSecond } = one.figures
      console.log(`${name}: ${valuesPerSecond} values/s, OK after ${one.ok.p50Ms} ms (p99 ${one.ok.p99Ms} ms)`)
    }
    pairs.push(measured as unknown as readonly [Measured, Measured])
  }
  const of = (index: 0 | 1, get: (measured: Measured) => number): number =>
    median(pairs.map((pair) => get(pair[index])))
  const ratio = (get: (measured: Measured) => number): number =>
    Number(median(pairs.map(([alone, cluster]) => get(cluster) / get(alone))).toFixed(3))
  const cpuOf = (name: string) => (measured: Measured) => measured.figures.othersCpuPerMillion?.[name] ?? 0
  const rate = ({ figures }: Measured): number => figures.valuesPerSecond
  const cpu = ({ figures }: Measured): number => figures.cpuPerMillion
  return {
    nodes: size,
    values,
    alonePerSecond: of(0, rate),
    clusterPerSecond: of(1, rate),
    rate: ratio(rate),
    cpuPerMillionAlone: of(0, cpu),
    cpuPerMillionLeader: of(1, cpu),
    cpuPerMillionFollowers: of(1, cpuOf('followers')),
    cpuPerMillionNats: of(1, cpuOf('nats')),
    okAloneP50Ms: of(0, ({ ok }) => ok.p50Ms),
    okAloneP99Ms: of(0, ({ ok }) => ok.p99Ms),
    okClusterP50Ms: of(1, ({ ok }) => ok.p50Ms),
    okClusterP99Ms: of(1, ({ ok }) => ok.p99Ms),
    runs: pairs.map((pair) => pair.map(rate)),
  }
}

async function measure(contender: Contender, dir: string): Promise<Measured> {
  let ok: OkLatency | undefined
  const figures = await runOnce(contender, dir, async ({ consumer }) => {
    ok = await okLatency(consumer.port)
  })
  return { figures, ok: ok as OkLatency }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number
}

function clusterOf(size: number, values: number, commits: Commits): Contender {
  return {
    name: `cluster of ${size}`,
    settings: `${size} nodes and ${size} nats-servers on this machine, a log with ${size} replicas; OK when durable in both`,
    values,
    async start(directory) {
      const nats = await startNats(directory, size)
      const nodes = await startNodes({ directory, size, values, nats: nats.map(({ url }) => url) })
      const stop = async (): Promise<void> => {
        for (const { server } of [...nodes, ...nats].toReversed()) await server.stop()
      }
      try {
        const leader = await leaderOf(nodes)
        return started({ leader, nodes, nats, stop, values, commits })
      } catch (error) {
        await stop()
        throw error
      }
    },
  }
}

interface BenchNode {
  readonly name: string
  readonly port: number
  readonly smon: number
  readonly server: ServerUnderTest
}

interface BenchNats {
  readonly url: string
  readonly server: ServerUnderTest
}

interface Running {
  readonly leader: BenchNode
  readonly nodes: readonly BenchNode[]
  readonly nats: readonly BenchNats[]
  readonly stop: () => Promise<void>
  readonly values: number
  readonly commits: Commits
}

function started({ leader, nodes, nats, stop, values, commits }: Running): Started {
  return {
    server: leader.server,
    others: {
      followers: nodes.filter((node) => node !== leader).map(({ server }) => server),
      nats: nats.map(({ server }) => server),
    },
    stop,
    publisher: { end: 'smon-publisher', port: leader.smon, values },
    consumer: { end: 'cinnabar-consumer', port: leader.port, values, commits },
  }
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

interface NodesSetup {
  readonly directory: string
  readonly size: number
  readonly values: number
  readonly nats: readonly string[]
}

async function startNodes({ directory, size, values, nats }: NodesSetup): Promise<BenchNode[]> {
  const names = Array.from({ length: size }, (_, index) => `n${index + 1}`)
  const nodes = await Promise.all(names.map(async (name) => ({ name, port: await freePort() })))
  const start = async (name: string): Promise<BenchNode> => {
    const [port, smon] = [await freePort(), await freePort()]
    const table = clusterTable({ node: name, nodes, nats, lease: LEASE })
    const more = `[smon]\ntcp = "127.0.0.1:${smon}"\n${table}`
    const server = await launched({ directory: join(directory, name), port, values, more })
    return { name, port, smon, server }
  }
  return Promise.all(names.map(start))
}

/** Asks until a node leads. */
async function leaderOf(nodes: readonly BenchNode[]): Promise<BenchNode> {
  for (;;) {
    for (const { port } of nodes) {
      const seat = await seatAt(port).catch(() => undefined)
      if (seat === undefined) continue
      const { name, leader } = decoded(await seat.query('producer.cluster'))
      seat.peer.destroy()
      const node = nodes.find((each) => each.name === leader)
      if (name === CLUSTER_NAME && node !== undefined) return node
    }
    await setTimeout(LOOK_MS)
  }
}
