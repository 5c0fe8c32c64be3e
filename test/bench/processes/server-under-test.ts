/**
 * A server as a process of its own, and what it costs: CPU time, peak RSS and bytes written from /proc, so that servers in
 * any language are measured alike (Linux only). It is ended by its own process id and nothing else is.
 */
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { cpuSecondsOf, memoryMiB, writtenMiBOf } from '../../rig/process-costs.ts'
import { Child } from '../../support/child.ts'
import { MeasuredNode } from './measured-node.ts'

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
  /** Default: Node, whose event loop is measured. */
  readonly program?: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** It listens there once it is up. */
  readonly port: number
}

export class ServerUnderTest {
  readonly #child: Child | MeasuredNode

  private constructor({ program, args, env }: Launch) {
    this.#child = program === undefined ? new MeasuredNode(args, { env }) : new Child(program, args, { env })
  }

  /** Starts it and waits until its port takes connections. */
  static async start(launch: Launch): Promise<ServerUnderTest> {
    const server = new ServerUnderTest(launch)
    const child = server.#child
    const deadline = performance.now() + STARTS_WITHIN_MS
    while (!(await listens(launch.port))) {
      if (!child.isRunning || performance.now() > deadline) {
        await server.stop()
        throw new Error(
          `${launch.program ?? launch.args[0]} does not listen on port ${launch.port}:\n${child.out}${child.errors}`,
        )
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
    if (this.#child instanceof MeasuredNode) this.#child.resetLoopDelay()
  }

  /** The 99th percentile since then, milliseconds; undefined for a server that is not Node. */
  async loopDelayP99Ms(): Promise<number | undefined> {
    return this.#child instanceof MeasuredNode ? this.#child.loopDelayP99Ms() : undefined
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
