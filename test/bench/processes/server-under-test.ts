/**
 * A server as a process of its own, and what it costs: CPU time, peak RSS and bytes written from /proc, so that servers in
 * any language are measured alike (Linux only). It is ended by its own process id and nothing else is.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100
const STARTS_WITHIN_MS = 60_000
const STOPS_WITHIN_MS = 10_000
const LAST_WORDS = 4_000

export interface Cost {
  /** User and system, all threads. */
  readonly cpuSeconds: number
  /** VmHWM: the most since the process began. */
  readonly peakRssMiB: number
  /** What it caused to be written to block devices. */
  readonly writtenMiB: number
}

export interface Launch {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** It listens there once it is up. */
  readonly port: number
  /** A Node server with `loop-delay.mjs` preloaded. */
  readonly loopDelay?: boolean
}

export class ServerUnderTest {
  readonly #child: ChildProcess
  readonly #launch: Launch
  #output = ''

  private constructor(launch: Launch) {
    this.#launch = launch
    const { program, args, env, loopDelay } = launch
    this.#child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe', ...(loopDelay ? (['ipc'] as const) : [])],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-LAST_WORDS)
      })
    }
  }

  /** Starts it and waits until its port takes connections. */
  static async start(launch: Launch): Promise<ServerUnderTest> {
    const server = new ServerUnderTest(launch)
    const deadline = performance.now() + STARTS_WITHIN_MS
    while (!(await listens(launch.port))) {
      if (server.#isGone || performance.now() > deadline) {
        await server.stop()
        throw new Error(`${launch.program} does not listen on port ${launch.port}:\n${server.#output}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return server
  }

  cost(): Cost {
    const proc = `/proc/${this.#child.pid}`
    // Behind the program's name, which may contain anything, come the state and then the numbers.
    const stat = readFileSync(`${proc}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[11]) + Number(fields[12])
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`${proc}/status`, 'utf8'))
    const written = /^write_bytes: (\d+)$/m.exec(readFileSync(`${proc}/io`, 'utf8'))
    return {
      cpuSeconds: ticks / TICKS_PER_SECOND,
      peakRssMiB: Number(peak?.[1]) / 1024,
      writtenMiB: Number(written?.[1]) / 2 ** 20,
    }
  }

  /** From here on the delay of its event loop counts. */
  resetLoopDelay(): void {
    if (this.#launch.loopDelay) this.#child.send('reset')
  }

  /** The 99th percentile since then, milliseconds; undefined for a server that is not Node. */
  async loopDelayP99Ms(): Promise<number | undefined> {
    if (!this.#launch.loopDelay) return undefined
    this.#child.send('read')
    const [p99] = await once(this.#child, 'message')
    return Number(p99)
  }

  /** By SIGTERM, since a profile is written at a regular end; by SIGKILL if that takes too long. */
  async stop(): Promise<void> {
    if (this.#isGone) return
    const exit = once(this.#child, 'exit')
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STOPS_WITHIN_MS)
    this.#child.kill('SIGTERM')
    await exit
    clearTimeout(late)
  }

  get #isGone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
