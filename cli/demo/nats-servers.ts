/** Three nats-servers of the demonstration's own, on loopback, with the log of its cluster in a directory that goes away. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ExitCode, Failure } from '../failure.ts'
import { ReservedPort } from './reserved-port.ts'

const SERVERS = 3
const PROGRAM = 'nats-server'
/** Debian installs it there, which is not in the path of every user. */
const PLACES = [process.env['PATH'] ?? '', '/usr/sbin', '/usr/local/bin'].join(delimiter)
const PATIENCE_MS = 30_000
const POLL_MS = 20

export class DemoNatsServers {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-demo-'))
  /** Each for its clients, and for the others. */
  readonly #ports: readonly ReservedPort[]
  readonly #routes: readonly ReservedPort[]
  readonly #children: ChildProcess[] = []
  /** Rejects with Failure if any of them cannot be started, or ends by itself. */
  readonly failed: Promise<never>
  #fail: (error: Error) => void = () => {}
  #isRemoved = false

  static async create(): Promise<DemoNatsServers> {
    const reserve = () => Promise.all(Array.from({ length: SERVERS }, () => ReservedPort.reserve()))
    return new DemoNatsServers(await reserve(), await reserve())
  }

  private constructor(ports: readonly ReservedPort[], routes: readonly ReservedPort[]) {
    this.#ports = ports
    this.#routes = routes
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => {})
  }

  get urls(): readonly string[] {
    return this.#ports.map(({ number }) => `nats://127.0.0.1:${number}`)
  }

  get pids(): readonly number[] {
    return this.#children.map(({ pid = 0 }) => pid)
  }

  /** Resolves when all of them listen. Rejects with Failure. */
  async start(): Promise<void> {
    const routes = this.#routes.map(({ number }) => `"nats-route://127.0.0.1:${number}"`).join(', ')
    for (const [index, { number }] of this.#ports.entries()) {
      const path = join(this.directory, `nats${index + 1}`)
      writeFileSync(
        `${path}.conf`,
        `server_name: nats${index + 1}
listen: "127.0.0.1:${number}"
log_file: "${path}.log"
jetstream { store_dir: "${path}", max_memory_store: 64MB, max_file_store: 8GB }
cluster { name: demo, listen: "127.0.0.1:${this.#routes[index]?.number}", routes: [${routes}] }
`,
      )
      this.#spawn(`${path}.conf`)
    }
    await Promise.race([Promise.all(this.#ports.map(({ number }) => untilOpen(number))), this.failed])
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
    for (const port of [...this.#ports, ...this.#routes]) port.release()
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
