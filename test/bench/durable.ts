/**
 * Durable delivery from process to process: smon over TCP -> a pattern on one durable channel -> a TCP consumer that
 * COMMITs every value by itself and has the OK of each. With `--peers`, the same workload through what people would use
 * instead, in the same run, each by raw sockets and with its own persistence; with `--without-recent`, through the same server
 * where it keeps no recent values for charts; with `--with-history`, where it records its values; with `--cluster 1|3`, through a
 * cluster of so many nodes and nats-servers.
 */
import { tmpdir } from 'node:os'
import { median, rounded, tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { cinnabar } from './durable-cinnabar.ts'
import { benchCluster, type ClusterBench } from './durable-cluster.ts'
import { type Figures, runOnce } from './durable-run.ts'
import { limitContender } from './limit/start.ts'
import type { Contender, Peer } from './peers/contender.ts'
import { mosquitto } from './peers/mosquitto.ts'
import { nats } from './peers/nats.ts'
import { redis } from './peers/redis.ts'
import type { Commits } from './processes/end.ts'
import type { Figures as Measured } from './ratios.ts'

const VALUES = 5_000_000

interface Options {
  readonly values: number
  readonly commits: Commits
  readonly own: Contender
  /** The same without `[recent]`, and with a history, if that was asked for. */
  readonly others: readonly Contender[]
  readonly peers: readonly Peer[]
  readonly runs: number
  readonly dir: string
  /** Measured instead, beside the same without a cluster. */
  readonly cluster: ClusterBench | undefined
}

/** Measured `--runs` times in turn; the run with the median values/s of each contender counts. */
export async function benchDurable(argv: string[]): Promise<object> {
  const { own, others, peers, runs, dir, cluster } = optionsOf(argv)
  if (cluster !== undefined) return benchCluster(cluster)
  const contenders: readonly Contender[] = [own, ...others, ...peers.filter(isThere)]
  const rounds: Figures[][] = []
  for (let run = 0; run < runs; run++) {
    const round: Figures[] = []
    // Every second round in reverse order: what comes first has a cooler machine.
    for (const contender of run % 2 === 0 ? contenders : contenders.toReversed()) {
      const figures = await runOnce(contender, dir)
      round[contenders.indexOf(contender)] = figures
      console.log(`${figures.name}: ${figures.valuesPerSecond} values/s`)
    }
    rounds.push(round)
  }
  const results = contenders.map((_, index) => resultOf(rounds, index))
  console.log(table(results))
  const [ours, ...theirs] = results as [Result, ...Result[]]
  return {
    ...ours.figures,
    runs: ours.runs,
    ...(theirs.length > 0 && { peers: theirs.map(({ figures, ...result }) => ({ ...figures, ...result })) }),
  }
}

/** Of one contender over all rounds. */
interface Result {
  /** Those of the run with the median values/s. */
  readonly figures: Figures
  /** values/s of every run. */
  readonly runs: readonly number[]
  /** Cinnabar's values/s by its own: the median of the rounds, since what is compared should have run side by side. */
  readonly ratio: number
  /** The same of CPU seconds: above 1, Cinnabar needs less. */
  readonly cpuRatio: number
}

function resultOf(rounds: readonly (readonly Figures[])[], index: number): Result {
  const all = rounds.map((round) => round[index] as Figures)
  const runs = all.map(({ valuesPerSecond }) => valuesPerSecond)
  const middle = median(runs)
  const pairs = rounds.map((round) => [round[0] as Figures, round[index] as Figures] as const)
  const ratio = median(pairs.map(([own, other]) => own.valuesPerSecond / other.valuesPerSecond))
  const cpuRatio = median(pairs.map(([own, other]) => other.cpuPerMillion / own.cpuPerMillion))
  const figures = all.find(({ valuesPerSecond }) => valuesPerSecond === middle) as Figures
  return { figures, runs, ratio: rounded(ratio, 3), cpuRatio: rounded(cpuRatio, 3) }
}

function optionsOf(argv: string[]): Options {
  const given = optionsIn(argv, {
    values: VALUES,
    'peer-values': '',
    shuffle: 0,
    runs: 1,
    dir: tmpdir(),
    cluster: '',
    through: false,
    'write-all': false,
    peers: false,
    'without-recent': false,
    'with-history': false,
  })
  const commits = { through: given.through, shuffle: given.shuffle, writeAll: given['write-all'] }
  if (Number(commits.through) + Number(commits.shuffle > 0) + Number(commits.writeAll) > 1) {
    throw new Error('--through, --shuffle and --write-all exclude each other: each is a way to COMMIT')
  }
  if (!(given.runs >= 1)) throw new Error(`--runs ${given.runs}: at least 1 is needed`)
  if (!['', '1', '3'].includes(given.cluster)) throw new Error(`--cluster ${given.cluster}: 1 or 3 nodes`)
  const { values, runs } = given
  const size = Number(given.cluster)
  return {
    values,
    commits,
    cluster: size > 0 ? { size, values, commits, runs, dir: given.dir } : undefined,
    own: cinnabar(values, commits),
    others: [
      ...(given['without-recent'] ? [cinnabar(values, commits, { hasRecent: false })] : []),
      ...(given['with-history'] ? [cinnabar(values, commits, { hasHistory: true })] : []),
    ],
    peers: given.peers ? peersWith(given['peer-values']) : [],
    runs,
    dir: given.dir,
  }
}

/**
 * The least that any server has to do, with the same ends; `measured`: figures of the same with the server. Undefined with
 * `--cluster`, which is measured beside the server alone.
 */
export async function limitOfDurable(argv: string[], measured: Measured): Promise<Measured | undefined> {
  const { values, commits, dir, cluster, runs } = optionsOf(argv)
  if (cluster !== undefined) return undefined
  const rounds: Figures[][] = []
  for (let run = 0; run < runs; run++) rounds.push([await runOnce(limitContender(values, commits, measured), dir)])
  return { ...resultOf(rounds, 0).figures }
}

/** As many values each as take some seconds; `values` not empty: so many for all. */
function peersWith(values: string): readonly Peer[] {
  const count = (usual: number): number => (values === '' ? usual : Number(values))
  return [
    redis('always', count(400_000)),
    redis('everysec', count(600_000)),
    nats('always', count(100_000)),
    nats('default', count(300_000)),
    mosquitto(count(500_000)),
  ]
}

function isThere(peer: Peer): boolean {
  const missing = peer.missing()
  if (missing !== undefined) console.log(`${peer.name}: left out, ${missing}`)
  return missing === undefined
}

function table(results: readonly Result[]): string {
  const head = [
    '',
    'values',
    'values/s',
    'cinnabar is',
    'CPU s / million',
    'of ends',
    'peak RSS MiB',
    'written MiB',
    'loop p99 ms',
  ]
  const rows = results.map(({ figures, ratio }, index) =>
    [
      figures.name,
      figures.values,
      figures.valuesPerSecond,
      index === 0 ? '' : `${ratio.toFixed(ratio < 2 ? 3 : 1)} x`,
      figures.cpuPerMillion,
      figures.endsCpuPerMillion.join(' + '),
      figures.peakRssMiB,
      figures.writtenMiB,
      figures.loopDelayP99Ms ?? '-',
    ].map(String),
  )
  return [tableOf(head, rows), ...results.map(({ figures }) => `${figures.name}: ${figures.settings}`)].join('\n')
}
