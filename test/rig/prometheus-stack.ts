/**
 * Prometheus and two programs that speak as it does, each on a port of loopback and on files of its own, on which it can be ended and
 * started again; and who may publish to our server as they do. Debian: `apt-get install prometheus victoria-metrics`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { done, newToken } from '../support/administration.ts'
import { Child } from '../support/child.ts'
import { freePort } from '../support/free-port.ts'
import type { Seat } from '../support/seat.ts'
import { PASSWORD } from '../support/server-process.ts'
import { until } from './patience.ts'

/** Where remote write is taken, and what each of its requests says of itself. */
export const WRITE = '/api/v1/write'
export const WRITE_HEADERS = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' } as const
export const OTLP_HEADERS = { 'content-type': 'application/x-protobuf' } as const

/** Older samples than this are taken too: those that were fed while it was away. */
const CONFIG = 'storage: {tsdb: {out_of_order_time_window: 7d}}\n'
const CONFIG_FILE = 'prometheus.yml'

export class StackProgram {
  readonly url: string
  /** It takes requests from everybody. */
  readonly headers: Readonly<Record<string, string>> = {}
  readonly #name: string
  readonly #args: readonly string[]
  readonly #directory: string
  #child: Child | undefined

  private constructor(name: string, port: number, args: readonly string[], config = CONFIG) {
    this.url = `http://127.0.0.1:${port}`
    this.#name = name
    this.#args = args
    this.#directory = mkdtempSync(join(tmpdir(), `cinnabar-${name}-`))
    writeFileSync(join(this.#directory, CONFIG_FILE), config)
  }

  /** `config`: further sections of its configuration. */
  static async prometheus(config = ''): Promise<StackProgram> {
    const port = await freePort()
    const args = [
      `--config.file=${CONFIG_FILE}`,
      '--storage.tsdb.path=data',
      '--storage.tsdb.retention.time=10y',
      '--web.enable-remote-write-receiver',
      '--web.enable-admin-api',
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    return new StackProgram('prometheus', port, args, CONFIG + config)
  }

  static async victoriaMetrics(): Promise<StackProgram> {
    const port = await freePort()
    const args = [
      '-storageDataPath=data',
      '-retentionPeriod=10y',
      `-httpListenAddr=127.0.0.1:${port}`,
      '-search.latencyOffset=0s',
    ]
    return new StackProgram('victoria-metrics', port, args)
  }

  /** Hands over what is written to it, and what `config` has it scrape, to another one. */
  static async vmagent({ url }: { readonly url: string }, config = ''): Promise<StackProgram> {
    const port = await freePort()
    const args = [
      `-remoteWrite.url=${url}${WRITE}`,
      '-remoteWrite.tmpDataPath=data',
      `-httpListenAddr=127.0.0.1:${port}`,
      ...(config === '' ? [] : [`-promscrape.config=${CONFIG_FILE}`]),
    ]
    return new StackProgram('vmagent', port, args, config)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Where its data is. */
  get data(): string {
    return join(this.#directory, 'data')
  }

  /** Starts it and waits until it serves. */
  async start(): Promise<void> {
    const child = new Child(this.#name, this.#args, { cwd: this.#directory })
    this.#child = child
    const isReady = async (): Promise<boolean> => {
      if (!child.isRunning) throw new Error(`${this.#name} ended with exit code ${child.exitCode}:\n${child.errors}`)
      // Only Prometheus knows this path.
      return fetch(`${this.url}/-/ready`).then(
        ({ status }) => status !== 503,
        () => false,
      )
    }
    await until(`${this.#name} serves`, isReady)
  }

  async kill(): Promise<void> {
    await this.#child?.end('SIGKILL')
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** Makes a user who may publish these metrics, and what `more` grants. Gives its token, which an admin sees once. */
export async function tokenOfPublisher(admin: Seat, metrics: string, more = ''): Promise<string> {
  await done(admin, 'role.allow', { role: 'operator', command: 'PUBLISH', object: metrics })
  await done(admin, 'user.add', { user: 'app', role: 'operator', password: PASSWORD })
  const { token, hash } = newToken()
  await done(admin, 'token.add', { user: 'app', hash, scope: `PUBLISH ${metrics}${more}` })
  return token
}
