/**
 * A Cinnabar from dist/ as a process of its own (`npm run build` first), that can be started again on its data, and what it
 * costs by thread, from /proc (Linux only).
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpuSecondsOf, forgetPeak, handedOver, memoryMiB, writtenMiBOf } from '../rig/process-costs.ts'
import { READY, SERVER_PROGRAM } from '../support/program.ts'
import { MeasuredNode } from './processes/measured-node.ts'

/** What a history costs is measured by `history`, and by nothing else. */
export const WITHOUT_HISTORY = '[history]\nkeep = "0"\n'

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
  #child: MeasuredNode | undefined
  tcpPort = 0
  gmetricPort = 0

  /** `toml`: further sections. `dir`: where the data directory is made. `program`: what is started instead, and its arguments. */
  constructor(toml = '', dir = tmpdir(), program?: (directory: string) => readonly string[]) {
    this.#directory = mkdtempSync(join(dir, 'cinnabar-bench-'))
    this.#program = program ?? (() => [SERVER_PROGRAM, 'serve', '--config', this.#config])
    writeFileSync(
      this.#config,
      `[producer]\nname = "n1"\ndata_dir = ${JSON.stringify(this.#dataDir)}\n` +
        `[listen]\ntcp = "127.0.0.1:0"\nhttp = ""\n[gmetric]\nlisten = "127.0.0.1:0"\n` +
        `[auth]\nscram_iterations = 4096\n[log]\nlevel = "warn"\n${WITHOUT_HISTORY}${toml}`,
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

  /** `options`: further options of its Node. Gives the seconds until it listened. */
  async start(options: readonly string[] = []): Promise<number> {
    const started = performance.now()
    const child = new MeasuredNode(this.#program(this.#directory), { options })
    this.#child = child
    if (!(await child.hasPrinted(READY))) {
      rmSync(this.#directory, { recursive: true, force: true })
      throw new Error(`the server ended with exit code ${child.exitCode}:\n${child.out}${child.errors}`)
    }
    const seconds = (performance.now() - started) / 1000
    this.tcpPort = Number(/tcp:\/\/127\.0\.0\.1:(\d+)/.exec(child.out)?.[1])
    this.gmetricPort = Number(/udp:\/\/127\.0\.0\.1:(\d+)/.exec(child.out)?.[1])
    return seconds
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#child?.end(signal)
  }

  /** Ends it, so that it can still write what BENCH_NODE_OPTIONS asked for, and removes its data. */
  async remove(): Promise<void> {
    await this.end('SIGTERM')
    rmSync(this.#directory, { recursive: true, force: true })
  }

  cpu(): CpuSeconds {
    const { pid } = this
    const threads = readdirSync(`/proc/${pid}/task`).map(Number)
    const [storage] = threads.filter((thread) => thread !== pid).sort((a, b) => handedOver(pid, b) - handedOver(pid, a))
    return {
      all: cpuSecondsOf(pid),
      main: cpuSecondsOf(pid, pid),
      storage: storage === undefined ? 0 : cpuSecondsOf(pid, storage),
    }
  }

  get rssMiB(): number {
    return memoryMiB(this.pid)
  }

  /** What it caused to be written to block devices. */
  get writtenMiB(): number {
    return Math.round(writtenMiBOf(this.pid))
  }

  /** The most since it was started, or since `resetPeak`. */
  get peakRssMiB(): number {
    return memoryMiB(this.pid, 'VmHWM')
  }

  resetPeak(): void {
    forgetPeak(this.pid)
  }

  /** Needs `--expose-gc`. */
  async collectGarbage(): Promise<void> {
    await this.#child?.ask('collect')
  }

  resetLoopDelay(): void {
    this.#child?.resetLoopDelay()
  }

  /** Milliseconds, since `resetLoopDelay`. */
  async loopDelayP99Ms(): Promise<string> {
    return ((await this.#child?.loopDelayP99Ms()) ?? Number.NaN).toFixed(1)
  }
}
