/** Debian's nats-server, one process or a cluster of three, on loopback and with a store in a directory that goes away. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

const FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/bin', ...(process.env['PATH'] ?? '').split(':')]
/** `NATS_SERVER` is the path of another version than the one that is installed. */
const PROGRAM =
  process.env['NATS_SERVER'] ?? FOLDERS.map((folder) => join(folder, 'nats-server')).find((path) => existsSync(path))

/** Why there can be no nats-server here, and what to do; undefined if there can. */
export const natsMissing =
  PROGRAM === undefined
    ? 'nats-server is not installed: apt-get install --no-install-recommends nats-server'
    : undefined

/**
 * It ends what would never come, before the limit of the hook or the test that waits, which could not say why. It is no measure of
 * speed: one server is ready in a tenth of a second, three in half a second.
 */
const PATIENCE_MS = 45_000
const PAGE_BYTES = 4096
const TICKS_PER_SECOND = 100

/** Where a nats-server runs. */
export interface NatsMachine {
  /** Where this process reaches it. */
  readonly host: string
  /** Where the others of the cluster reach it. */
  readonly address: string
  /** The program and the arguments that run a command there. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]]
}

export interface NatsServersOptions {
  /** Default 1MB. */
  readonly maxPayload?: string
  /** A machine for each; this one if left out. */
  readonly machines?: readonly NatsMachine[]
  /** Paths of PEM files: clients need TLS then. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** More lines of the configuration of each server. */
  readonly config?: string
}

const HERE: NatsMachine = { host: '127.0.0.1', address: '127.0.0.1', command: (program, args) => [program, args] }

interface NatsServer {
  readonly machine: NatsMachine
  readonly configFile: string
  readonly store: string
  readonly port: number
  readonly monitorPort: number
  process: ChildProcess | undefined
}

export class NatsServers {
  readonly #directory = mkdtempSync(join(tmpdir(), 'cinnabar-nats-'))
  #scheme = 'nats'
  readonly #servers: NatsServer[] = []

