/**
 * A real server: a child process that runs `serve` of this program, with a directory and ports that stay the same over
 * restarts. The caller's configuration does not apply: a variable for another server must not move its data.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExitCode, Failure } from '../failure.ts'
import { ReservedPort } from './reserved-port.ts'

/** The source of the numbers, an argument of the metric. */
export const DEMO_SOURCE = 'demo'
/** The name of a server that is the only one. */
const LONE = 'demo'
/** How much of the end of the log is shown if the server fails. */
const MAX_LOG = 2_000
/** What the greeting says of the socket for packets of gmetric, which listens on any port. */
const GMETRIC = / gmetric udp:\/\/127\.0\.0\.1:(\d+)/

interface DemoServerOptions {
  readonly name?: string
  readonly hasConsole?: boolean
  /** Whether it has a source of numbers. */
  readonly takesNumbers?: boolean
  /** The servers that it consumes. */
  readonly upstreams?: readonly DemoServer[]
  /** It is a node of a cluster. */
  readonly cluster?: DemoClusterTable
}

interface DemoClusterTable {
  readonly node: string
  /** All nodes, with the ports at which they reach each other. */
  readonly nodes: readonly { readonly name: string; readonly port: number }[]
  /** URLs of the nats-servers. */
  readonly nats: readonly string[]
  /** Of `admin`, the user that logs in at any node; given in the environment. */
  readonly adminPassword: string
}

export class DemoServer {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-demo-'))
  readonly config = join(this.directory, 'cinnabar.toml')
  /** What it calls itself, and what those above call it; of a node its own name. */
  readonly name: string
  readonly port: number
  /** The password of its user `local`. */
  readonly secretFile = join(this.directory, 'data', 'admin.secret')
  /** 0 if it takes no numbers. */
  readonly smonPort: number
  /** Of the console; 0 without one. */
  readonly httpPort: number
  /** Of gmetric, when the server is up; 0 without a console. */
  gmetricPort = 0
  /** That of `admin`, which the server makes at its first start and shows once; it is in no file and no argument. */
  adminPassword: string
  /** Rejects with Failure if the server ends by itself. */
  readonly failed: Promise<never>
  readonly #ports: DemoPorts
  #fail: (error: Error) => void = () => {}
  #child: ChildProcess | undefined
  #isRemoved = false

  static async create(options: DemoServerOptions = {}): Promise<DemoServer> {
    const { hasConsole = false, takesNumbers = true } = options
    const reserveIf = async (isNeeded: boolean) => (isNeeded ? ReservedPort.reserve() : undefined)
    return new DemoServer(options, {
      tcp: await ReservedPort.reserve(),
      smon: await reserveIf(takesNumbers),
      http: await reserveIf(hasConsole),
    })
  }

