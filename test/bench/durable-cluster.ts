/**
 * `durable --cluster 1|3`: the same workload through a cluster of so many nodes and nats-servers, and through one server alone, in the
 * same run and in turn. All processes share this machine; on machines of their own each node and each nats-server has what it needs
 * for itself, so processor time is counted apart for the leader, the followers and the nats-servers.
 */
import { median, rounded } from '../rig/figures.ts'
import { BenchCluster } from './bench-cluster.ts'
import { cinnabar } from './durable-cinnabar.ts'
import { type Figures, runOnce } from './durable-run.ts'
import { type OkLatency, okLatency } from './ok-latency.ts'
import type { Contender } from './peers/contender.ts'
import type { Commits } from './processes/end.ts'

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
  /** Of the followers, while the values came. */
  readonly lagMs: number
}

interface ClusterContender extends Contender {
  /** The longest that a follower was behind since the last start. */
  readonly largestLagMs: number
}

/** The medians of all runs; ratios are medians of the ratios of those that ran side by side. */
export async function benchCluster({ size, values, commits, runs, dir }: ClusterBench): Promise<object> {
  const contenders = [cinnabar(values, commits), clusterOf(size, values, commits)] as const
  const pairs: (readonly [Measured, Measured])[] = []
  for (let run = 0; run < runs; run++) {
    const measured: Measured[] = []
    for (const index of run % 2 === 0 ? [0, 1] : [1, 0]) {
      const one = await measure(contenders[index as 0 | 1], dir)
      measured[index] = one
      const { name, valuesPerSecond } = one.figures
      console.log(`${name}: ${valuesPerSecond} values/s, OK after ${one.ok.p50Ms} ms (p99 ${one.ok.p99Ms} ms)`)
    }
    pairs.push(measured as unknown as readonly [Measured, Measured])
  }
  const of = (index: 0 | 1, get: (measured: Measured) => number): number =>
    median(pairs.map((pair) => get(pair[index])))
  const ratio = (get: (measured: Measured) => number): number =>
    rounded(median(pairs.map(([alone, cluster]) => get(cluster) / get(alone))), 3)
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
    largestLagMs: Math.max(...pairs.map(([, { lagMs }]) => lagMs)),
    runs: pairs.map((pair) => pair.map(rate)),
  }
}

async function measure(contender: Contender | ClusterContender, dir: string): Promise<Measured> {
  let ok: OkLatency | undefined
  let lagMs = 0
  const figures = await runOnce(contender, dir, async ({ consumer }) => {
    lagMs = 'largestLagMs' in contender ? contender.largestLagMs : 0
    ok = await okLatency(consumer.port)
  })
  return { figures, ok: ok as OkLatency, lagMs }
}

function clusterOf(size: number, values: number, commits: Commits): ClusterContender {
  let cluster: BenchCluster | undefined
  return {
    name: `cluster of ${size}`,
    settings: `${size} nodes and ${size} nats-servers on this machine, a log with ${size} replicas; OK when durable in both`,
    values,
    get largestLagMs() {
      return cluster?.largestLagMs ?? 0
    },
    async start(directory) {
      const sections = (port: number) => ({ more: `[smon]\ntcp = "127.0.0.1:${port}"\n` })
      cluster = await BenchCluster.start({ directory, size, values, sections })
      const { leader, followers, nats } = cluster
      return {
        server: leader.server,
        others: { followers: followers.map(({ server }) => server), nats },
        stop: async () => cluster?.stop(),
        publisher: { end: 'smon-publisher', port: leader.feedPort, values },
        consumer: { end: 'cinnabar-consumer', port: leader.port, values, commits },
      }
    },
  }
}
