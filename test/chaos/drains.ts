/**
 * Rig: SIGKILL of a server that delivers by a drain, and of the Prometheus to which it delivers. Every value that the server
 * has said yes to is at the destination in the end, with its time in milliseconds. What VictoriaMetrics loses of what it has
 * answered 2xx when it is killed itself is counted apart, and so is what vmagent loses in the place of the server.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { encodeMetricsRequest } from '../../protocol/otlp/encode.ts'
import { encodeWriteRequest, type OutgoingSeries } from '../../protocol/prometheus/write-request.ts'
import { finish } from '../../server/kernel/core/fair-work.ts'
import { done, newToken } from '../support/administration.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { Seat } from '../support/seat.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'
import type { Rig, RigOptions, Totals } from './rig.ts'

const SERIES = 20
const FIRST_LIFE_MS = 150
const MORE_LIFE_MS = 600
const LOOK_MS = 100
/** Two minutes, and then it is an error. */
const MOST_LOOKS = 1_200
const WRITE = '/api/v1/write'
const METRIC = 'feed'

/** Where each protocol is taken, by which name its values are there, and how a request says what it is. */
const protocols = {
  'remote-write': {
    path: WRITE,
    family: 'prometheus.*',
    shown: METRIC,
    headers: { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' },
  },
  otlp: {
    path: '/v1/metrics',
    family: 'otlp.*',
    shown: `otlp_${METRIC}`,
    headers: { 'content-type': 'application/x-protobuf' },
  },
} as const
type Protocol = keyof typeof protocols

/** Who is killed while values go to whom. */
interface Scene {
  readonly name: string
  readonly destination: 'prometheus' | 'victoria-metrics'
  readonly sender: 'cinnabar' | 'vmagent'
  readonly killed: 'sender' | 'destination'
  /** How values are handed to the sender. */
  readonly by: Protocol
  /** Whether what is lost is a fault of the rig, or counted for who lost it. */
  readonly isOurs: boolean
}

const scenes: readonly Scene[] = [
  { name: 'otlpIn', destination: 'prometheus', sender: 'cinnabar', killed: 'sender', by: 'otlp', isOurs: true },
  {
    name: 'cinnabarToPrometheus',
    destination: 'prometheus',
    sender: 'cinnabar',
    killed: 'sender',
    by: 'remote-write',
    isOurs: true,
  },
  {
    name: 'cinnabarToVictoria',
    destination: 'victoria-metrics',
    sender: 'cinnabar',
    killed: 'sender',
    by: 'remote-write',
    isOurs: true,
  },
  {
    name: 'prometheusKilled',
    destination: 'prometheus',
    sender: 'cinnabar',
    killed: 'destination',
    by: 'remote-write',
    isOurs: true,
  },
  {
    name: 'victoriaKilled',
    destination: 'victoria-metrics',
    sender: 'cinnabar',
    killed: 'destination',
    by: 'remote-write',
    isOurs: false,
  },
  {
    name: 'vmagentToVictoria',
    destination: 'victoria-metrics',
    sender: 'vmagent',
    killed: 'sender',
    by: 'remote-write',
    isOurs: false,
  },
]

export const drains: Rig = (options) => drainsIn(options, () => true)

/** The scenes that are wanted, one after the other. */
export async function drainsIn(options: RigOptions, isWanted: (name: string) => boolean): Promise<Totals> {
  const totals: Record<string, number> = { lost: 0, unexpected: 0, reused: 0 }
  for (const scene of scenes) {
    if (!isWanted(scene.name)) continue
    if (!isThere(scene.destination) || (scene.sender === 'vmagent' && !isThere('vmagent'))) continue
    const run = new Run(scene, options)
    try {
      const { promised, lost } = await run.all()
      totals[`${scene.name}Promised`] = promised
      totals[`${scene.name}Lost`] = lost
      if (scene.isOurs) totals['lost'] = (totals['lost'] as number) + lost
      options.say(`${scene.name}: ${promised} values promised, ${lost} lost in ${options.count} kills`)
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error)
      throw new Error(`drains, seed ${options.seed}, ${scene.name}: ${what}`, { cause: error })
    } finally {
      await run.remove()
    }
  }
  return totals as Totals
}

export function isThere(program: string): boolean {
  return spawnSync('which', [program]).status === 0
}