  /** Resolves when streams can be made. */
  static async start(count: 1 | 3, options: NatsServersOptions = {}): Promise<NatsServers> {
    const servers = new NatsServers()
    try {
      await servers.#configure(count, options)
      for (const server of servers.#servers) servers.#spawn(server)
      await servers.ready()
      return servers
    } catch (error) {
      await servers.stop()
      throw error
    }
  }

  /** For this process. */
  get urls(): string[] {
    return this.#servers.map(({ machine, port }) => `${this.#scheme}://${machine.host}:${port}`)
  }

  /** For the machines of the servers. */
  get innerUrls(): string[] {
    return this.#servers.map(({ machine, port }) => `${this.#scheme}://${machine.address}:${port}`)
  }

  /** Resolves when all of them serve, and have chosen who leads. */
  async ready(): Promise<void> {
    const isReady = async (server: NatsServer): Promise<boolean> => {
      const isHealthy = await this.#answers(server, '/healthz')
      const { meta_cluster: meta } = (await this.#monitor(server, '/jsz')) as { meta_cluster?: MetaCluster }
      return isHealthy && (this.#servers.length === 1 || (meta?.leader !== undefined && meta.leader !== ''))
    }
    await Promise.all(this.#servers.map((server) => this.#until('is not ready', server, () => isReady(server))))
  }

  /** Ends a server by SIGKILL. */
  async kill(index: number): Promise<void> {
    const child = this.#of(index).process
    if (child === undefined || !isAlive(child)) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Starts a server that was killed, with what it has stored; resolves when it listens. */
  async restart(index: number): Promise<void> {
    const server = this.#of(index)
    this.#spawn(server)
    await this.#until('does not serve again', server, () => this.#answers(server, '/healthz?js-enabled-only=true'))
  }

  freeze(index: number): void {
    this.#of(index).process?.kill('SIGSTOP')
  }

  thaw(index: number): void {
    this.#of(index).process?.kill('SIGCONT')
  }

  /** The index of the server that leads a stream, as those that answer know it. */
  streamLeader(stream: string): Promise<number> {
    if (this.#servers.length === 1) return Promise.resolve(0)
    return until(`no nats-server leads ${stream}`, async () => {
      for (const [index, server] of this.#servers.entries()) {
        const replica = await this.#replica(server, stream)
        if (replica?.cluster?.leader === nameOf(index)) return index
      }
      return undefined
    })
  }

  /**
   * Resolves when every server has what any of them has of a stream now. Their `/healthz` is wrong about this at times. Rejects if
   * that takes too long.
   */
  async inStep(stream: string, patienceMs = PATIENCE_MS): Promise<void> {
    const ends = async (): Promise<number[]> => {
      const replicas = await Promise.all(this.#servers.map((server) => this.#replica(server, stream)))
      return replicas.map((replica) => replica?.state.last_seq ?? 0)
    }
    const goal = Math.max(...(await ends()))
    const late = async () => `not all nats-servers have ${goal} messages of ${stream}: ${(await ends()).join(', ')}`
    await until(late, async () => (await ends()).every((last) => last >= goal), patienceMs)
  }

  /** What each server says of its streams: who leads them, and where they end. */
  async look(): Promise<string> {
    const seen = this.#servers.map(async (server, index) => {
      const details = await this.#details(server)
      const said = details.map(
        ({ name, state, cluster }) => `${name} ends at ${state.last_seq}, led by ${cluster?.leader}`,
      )
      return `${nameOf(index)}: ${said.join(', ') || 'nothing'}`
    })
    return (await Promise.all(seen)).join('; ')
  }

  /** Where a server keeps its streams. */
  storeDirectory(index: number): string {
    return this.#of(index).store
  }

  /** Of all that are alive: processor time in seconds, and resident memory in bytes. */
  usage(): { readonly cpuSeconds: number; readonly residentBytes: number } {
    let [cpuSeconds, residentBytes] = [0, 0]
    for (const { process: child } of this.#servers) {
      if (child === undefined || !isAlive(child)) continue
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
      // After the name, which may contain anything.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      cpuSeconds += (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
      residentBytes += Number(fields[21]) * PAGE_BYTES
    }
    return { cpuSeconds, residentBytes }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((_, index) => this.kill(index)))
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #configure(count: number, options: NatsServersOptions): Promise<void> {
    const { maxPayload = '1MB', config = '', machines = [], tls } = options
    if (tls !== undefined) this.#scheme = 'tls'
    const routes: string[] = []
    for (let index = 0; index < count; index++) {
      const store = join(this.#directory, nameOf(index))
      const [port, monitorPort, routePort] = [await freePort(), await freePort(), await freePort()]
      const machine = machines[index] ?? HERE
      routes.push(`${machine.address}:${routePort}`)
      this.#servers.push({ machine, configFile: `${store}.conf`, store, port, monitorPort, process: undefined })
    }
    for (const [index, { machine, configFile, store, port, monitorPort }] of this.#servers.entries()) {
      const host = machine.host === machine.address ? machine.host : '0.0.0.0'
      const cluster = `cluster { name: test, listen: "${routes[index]}", routes: [${routes.map((to) => `"nats-route://${to}"`).join(', ')}] }`
      writeFileSync(
        configFile,
        `server_name: ${nameOf(index)}
         listen: "${host}:${port}"
         http: "${host}:${monitorPort}"
         log_file: "${store}.log"
         max_payload: ${maxPayload}
         jetstream { store_dir: "${store}", max_memory_store: 256MB, max_file_store: 20GB }
         ${count > 1 ? cluster : ''}
         ${tls === undefined ? '' : `tls { cert_file: "${tls.cert}", key_file: "${tls.key}", timeout: 5 }`}
         ${config}
        `,
      )
    }
  }

  #spawn(server: NatsServer): void {
    if (PROGRAM === undefined) throw new Error(natsMissing)
    const [program, args] = server.machine.command(PROGRAM, ['-c', server.configFile])
    server.process = spawn(program, args, { stdio: 'ignore' })
    // It may end before anybody waits for that.
    server.process.once('error', () => {})
  }

  #until(late: string, server: NatsServer, ask: () => Promise<boolean>): Promise<boolean> {
    return until(() => `a nats-server ${late}: ${endOfLog(server)}`, ask)
  }

  #of(index: number): NatsServer {
    const server = this.#servers[index]
    if (server === undefined) throw new Error(`there is no nats-server ${index}`)
    return server
  }

  async #answers(server: NatsServer, path: string): Promise<boolean> {
    const { process: child } = server
    if (child === undefined || !isAlive(child)) throw new Error(`nats-server has ended: ${endOfLog(server)}`)
    return fetch(`http://${server.machine.host}:${server.monitorPort}${path}`, {
      signal: AbortSignal.timeout(2_000),
    }).then(
      ({ ok }) => ok,
      () => false,
    )
  }

  /** What a server itself has of a stream. */
  async #replica(server: NatsServer, stream: string): Promise<StreamDetail | undefined> {
    return (await this.#details(server)).find(({ name }) => name === stream)
  }

  /** Of all streams; none from a server that does not answer. */
  async #details(server: NatsServer): Promise<readonly StreamDetail[]> {
    const { account_details: accounts = [] } = (await this.#monitor(server, '/jsz?streams=true')) as Jsz
    return accounts.flatMap(({ stream_detail: detail = [] }) => detail)
  }

  /** {} from one that does not answer. */
  async #monitor({ machine, monitorPort }: NatsServer, path: string): Promise<unknown> {
    const asked = fetch(`http://${machine.host}:${monitorPort}${path}`, { signal: AbortSignal.timeout(2_000) })
    return asked.then((response) => response.json()).catch(() => ({}))
  }
}

interface MetaCluster {
  readonly leader?: string
}

interface StreamDetail {
  readonly name: string
  readonly state: { readonly last_seq: number }
  readonly cluster?: { readonly leader?: string }
}

interface Jsz {
  readonly account_details?: readonly { readonly stream_detail?: readonly StreamDetail[] }[]
}

const nameOf = (index: number): string => `n${index + 1}`
const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

/** Waits for a result that is neither undefined nor false. `late`: what to say if it takes too long. */
async function until<T>(
  late: string | (() => string | Promise<string>),
  ask: () => Promise<T | undefined | false>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const end = performance.now() + patienceMs
  for (;;) {
    const result = await ask()
    if (result !== undefined && result !== false) return result
    if (performance.now() > end) throw new Error(typeof late === 'string' ? late : await late())
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function endOfLog({ store }: NatsServer): string {
  return existsSync(`${store}.log`) ? readFileSync(`${store}.log`, 'utf8').slice(-2_000) : 'it has no log'
}
