/** What `channels` measures: one server, with its threads apart; or a cluster, with its parts apart. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchCluster, type BenchNode } from './bench-cluster.ts'
import { Local } from './connection.ts'
import { ADMIN_PASSWORD } from './durable-consumer.ts'
import { MeasuredServer } from './measured.ts'
import type { ServerUnderTest } from './processes/server-under-test.ts'

export interface ChannelsSubject {
  readonly tcpPort: number
  readonly gmetricPort: number
  readonly user: Local
  /** All channels are there. */
  made(): void
  /** What is spent from now on counts. */
  begin(): void
  /** What was spent in so many seconds. */
  figures(seconds: number): Promise<Readonly<Record<string, string | number>>>
  remove(): Promise<void>
}

const share = (cpuSeconds: number, seconds: number): string => (cpuSeconds / seconds).toFixed(3)

/** `toml`: further sections. */
export async function oneServer(toml: string): Promise<ChannelsSubject> {
  const server = new MeasuredServer(toml)
  await server.start()
  const rssAtStartMiB = server.rssMiB
  let rssWhenMadeMiB = 0
  let cpu = server.cpu()
  return {
    tcpPort: server.tcpPort,
    gmetricPort: server.gmetricPort,
    user: new Local(server.localSecret),
    made() {
      rssWhenMadeMiB = server.rssMiB
    },
    begin() {
      server.resetLoopDelay()
      server.resetPeak()
      cpu = server.cpu()
    },
    async figures(seconds) {
      const spent = server.cpu()
      const loopDelayP99Ms = await server.loopDelayP99Ms()
      return {
        storageShareOfCore: share(spent.storage - cpu.storage, seconds),
        mainShareOfCore: share(spent.main - cpu.main, seconds),
        allShareOfCore: share(spent.all - cpu.all, seconds),
        rssAtStartMiB,
        rssWhenMadeMiB,
        rssAtEndMiB: server.rssMiB,
        peakRssMiB: server.peakRssMiB,
        loopDelayP99Ms,
      }
    },
    remove: () => server.remove(),
  }
}

/** `size` nodes and as many nats-servers. */
export async function aCluster(size: number, toml: string): Promise<ChannelsSubject> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-'))
  const sections = (port: number) => ({ gmetric: `127.0.0.1:${port}`, more: toml })
  const cluster = await BenchCluster.start({ directory, size, values: 0, sections })
  const { leader, followers, nats } = cluster
  const serversOf = (nodes: readonly BenchNode[]): ServerUnderTest[] => nodes.map(({ server }) => server)
  const parts = { leader: serversOf([leader]), followers: serversOf(followers), nats }
  const spentBy = (servers: readonly ServerUnderTest[]): number =>
    servers.reduce((sum, server) => sum + server.cost().cpuSeconds, 0)
  const spent = (): number[] => Object.values(parts).map(spentBy)
  let before = spent()
  return {
    tcpPort: leader.port,
    gmetricPort: leader.feedPort,
    user: new Local(ADMIN_PASSWORD, 'admin'),
    made() {},
    begin() {
      leader.server.resetLoopDelay()
      before = spent()
      cluster.largestLagMs = 0
    },
    async figures(seconds) {
      const after = spent()
      const loopDelayP99Ms = (await leader.server.loopDelayP99Ms()) ?? 0
      const shares = Object.keys(parts).map((part, index) => {
        const cpuSeconds = (after[index] as number) - (before[index] as number)
        return [`${part}ShareOfCore`, share(cpuSeconds, seconds)] as const
      })
      return {
        nodes: size,
        ...Object.fromEntries(shares),
        leaderPeakRssMiB: Math.round(leader.server.cost().peakRssMiB),
        followerPeakRssMiB: Math.round(Math.max(0, ...followers.map(({ server }) => server.cost().peakRssMiB))),
        largestLagMs: cluster.largestLagMs,
        loopDelayP99Ms: loopDelayP99Ms.toFixed(1),
      }
    },
    async remove() {
      await cluster.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
