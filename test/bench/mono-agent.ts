/**
 * What the Mono agent costs its application: CPU and time of a program with it and without, in turns, `--runs` of each,
 * and of a program that sleeps. An inspector that only counts takes what it sends. Noise is the ratio of two series
 * without the agent: a ratio that is no further from 1 says nothing. Needs mono-runtime and mono-mcs.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { optionsIn } from '../rig/options.ts'

const beside = (path: string) => new URL(path, import.meta.url).pathname

interface Cost {
  readonly wall: number
  readonly cpu: number
}

export async function benchMonoAgent(argv: string[]): Promise<object> {
  const options = optionsIn(argv, { runs: 10, rounds: 1_000, interval: 1_000, counters: '', idle: 20 })
  const [rounds, seconds] = [String(options.rounds), String(options.idle)]
  let bytes = 0
  const inspector = createServer((socket) => {
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
    socket.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(inspector, 'listening')
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-'))
  const program = join(directory, 'work.exe')
  execFileSync(beside('../../agents/mono/build'))
  execFileSync('mcs', ['-optimize', `-out:${program}`, beside('mono-agent-work.cs')])
  const { port } = inspector.address() as AddressInfo
  const counters = options.counters === '' ? '' : `,counters=${options.counters}`
  const agent = `${beside('../../agents/mono/CinnabarAgent.exe')}:port=${port},interval=${options.interval}${counters}`

  const work = (...args: string[]) => run([program, ...args])
  const watched = (...args: string[]) => run([`--agent=${agent}`, program, ...args])
  const busy: Cost[] = []
  const busyAgain: Cost[] = []
  const busyWatched: Cost[] = []
  await work('busy', rounds)
  for (let left = options.runs; left > 0; left--) {
    busy.push(await work('busy', rounds))
    busyWatched.push(await watched('busy', rounds))
    busyAgain.push(await work('busy', rounds))
  }
  const idle = await work('idle', seconds)
  bytes = 0
  const idleWatched = await watched('idle', seconds)
  inspector.close()
  rmSync(directory, { recursive: true })
  return {
    cpuSeconds: median(busy, 'cpu').toFixed(3),
    cpuSecondsWatched: median(busyWatched, 'cpu').toFixed(3),
    cpuRatio: (median(busyWatched, 'cpu') / median(busy, 'cpu')).toFixed(4),
    cpuNoise: (median(busyAgain, 'cpu') / median(busy, 'cpu')).toFixed(4),
    seconds: median(busy, 'wall').toFixed(3),
    secondsWatched: median(busyWatched, 'wall').toFixed(3),
    wallRatio: (median(busyWatched, 'wall') / median(busy, 'wall')).toFixed(4),
    wallNoise: (median(busyAgain, 'wall') / median(busy, 'wall')).toFixed(4),
    // With what it takes to start.
    idleShareOfCore: ((idleWatched.cpu - idle.cpu) / options.idle).toFixed(4),
    idleBytesPerSecond: Math.round(bytes / options.idle),
  }
}

/** Seconds of one run of Mono, as the shell's `time` has them. */
async function run(args: readonly string[]): Promise<Cost> {
  const child = spawn('bash', ['-c', 'TIMEFORMAT="%R %U %S"; time mono "$@" > /dev/null', 'bash', ...args])
  const [wall = 0, user = 0, system = 0] = (await text(child.stderr)).trim().split(' ').map(Number)
  return { wall, cpu: user + system }
}

function median(costs: readonly Cost[], what: keyof Cost): number {
  const sorted = costs.map((cost) => cost[what]).toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return (sorted[Math.floor(middle - 0.5)]! + sorted[Math.ceil(middle - 0.5)]!) / 2
}
