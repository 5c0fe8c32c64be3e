/** A Cinnabar that records what is written to it, and Prometheus and VictoriaMetrics, which store the same. */
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { History } from '../../../storage/history/history.ts'
import { until } from '../../rig/patience.ts'
import { StackProgram, tokenOfPublisher, WRITE, WRITE_HEADERS } from '../../rig/prometheus-stack.ts'
import { decoded } from '../../support/records.ts'
import { ServerProcess } from '../../support/server-process.ts'

const EVER_MS = 1e14
const SLICE_MS = 50
const LOOK_MS = 50
const TENANT = 'default'
const CHANNELS = '[channels]\nmax_bytes = 4294967296\n[quota]\nqueued_bytes = 0\n'
const RECORDED = 'metrics = ["prometheus.*"]\nresolution = "0"\nkeep = "3650d"\n'

/** Who takes what is written by remote write. */
export interface WriteTaker {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export interface HistoryTaker extends WriteTaker {
  readonly pid: number
  /** Waits until nothing of what was written waits any more. */
  taken(): Promise<void>
  /** Waits until it says that it has so many samples. Throws if values were lost. */
  stored(samples: number): Promise<void>
  /** Everything is merged as much as it ever is. Gives the bytes of all its files, and the CPU seconds that it took elsewhere. */
  merged(): Promise<{ readonly bytes: number; readonly cpu: number }>
  remove(): Promise<void>
}

/** Sends the requests of each lane in order to each of the takers, one at a time, all lanes at once. */
export async function write(takers: readonly WriteTaker[], lanes: readonly Iterator<Uint8Array>[]): Promise<void> {
  const post = async (taker: WriteTaker, body: Uint8Array<ArrayBuffer>): Promise<boolean> => {
    const headers = { ...WRITE_HEADERS, ...taker.headers }
    const answer = await fetch(taker.url + WRITE, { method: 'POST', headers, body })
    const text = await answer.text()
    if (!answer.ok && answer.status !== 429 && answer.status !== 503)
      throw new Error(`${taker.name}: ${answer.status} ${text}`)
    return answer.ok
  }
  const send = async (lane: Iterator<Uint8Array>): Promise<void> => {
    for (let next = lane.next(); next.done !== true; next = lane.next()) {
      const body = Uint8Array.from(next.value)
      const sent = takers.map(async (taker) => {
        while (!(await post(taker, body))) await setTimeout(LOOK_MS)
      })
      await Promise.all(sent)
    }
  }
  await Promise.all(lanes.map(send))
}

export class RecordingServer implements HistoryTaker {
  readonly name: string
  readonly #server: ServerProcess
  readonly #hasHistory: boolean
  #token = ''

  /** `history`: the keys of its section. */
  constructor(name = 'cinnabar', history = RECORDED) {
    this.name = name
    this.#hasHistory = history === RECORDED
    this.#server = new ServerProcess(`[log]\nlevel = "error"\n${CHANNELS}[history]\n${history}`)
  }

