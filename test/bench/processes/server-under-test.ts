/**
 * A server as a process of its own, and what it costs: CPU time, peak RSS and bytes written from /proc, so that servers in
 * any language are measured alike (Linux only). It is ended by its own process id and nothing else is.
 */
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { cpuSecondsOf, memoryMiB, writtenMiBOf } from '../../rig/process-costs.ts'
import { Child } from '../../support/child.ts'

const STARTS_WITHIN_MS = 60_000
const STOPS_WITHIN_MS = 10_000

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
  readonly #child: Child
  readonly #launch: Launch

  private constructor(launch: Launch) {
    this.#launch = launch
    const { program, args, env, loopDelay = false } = launch
    this.#child = new Child(program, args, { env, hasChannel: loopDelay })
  }

  /** Starts it and waits until its port takes connections. */
  static async start(launch: Launch): Promise<ServerUnderTest> {
    const server = new ServerUnderTest(launch)
    const child = server.#child
    const deadline = performance.now() + STARTS_WITHIN_MS
    while (!(await listens(launch.port))) {
      if (!child.isRunning || performance.now() > deadline) {
        await server.stop()
        throw new Error(`${launch.program} does not listen on port ${launch.port}:\n${child.out}${child.errors}`)
      }
      await setTimeout(20)
    }
    return server
  }

  cost(): Cost {
    const { pid } = this.#child
    return { cpuSeconds: cpuSecondsOf(pid), peakRssMiB: memoryMiB(pid, 'VmHWM'), writtenMiB: writtenMiBOf(pid) }
  }

  /** From here on the delay of its event loop counts. */
  resetLoopDelay(): void {
    if (this.#launch.loopDelay) this.#child.process.send('reset')
  }

  /** The 99th percentile since then, milliseconds; undefined for a server that is not Node. */
  async loopDelayP99Ms(): Promise<number | undefined> {
    return this.#launch.loopDelay ? Number(await this.#child.ask('read')) : undefined
  }

  /** By SIGTERM, since a profile is written at a regular end; by SIGKILL if that takes too long. */
  async stop(): Promise<void> {
    this.#child.signal('SIGTERM')
    const isLate = setTimeout(STOPS_WITHIN_MS, true, { ref: false })
    if (await Promise.race([this.#child.exited, isLate])) await this.#child.end('SIGKILL')
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
