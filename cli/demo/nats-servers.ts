/** Three nats-servers of the demonstration's own, on loopback, with the log of its cluster in a directory that goes away. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ExitCode, Failure } from '../failure.ts'
import { freePort } from './server.ts'

const SERVERS = 3
const PROGRAM = 'nats-server'
/** Debian installs it there, which is not in the path of every user. */
const PLACES = [process.env['PATH'] ?? '', '/usr/sbin', '/usr/local/bin'].join(delimiter)
const PATIENCE_MS = 30_000
const POLL_MS = 20

export class DemoNatsServers {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-demo-'))
  readonly #ports: readonly number[]
  readonly #routes: readonly number[]
  readonly #children: ChildProcess[] = []
  /** Rejects with Failure if any of them cannot be started, or ends by itself. */
  readonly failed: Promise<never>
  #fail: (error: Error) => void = () => {}
  #isRemoved = false

  static async create(taken: number[]): Promise<DemoNatsServers> {
    const ports: number[] = []
    for (let index = 0; index < 2 * SERVERS; index++) {
      const port = await freePort(taken)
      taken.push(port)
      ports.push(port)
    }
    return new DemoNatsServers(ports.slice(0, SERVERS), ports.slice(SERVERS))
  }

  private constructor(ports: readonly number[], routes: readonly number[]) {
    this.#ports = ports
    this.#routes = routes
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => {})
  }

  get urls(): readonly string[] {
    return this.#ports.map((port) => `nats://127.0.0.1:${port}`)
  }

  get pids(): readonly number[] {
    return this.#children.map(({ pid = 0 }) => pid)
  }

  /** Resolves when all of them listen. Rejects with Failure. */
  async start(): Promise<void> {
    const routes = this.#routes.map((port) => `"nats-route://127.0.0.1:${port}"`).join(', ')
    for (const [index, port] of this.#ports.entries()) {
      const path = join(this.directory, `nats${index + 1}`)
      writeFileSync(
        `${path}.conf`,
        `server_name: nats${index + 1}
listen: "127.0.0.1:${port}"
log_file: "${path}.log"
jetstream { store_dir: "${path}", max_memory_store: 64MB, max_file_store: 8GB }
cluster { name: demo, listen: "127.0.0.1:${this.#routes[index]}", routes: [${routes}] }
`,
      )
      this.#spawn(`${path}.conf`)
    }
    await Promise.race([Promise.all(this.#ports.map(untilOpen)), this.failed])
  }

  #spawn(config: string): void {
    const child = spawn(PROGRAM, ['-c', config], { env: { ...process.env, PATH: PLACES }, stdio: 'ignore' })
    this.#children.push(child)
    child.once('error', ({ message }) => {
      const advice = `install it, as with: apt-get install --no-install-recommends ${PROGRAM}`
      this.#fail(new Failure(ExitCode.FAILED, `cannot start ${PROGRAM}: ${message}\n${advice}`))
    })
    child.once('exit', (code, signal) => {
      if (this.#isRemoved) return
      this.#fail(new Failure(ExitCode.FAILED, `${PROGRAM} ended by itself (${signal ?? `exit code ${code}`})`))
    })
  }

  /** Kills them and deletes everything they have written. */
  async remove(): Promise<void> {
    this.#isRemoved = true
    for (const child of this.#children) {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}

async function untilOpen(port: number): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (!(await isOpen(port))) {
    if (performance.now() > end) throw new Failure(ExitCode.FAILED, `${PROGRAM} does not listen on port ${port}`)
    await sleep(POLL_MS)
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    for (const [event, isThere] of [
      ['connect', true],
      ['error', false],
    ] as const) {
      socket.once(event, () => {
        socket.destroy()
        resolve(isThere)
      })
    }
  })
}
