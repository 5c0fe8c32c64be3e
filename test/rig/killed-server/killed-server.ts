/**
 * The server as `npm run build` made it, in a process of its own, over a directory that outlives it. A failpoint is armed by
 * a preload; whether it fired is reported by a file, since a killed process tells nothing.
 */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../../support/child.ts'
import { READY, SERVER_PROGRAM } from '../../support/program.ts'
import { PASSWORD } from '../../support/server-process.ts'
import type { Listener } from '../world/link.ts'

const PRELOAD = new URL('./failpoints.cjs', import.meta.url).pathname
const CLOCK = new URL('./clock.cjs', import.meta.url).pathname

export interface Armed {
  readonly point: string
  /** At the how manieth time. */
  readonly times: number
  /** How long into a checkpoint, microseconds. */
  readonly delay: number
}

/** Where a server runs. */
export interface ServerMachine {
  /** Where this process reaches it. */
  readonly host: string
  /** Where what this process sends there comes from; default: `host`. */
  readonly network?: string
  /** The program and the arguments that run a command there. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]]
}

const HERE: ServerMachine = { host: '127.0.0.1', command: (program, args) => [program, args] }

export interface KilledServerOptions {
  readonly udpPort: number
  /** Where it listens for consumers; 0, which is the default: another port at each start. */
  readonly tcpPort?: number
  readonly logLevel?: 'warn' | 'error'
  /** Default: this one. */
  readonly machine?: ServerMachine
  /** The command `cinnabar` of another version. */
  readonly program?: string
  /** Where it listens for HTTP; 0, which is the default: nowhere. */
  readonly httpPort?: number
  /** Loaded into each of its threads by every start, instead of the failpoints of the storage, with what it finds in its environment. */
  readonly preload?: { readonly path: string; readonly env: Readonly<Record<string, string>> } | undefined
}

export class KilledServer {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-kills-'))
  readonly #config = join(this.directory, 'cinnabar.toml')
  readonly #fired = join(this.directory, 'fired')
  #child: Child | undefined
  /** What was done to it makes it log lines that contain this. */
  expected: string | undefined
  readonly #machine: ServerMachine
  readonly #preload: KilledServerOptions['preload']
  port = 0
  /** The command `cinnabar` that the next start runs. */
  program: string
  /** How far its wall clock is ahead of the real time from the next start on, in ms. */
  clockMs = 0

  constructor({
    udpPort,
    tcpPort = 0,
    logLevel = 'warn',
    machine = HERE,
    program = SERVER_PROGRAM,
    httpPort = 0,
    preload,
  }: KilledServerOptions) {
    this.port = tcpPort
    this.#preload = preload
    this.#machine = machine
    this.program = program
    const { host, network = `${host}/32` } = machine
    writeFileSync(
      this.#config,
      `[producer]\nname = "n1"\ndata_dir = ${JSON.stringify(join(this.directory, 'data'))}\n` +
        `[listen]\ntcp = "${host}:${tcpPort}"\nhttp = "${httpPort === 0 ? '' : `${host}:${httpPort}`}"\n[auth]\nscram_iterations = 4096\n` +
        `[gmetric]\nlisten = "${host}:${udpPort}"\nallow = ["${network}"]\n[log]\nlevel = "${logLevel}"\n`,
    )
  }

  /** Further tables of the configuration. */
  append(toml: string): void {
    appendFileSync(this.#config, toml)
  }

  /** Where consumers reach it. */
  get listener(): Listener {
    return { host: this.#machine.host, port: this.port }
  }

  /** 0 if it has never run. */
  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get database(): string {
    return join(this.directory, 'data', 'cinnabar.db')
  }

  get secret(): string {
    return readFileSync(join(this.directory, 'data', 'admin.secret'), 'utf8').trim()
  }

  get running(): boolean {
    return this.#child?.isRunning ?? false
  }

  /** Settles when it is gone. */
  get exited(): Promise<unknown> {
    return this.#child?.exited ?? Promise.resolve()
  }

  /** True once it listens, false if it was killed before. Anything else that ends it is an error. */
  async start(armed?: Armed): Promise<boolean> {
    const child = this.launch(armed)
    const listens = await child.hasPrinted(READY)
    const tcp = /tcp:\/\/127\.0\.0\.1:(\d+)/.exec(child.out)
    if (!listens || tcp === null) {
      await child.exited
      this.healthy()
      return false
    }
    this.port = Number(tcp[1])
    return true
  }

  /** Begins to start it. */
  launch(armed?: Armed): Child {
    rmSync(this.#fired, { force: true })
    const env: Record<string, string> = { CINNABAR_ADMIN_PASSWORD: PASSWORD, ...this.#preload?.env }
    if (armed !== undefined || this.#preload !== undefined) {
      env['NODE_OPTIONS'] = `--require ${this.#preload?.path ?? PRELOAD}`
    }
    if (armed !== undefined) {
      env['CHAOS_POINT'] = armed.point
      env['CHAOS_TIMES'] = String(armed.times)
      env['CHAOS_DELAY_US'] = String(armed.delay)
      env['CHAOS_FIRED'] = this.#fired
    }
    if (this.clockMs !== 0) {
      env['NODE_OPTIONS'] = `${env['NODE_OPTIONS'] ?? ''} --require ${CLOCK}`
      env['CHAOS_CLOCK_MS'] = String(this.clockMs)
    }
    const serve = [this.program, 'serve', '--config', this.#config]
    const [program, args] = this.#machine.command(process.execPath, serve)
    this.#child = new Child(program, args, { env })
    return this.#child
  }

  /** Throws if it ended by itself, or complained, but for what it has to say. */
  healthy(): void {
    const { exitCode, errors = '' } = this.#child ?? {}
    if (typeof exitCode === 'number') throw new Error(`the server ended with code ${exitCode}: ${errors}`)
    const { expected } = this
    const complaints = errors.split('\n').filter((line) => expected === undefined || !line.includes(expected))
    if (complaints.join('') !== '') throw new Error(`the server complained: ${complaints.join('\n')}`)
  }

  /** Sends it a signal that does not end it. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.signal(name)
  }

  /** Whether the armed point was reached. */
  get fired(): boolean {
    return existsSync(this.#fired)
  }

  async kill(): Promise<void> {
    await this.#child?.end('SIGKILL')
  }

  /** Ends it by SIGTERM: nothing is left to be recovered. */
  async stop(): Promise<void> {
    if ((await this.#child?.end('SIGTERM')) === 0) this.#child = undefined
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.directory, { recursive: true, force: true })
  }
}