/** A program of others, which is started again and again on the same port with the same files. */
class Program {
  readonly #name: string
  readonly #args: readonly string[]
  readonly #directory: string
  readonly url: string
  #child: ChildProcess | undefined

  constructor(name: string, args: readonly string[], directory: string, port: number) {
    this.#name = name
    this.#args = args
    this.#directory = directory
    this.url = `http://127.0.0.1:${port}`
  }

  async start(): Promise<void> {
    this.#child = spawn(this.#name, this.#args, { cwd: this.#directory, stdio: 'ignore' })
    await until(`${this.#name} answers`, async () => {
      const isUp = await fetch(`${this.url}/-/ready`).then(
        ({ ok, status }) => ok || status === 400 || status === 404,
        () => false,
      )
      return isUp
    })
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
}

/** What values are handed to, and what is killed. */
interface Sender {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  start(): Promise<void>
  kill(): Promise<void>
  remove(): Promise<void>
}

class Run {
  readonly #scene: Scene
  readonly #options: RigOptions
  readonly #random: Random
  readonly #directory = mkdtempSync(join(tmpdir(), 'cinnabar-drains-'))
  /** The samples that were answered with 2xx, as `series time value`. */
  readonly #promised = new Set<string>()
  #destination: Program | undefined
  #sender: Sender | undefined
  #next = 0
  readonly #startMs = Date.now() - 60_000

  constructor(scene: Scene, options: RigOptions) {
    this.#scene = scene
    this.#options = options
    this.#random = new Random(options.seed)
  }

