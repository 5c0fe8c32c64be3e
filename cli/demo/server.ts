/**
 * A real server: a child process that runs `serve` of this program, with a directory and ports that stay the same over
 * restarts. The caller's configuration does not apply: a variable for another server must not move its data.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExitCode, Failure } from '../failure.ts'

/** The source of the numbers, an argument of the metric. */
export const DEMO_SOURCE = 'demo'
/** How much of the end of the log is shown if the server fails. */
const MAX_LOG = 2_000
/** Below the system's ephemeral ports, so that no other connection takes a port while the server is down. */
const FIRST_PORT = 15_000
const PORTS = 15_000

export class DemoServer {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-demo-'))
  readonly config = join(this.directory, 'cinnabar.toml')
  readonly smonPort: number
  /** Rejects with Failure if the server ends by itself. */
  readonly failed: Promise<never>
  #fail: (error: Error) => void = () => {}
  #child: ChildProcess | undefined
  #isRemoved = false

  static async create(): Promise<DemoServer> {
    const port = await freePort()
    return new DemoServer(port, await freePort(port))
  }

  private constructor(port: number, smonPort: number) {
    this.smonPort = smonPort
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => {})
    writeFileSync(this.config, configuration(join(this.directory, 'data'), port, smonPort))
  }

  /** 0 while the server is not running. */
  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Resolves when all ports are open. Rejects with Failure. */
  async start(): Promise<void> {
    if (this.#isRemoved) throw new Failure(ExitCode.FAILED, 'the demonstration is over')
    const args = [...process.execArgv, process.argv[1] ?? '', 'serve', '--config', this.config]
    const child = spawn(process.execPath, args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-MAX_LOG)
    })
    child.once('error', (error) =>
      this.#fail(new Failure(ExitCode.FAILED, `cannot start the server: ${error.message}`)),
    )
    child.once('close', (code, signal) => {
      if (this.#child !== child) return
      this.#fail(new Failure(ExitCode.FAILED, `the server ended by itself (${signal ?? `exit code ${code}`})\n${log}`))
    })
    // It prints its greeting when all ports are open.
    await Promise.race([once(child.stdout, 'data'), this.failed])
    child.stdout.resume()
  }

  /** Sends SIGKILL and resolves when the process has ended. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  /** Kills the server and deletes everything it has written. */
  async remove(): Promise<void> {
    this.#isRemoved = true
    await this.kill()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

function configuration(dataDir: string, port: number, smonPort: number): string {
  return `[producer]
name = "demo"
data_dir = ${JSON.stringify(dataDir)}
[listen]
tcp = "127.0.0.1:${port}"
http = ""
[auth]
scram_iterations = 4096
[gmetric]
listen = ""
[smon]
tcp = "127.0.0.1:${smonPort}"
[[smon.source]]
name = "${DEMO_SOURCE}"
address = "127.0.0.1"
[log]
level = "warn"
`
}

function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('CINNABAR_')))
}

async function freePort(taken = 0): Promise<number> {
  const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
  const server = createServer().listen(port, '127.0.0.1')
  const isFree = await Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ])
  server.close()
  return isFree && port !== taken ? port : freePort(taken)
}