  static withoutHistory(): RecordingServer {
    return new RecordingServer('cinnabar, keep = "0"', 'keep = "0"\n')
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.httpPort}`
  }

  get pid(): number {
    return this.#server.pid
  }

  get headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#token}` }
  }

  /** Gives the seconds until it served. */
  async start(): Promise<number> {
    const started = performance.now()
    await this.#server.start()
    const seconds = (performance.now() - started) / 1_000
    if (this.#token === '') {
      const seat = await this.#server.seat()
      this.#token = await tokenOfPublisher(seat, 'prometheus.*', ';COLLECT *')
      seat.peer.destroy()
    }
    return seconds
  }

  end(): Promise<unknown> {
    return this.#server.end('SIGTERM')
  }

  /** Nothing can be stored from the next start on: what comes waits in the channel. To be called before any history is there. */
  block(): void {
    writeFileSync(this.newHistory(), '')
  }

  /** Where its history will be, which does not exist yet. */
  newHistory(): string {
    mkdirSync(join(this.#server.directory, 'data'), { recursive: true, mode: 0o700 })
    return this.#history
  }

  unblock(): void {
    rmSync(this.#history)
  }

  get #history(): string {
    return join(this.#server.directory, 'data', 'history')
  }

  async taken(): Promise<void> {
    if (this.#hasHistory) await this.#until('nothing waits', ({ waiting }) => Number(waiting) === 0)
  }

  async stored(samples: number): Promise<void> {
    if (!this.#hasHistory) return
    await this.#until('all of it is stored', ({ stored, lost }) => {
      if (Number(lost) > 0) throw new Error(`${lost} values were lost before they were stored`)
      return Number(stored) >= samples
    })
  }

  async #until(what: string, holds: (figures: Readonly<Record<string, string>>) => boolean): Promise<void> {
    const seat = await this.#server.seat()
    try {
      const look = async (): Promise<boolean> => {
        const entries = decoded(await seat.query('producer.history')) as Readonly<Record<string, string>>[]
        const own = entries.find(({ tenant }) => tenant === TENANT)
        return own !== undefined && holds(own)
      }
      await until(what, look, { everyMs: LOOK_MS, looks: Number.POSITIVE_INFINITY })
    } finally {
      seat.peer.destroy()
    }
  }

  async merged(): Promise<{ bytes: number; cpu: number }> {
    await this.end()
    const limits = { keepMs: EVER_MS, keepRollupsMs: EVER_MS, maxBytes: 2 ** 40, quotas: new Map<string, never>() }
    const before = process.cpuUsage()
    const history = History.open({ directory: this.#history, limits, clock: Date.now, headSamples: 1 })
    while (history.work(SLICE_MS));
    history.close()
    const { user, system } = process.cpuUsage(before)
    return { bytes: bytesIn(this.#history), cpu: (user + system) / 1e6 }
  }

  async remove(): Promise<void> {
    await this.end()
    await this.#server.remove()
  }
}

abstract class Peer implements HistoryTaker {
  abstract readonly name: string
  readonly headers = {}
  protected readonly program: StackProgram

  constructor(program: StackProgram) {
    this.program = program
  }

  get url(): string {
    return this.program.url
  }

  get pid(): number {
    return this.program.pid
  }

  /** It answers when what it was given is in its log, or in its memory. */
  async taken(): Promise<void> {}

  async stored(): Promise<void> {}

  abstract merged(): Promise<{ readonly bytes: number; readonly cpu: number }>

  remove(): Promise<void> {
    return this.program.remove()
  }
}

class PrometheusPeer extends Peer {
  readonly name = 'prometheus'

  /** A snapshot has its blocks, and another one of what is in its log. */
  async merged(): Promise<{ bytes: number; cpu: number }> {
    const answer = await fetch(`${this.url}/api/v1/admin/tsdb/snapshot`, { method: 'POST' })
    const { data } = (await answer.json()) as { readonly data: { readonly name: string } }
    return { bytes: bytesIn(join(this.program.data, 'snapshots', data.name)), cpu: 0 }
  }
}

class VictoriaMetricsPeer extends Peer {
  readonly name = 'victoria-metrics'

  async merged(): Promise<{ bytes: number; cpu: number }> {
    await fetch(`${this.url}/internal/force_flush`)
    await fetch(`${this.url}/internal/force_merge`)
    const isIdle = async (): Promise<boolean> =>
      /^vm_active_force_merges 0$/m.test(await (await fetch(`${this.url}/metrics`)).text())
    await until('victoria-metrics has merged', isIdle)
    return { bytes: bytesIn(this.program.data), cpu: 0 }
  }
}

/** A new one of each, that runs. */
export async function peers(): Promise<HistoryTaker[]> {
  const [prometheus, victoria] = [await StackProgram.prometheus(), await StackProgram.victoriaMetrics()]
  for (const program of [prometheus, victoria]) await program.start()
  return [new PrometheusPeer(prometheus), new VictoriaMetricsPeer(victoria)]
}

function bytesIn(directory: string): number {
  const names = readdirSync(directory, { recursive: true }).map((name) => statSync(join(directory, String(name))))
  return names.reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0)
}