  async all(): Promise<{ promised: number; lost: number }> {
    const destination = await this.#openDestination()
    const sender = await this.#openSender(destination.url + WRITE)
    await destination.start()
    await sender.start()
    const feeding = { isOver: false }
    const fed = this.#feed(sender, feeding)
    const victim = this.#scene.killed === 'sender' ? sender : destination
    for (let kills = 0; kills < this.#options.count; kills++) {
      await setTimeout(FIRST_LIFE_MS + this.#random.below(MORE_LIFE_MS))
      await victim.kill()
      await victim.start()
    }
    await setTimeout(FIRST_LIFE_MS)
    feeding.isOver = true
    await fed
    return { promised: this.#promised.size, lost: await this.#lost(destination) }
  }

  async remove(): Promise<void> {
    await this.#sender?.kill().catch(() => {})
    await this.#sender?.remove()
    await this.#destination?.kill()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #openDestination(): Promise<Program> {
    const port = await freePort()
    const directory = join(this.#directory, 'destination')
    mkdirSync(directory)
    const prometheus = [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      '--web.enable-remote-write-receiver',
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    const victoria = ['-storageDataPath=data', `-httpListenAddr=127.0.0.1:${port}`, '-search.latencyOffset=0s']
    writeFileSync(join(directory, 'prometheus.yml'), 'storage: {tsdb: {out_of_order_time_window: 7d}}\n')
    const { destination } = this.#scene
    this.#destination = new Program(destination, destination === 'prometheus' ? prometheus : victoria, directory, port)
    return this.#destination
  }

  async #openSender(to: string): Promise<Sender> {
    this.#sender = this.#scene.sender === 'vmagent' ? await this.#vmagent(to) : await cinnabar(to, this.#scene.by)
    return this.#sender
  }

  async #vmagent(to: string): Promise<Sender> {
    const port = await freePort()
    const args = [`-remoteWrite.url=${to}`, '-remoteWrite.tmpDataPath=data', `-httpListenAddr=127.0.0.1:${port}`]
    const program = new Program('vmagent', args, this.#directory, port)
    return {
      url: program.url + WRITE,
      headers: {},
      start: () => program.start(),
      kill: () => program.kill(),
      remove: async () => {},
    }
  }

  /** Sends request after request; what is answered with 2xx is promised. Each sample has a time of its own. */
  async #feed(sender: Sender, feeding: { readonly isOver: boolean }): Promise<void> {
    while (!feeding.isOver) {
      const samples: string[] = []
      const series: OutgoingSeries[] = []
      const timeMs = this.#startMs + this.#next
      for (let number = 0; number < SERIES; number++) {
        const value = this.#next * SERIES + number
        series.push({ name: METRIC, labels: [['n', String(number)]], samples: [{ value, timeMs }] })
        samples.push(`${number} ${timeMs} ${value}`)
      }
      this.#next++
      try {
        const { by } = this.#scene
        const body = Uint8Array.from(finish(by === 'otlp' ? otlpRequest(series) : encodeWriteRequest(series)))
        const headers = { ...protocols[by].headers, ...sender.headers }
        const { ok } = await fetch(sender.url, { method: 'POST', headers, body })
        if (ok) for (const sample of samples) this.#promised.add(sample)
      } catch {
        await setTimeout(20)
      }
    }
  }

  /** Waits until everything has come, or as long as more comes. */
  async #lost(destination: Program): Promise<number> {
    const patience = this.#scene.isOurs ? MOST_LOOKS : 100
    let [missing, since] = [Number.POSITIVE_INFINITY, 0]
    while (missing > 0 && since++ < patience) {
      await setTimeout(LOOK_MS)
      const { destination: kind, by } = this.#scene
      const there = await samplesAt(destination, kind, protocols[by].shown)
      let left = 0
      for (const sample of this.#promised) if (!there.has(sample)) left++
      if (left < missing) since = 0
      missing = left
    }
    return missing
  }
}

/** The same samples as points of one gauge. */
function otlpRequest(series: readonly OutgoingSeries[]): Generator<undefined, Uint8Array> {
  const points = series.flatMap(({ labels, samples }) => {
    const attributes = labels.map(([key, value]) => ({ key, value }))
    return samples.map(({ value, timeMs }) => ({ attributes, start: 0, time: timeMs * 1_000, isEnd: false, value }))
  })
  return encodeMetricsRequest([{ name: METRIC, unit: '', description: '', data: { kind: 'gauge', points } }])
}

/** A server with a drain that names what is written to it. */
async function cinnabar(to: string, by: Protocol): Promise<Sender> {
  const { family, path } = protocols[by]
  const drain = `[[drain]]
name = "d"
role = "operator"
url = "prometheus+${to}"
metrics = ["${family}"]
batch_age = "50ms"
`
  const [tcp, http] = [await freePort(), await freePort()]
  const server = new ServerProcess(drain, { tcp, http })
  const token = await prepared(server, family).catch(async (error) => {
    await server.remove()
    throw error
  })
  return {
    url: `http://127.0.0.1:${http}${path}`,
    headers: { authorization: `Bearer ${token}` },
    start: () => server.start(),
    kill: async () => {
      await server.end('SIGKILL')
    },
    remove: () => server.remove(),
  }
}

/** Makes a user whose token may publish; the server has ended then. */
async function prepared(server: ServerProcess, family: string): Promise<string> {
  await server.start()
  const { peer, channel } = await server.login()
  const seat = new Seat(peer, channel)
  await done(seat, 'role.allow', { role: 'operator', command: 'PUBLISH', object: family })
  await done(seat, 'user.add', { user: 'app', role: 'operator', password: PASSWORD })
  const { token, hash } = newToken()
  await done(seat, 'token.add', { user: 'app', hash, scope: `PUBLISH ${family}` })
  peer.destroy()
  await server.end('SIGTERM')
  return token
}

interface Matrix {
  readonly data: {
    readonly result: readonly {
      readonly metric: { readonly n: string }
      readonly values: readonly [number, string][]
    }[]
  }
}

async function samplesAt({ url }: Program, kind: Scene['destination'], metric: string): Promise<Set<string>> {
  const samples = new Set<string>()
  if (kind === 'prometheus') {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(`${metric}[1h]`)}`)
    const { data } = (await answer.json()) as Matrix
    for (const { metric: labels, values } of data.result) {
      for (const [seconds, value] of values) samples.add(`${labels.n} ${Math.round(seconds * 1_000)} ${value}`)
    }
    return samples
  }
  const answer = await fetch(`${url}/api/v1/export?match[]=${metric}&reduce_mem_usage=1`)
  for (const line of (await answer.text()).split('\n')) {
    if (line === '') continue
    const {
      metric: labels,
      values,
      timestamps,
    } = JSON.parse(line) as {
      metric: { n: string }
      values: number[]
      timestamps: number[]
    }
    for (const [at, value] of values.entries()) samples.add(`${labels.n} ${timestamps[at]} ${value}`)
  }
  return samples
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await holds()); looks++) {
    if (looks === MOST_LOOKS) throw new Error(`waited in vain until ${what}`)
    await setTimeout(LOOK_MS)
  }
}
