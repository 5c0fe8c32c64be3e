/**
 * A Cinnabar from dist/ as a process of its own (`npm run build` first), that can be started again on its data, and what it
 * costs by thread, from /proc (Linux only). BENCH_NODE_OPTIONS are further options of its Node: `--cpu-prof` writes its
 * profile when it is ended by SIGTERM.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PROGRAM, READY } from '../support/program.ts'

const LOOP_DELAY = fileURLToPath(new URL('./processes/loop-delay.mjs', import.meta.url))
/** USER_HZ, which is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100
const LAST_WORDS = 4_000

/** CPU seconds, user and system, since the process began. */
export interface CpuSeconds {
  readonly all: number
  /** The thread of the event loop. */
  readonly main: number
  /** The thread that writes the database. */
  readonly storage: number
}

export class MeasuredServer {
  readonly #directory: string
  readonly #program: (directory: string) => readonly string[]
  #child: ChildProcess | undefined
  #output = ''
  tcpPort = 0
  gmetricPort = 0

  /** `toml`: further sections. `dir`: where the data directory is made. `program`: what is started instead, and its arguments. */
  constructor(toml = '', dir = tmpdir(), program?: (directory: string) => readonly string[]) {
    this.#directory = mkdtempSync(join(dir, 'cinnabar-bench-'))
    this.#program = program ?? (() => [PROGRAM, 'serve', '--config', this.#config])
    writeFileSync(
      this.#config,
      `[producer]\nname = "n1"\ndata_dir = ${JSON.stringify(this.#dataDir)}\n` +
        `[listen]\ntcp = "127.0.0.1:0"\nhttp = ""\n[gmetric]\nlisten = "127.0.0.1:0"\n` +
        `[auth]\nscram_iterations = 4096\n[log]\nlevel = "warn"\n${toml}`,
    )
  }

  get #config(): string {
    return join(this.#directory, 'cinnabar.toml')
  }

  get #dataDir(): string {
    return join(this.#directory, 'data')
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** The secret of the user `local`, whose login costs no bcrypt. */
  get localSecret(): string {
    return readFileSync(join(this.#dataDir, 'admin.secret'), 'utf8').trim()
  }

  /** `nodeOptions`: more of them. Gives the seconds until it listened. */
  async start(nodeOptions: readonly string[] = []): Promise<number> {
    const started = performance.now()
    const options = [...nodeOptions, ...(process.env['BENCH_NODE_OPTIONS']?.split(' ') ?? [])]
    const args = ['--import', LOOP_DELAY, ...options, ...this.#program(this.#directory)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    this.#child = child
    // A benchmark that fails leaves nothing running.
    const orphaned = (): boolean => child.kill('SIGKILL')
    process.once('exit', orphaned)
    child.once('exit', () => process.off('exit', orphaned))
    this.#output = ''
    const listens = new Promise<void>((resolve) => {
      const take = (chunk: Buffer): void => {
        this.#output = (this.#output + chunk.toString()).slice(-LAST_WORDS)
        if (this.#output.includes(READY)) resolve()
      }
      for (const stream of [child.stdout, child.stderr]) stream?.on('data', take)
    })
    const gone = once(child, 'exit').then(([code]) => {
      throw new Error(`the server ended with exit code ${code}:\n${this.#output}`)
    })
    gone.catch(() => {})
    try {
      await Promise.race([listens, gone])
    } catch (error) {
      rmSync(this.#directory, { recursive: true, force: true })
      throw error
    }
    const seconds = (performance.now() - started) / 1000
    this.tcpPort = Number(/tcp:\/\/127\.0\.0\.1:(\d+)/.exec(this.#output)?.[1])
    this.gmetricPort = Number(/udp:\/\/127\.0\.0\.1:(\d+)/.exec(this.#output)?.[1])
    return seconds
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }

  /** Ends it, so that it can still write what BENCH_NODE_OPTIONS asked for, and removes its data. */
  async remove(): Promise<void> {
    await this.end('SIGTERM')
    rmSync(this.#directory, { recursive: true, force: true })
  }

  cpu(): CpuSeconds {
    const proc = `/proc/${this.pid}`
    const threads = readdirSync(`${proc}/task`)
    const written = (thread: string): number => numberIn(`${proc}/task/${thread}/io`, 'wchar')
    const [storage] = threads.filter((thread) => Number(thread) !== this.pid).sort((a, b) => written(b) - written(a))
    return {
      all: cpuSeconds(`${proc}/stat`),
      main: cpuSeconds(`${proc}/task/${this.pid}/stat`),
      storage: storage === undefined ? 0 : cpuSeconds(`${proc}/task/${storage}/stat`),
    }
  }

  get rssMiB(): number {
    return Math.round(numberIn(`/proc/${this.pid}/status`, 'VmRSS') / 1024)
  }

  /** What it caused to be written to block devices. */
  get writtenMiB(): number {
    return Math.round(numberIn(`/proc/${this.pid}/io`, 'write_bytes') / 2 ** 20)
  }

  /** The most since it was started, or since `resetPeak`. */
  get peakRssMiB(): number {
    return Math.round(numberIn(`/proc/${this.pid}/status`, 'VmHWM') / 1024)
  }

  resetPeak(): void {
    writeFileSync(`/proc/${this.pid}/clear_refs`, '5')
  }

  /** Needs `--expose-gc`. */
  async collectGarbage(): Promise<void> {
    const child = this.#child as ChildProcess
    child.send('collect')
    await once(child, 'message')
  }

  resetLoopDelay(): void {
    this.#child?.send('reset')
  }

  /** Milliseconds, since `resetLoopDelay`. */
  async loopDelayP99Ms(): Promise<string> {
    const child = this.#child as ChildProcess
    child.send('read')
    const [p99] = await once(child, 'message')
    return Number(p99).toFixed(1)
  }
}

/** CPU seconds of any process. */
export function cpuSecondsOf(pid: number): number {
  return cpuSeconds(`/proc/${pid}/stat`)
}

function cpuSeconds(file: string): number {
  const stat = readFileSync(file, 'utf8')
  // Behind the program's name, which may contain anything, come the state and then the numbers.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The number of a line `name: number`. */
function numberIn(file: string, name: string): number {
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((candidate) => candidate.startsWith(`${name}:`))
  return Number(/\d+/.exec(line ?? '')?.[0] ?? 0)
}