  private constructor({ name = LONE, upstreams = [], cluster }: DemoServerOptions, ports: DemoPorts) {
    this.name = cluster?.node ?? name
    this.adminPassword = cluster?.adminPassword ?? ''
    this.port = ports.tcp.number
    this.smonPort = ports.smon?.number ?? 0
    this.httpPort = ports.http?.number ?? 0
    this.#ports = ports
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => {})
    const tables = [
      configuration(name, join(this.directory, 'data'), ports),
      ...(ports.smon ? [SOURCE] : []),
      ...upstreams.map(upstreamTable),
      ...(ports.http ? [CONTROLS] : []),
      ...(cluster === undefined ? [] : [clusterSection(cluster)]),
    ]
    writeFileSync(this.config, tables.join(''))
  }

  /** 0 while the server is not running. */
  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get #title(): string {
    return this.name === LONE ? 'the server' : `the server ${this.name}`
  }

  /** Resolves when all ports are open. Rejects with Failure. */
  async start(): Promise<void> {
    if (this.#isRemoved) throw new Failure(ExitCode.FAILED, 'the demonstration is over')
    const args = [...process.execArgv, process.argv[1] ?? '', 'serve', '--config', this.config]
    const child = spawn(process.execPath, args, {
      env: environment(this.adminPassword),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-MAX_LOG)
    })
    child.once('error', (error) =>
      this.#fail(new Failure(ExitCode.FAILED, `cannot start ${this.#title}: ${error.message}`)),
    )
    child.once('close', (code, signal) => {
      if (this.#child !== child) return
      const how = signal ?? `exit code ${code}`
      this.#fail(new Failure(ExitCode.FAILED, `${this.#title} ended by itself (${how})\n${log}`))
    })
    // It prints its greeting when all ports are open; a node prints its name at once.
    const [greeting] = await Promise.race([once(child.stdout, 'data'), this.failed])
    this.adminPassword ||= /^admin password: +(\S+) {2}\(/m.exec(String(greeting))?.[1] ?? ''
    this.gmetricPort = Number(GMETRIC.exec(String(greeting))?.[1] ?? 0)
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
    for (const port of [this.#ports.tcp, this.#ports.smon, this.#ports.http]) port?.release()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** What the console can run without doing harm. */
const CONTROLS = `
[[exec]]
name = "exec.greet"
description = "Says who is greeted. It changes nothing."
argv = ["echo", "{greeting}, {name}"]

[[exec.parameter]]
name = "name"
description = "Who is greeted."
pattern = "[A-Za-z0-9 ]+"

[[exec.parameter]]
name = "greeting"
description = "How."
values = ["Good morning", "Good evening"]
default = "Good morning"

[[exec]]
name = "exec.disk"
description = "How full a file system of this machine is."
argv = ["df", "-h", "{directory}"]
timeout = "5s"

[[exec.parameter]]
name = "directory"
description = "A directory on it."
pattern = "/[a-z/]*"
default = "/"
`

/** Those that stay the same over restarts; it does not listen where there is none. */
interface DemoPorts {
  readonly tcp: ReservedPort
  readonly smon: ReservedPort | undefined
  readonly http: ReservedPort | undefined
}

function configuration(name: string, dataDir: string, { tcp, smon, http }: DemoPorts): string {
  const orOff = (port: ReservedPort | undefined): string => (port ? `127.0.0.1:${port.number}` : '')
  return `[producer]
name = "${name}"
data_dir = ${JSON.stringify(dataDir)}
[listen]
tcp = "${orOff(tcp)}"
http = "${orOff(http)}"
[auth]
scram_iterations = 4096
[gmetric]
listen = "${http ? '127.0.0.1:0' : ''}"
host_tmax = "5s"
[smon]
tcp = "${orOff(smon)}"
[channels]
orphan_after = "1m"
[log]
level = "warn"
`
}

const SOURCE = `
[[smon.source]]
name = "${DEMO_SOURCE}"
address = "127.0.0.1"
`

function upstreamTable({ name, port, secretFile }: DemoServer): string {
  return `
[[upstream]]
name = "${name}"
url = "tcp://127.0.0.1:${port}"
user = "local"
secret_file = ${JSON.stringify(secretFile)}
`
}

function clusterSection({ node, nodes, nats }: DemoClusterTable): string {
  return `
[cluster]
name = "demo"
node = "${node}"
nodes = ${JSON.stringify(nodes.map(({ name, port }) => `${name}=127.0.0.1:${port}`))}
nats = ${JSON.stringify(nats)}
status = ""
`
}

function environment(adminPassword: string): NodeJS.ProcessEnv {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('CINNABAR_')))
  return adminPassword === '' ? env : { ...env, CINNABAR_ADMIN_PASSWORD: adminPassword }
}

const NAME = 'demo.number'
export const METRIC = `smon.${NAME}`

/** The same token as before, with a value one greater. */
const NEXT = Buffer.from([0x00, 0x01])

/**
 * Feeds 1, 2, 3 … to the server as an smon stream (docs/protocol/smon.md), a new one for each run of the server, and no
 * number twice: the server may be killed only when everything that was fed is stored.
 */
export class NumberSource {
  readonly #port: () => number
  #socket: Socket | undefined
  /** The last number that was fed. */
  fed = 0

  /** `port`: where the server listens when the source connects. */
  constructor(port: () => number) {
    this.#port = port
  }

  /** Connects and feeds one number. */
  async open(): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port: this.#port() })
    this.#socket = socket
    await once(socket, 'connect')
    // A killed server resets the connection.
    socket.on('error', () => {})
    await this.#write(streamStart(this.fed + 1), 1)
  }

  /** Feeds the next `count` numbers; resolves when the server can take more. */
  async feed(count: number): Promise<void> {
    if (count > 0) await this.#write(streamContinuation(count), count)
  }

  /** What would be fed from now on is not, until it is opened again. */
  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  async #write(bytes: Uint8Array, count: number): Promise<void> {
    const socket = this.#socket
    if (socket === undefined) return
    this.fed += count
    if (!socket.write(bytes)) await once(socket, 'drain')
  }
}

/** Defines token 1 of type `u` with the value `first` (32 bits). */
export function streamStart(first: number): Uint8Array {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(first)
  return Buffer.concat([
    Buffer.from([0x00, 1 + NAME.length]),
    Buffer.from(`u${NAME}`),
    Buffer.from([0x01, 0xf3]),
    value,
  ])
}

/** Encodes the next `count` numbers. */
export function streamContinuation(count: number): Uint8Array {
  return Buffer.alloc(NEXT.length * count, NEXT)
}
