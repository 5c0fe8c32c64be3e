/** Debian's Prometheus, with what it has stored: every sample of every series as it keeps it, stale markers and all (remote read). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { READ_HEADERS, readRequest, readResponse, type StoredSeries } from './remote-read.ts'

export const hasPrometheus = spawnSync('which', ['prometheus']).status === 0

/** The bits of the NaN that says that a series has ended. */
export const STALE_BITS = 0x7ff0000000000002n
const NEGATIVE_ZERO = 1n << 63n
/** All there is. */
const RANGE = '20y'

interface ActiveTarget {
  readonly scrapePool: string
  readonly health: string
  readonly lastScrape: string
  readonly lastError: string
}

export interface Scrape {
  readonly begunMs: number
  /** Empty if it has not failed. */
  readonly problem: string
  /** Whether it failed because the answer took too long. */
  readonly isLate: boolean
}

export class RealPrometheus {
  readonly url: string
  readonly #child: ChildProcess
  readonly #directory: string

  private constructor(url: string, child: ChildProcess, directory: string) {
    this.url = url
    this.#child = child
    this.#directory = directory
  }

  /** `config`: sections of prometheus.yml. */
  static async start(config: object): Promise<RealPrometheus> {
    const directory = mkdtempSync(join(tmpdir(), 'real-prometheus-'))
    // JSON is YAML, too.
    writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify(config))
    const url = `127.0.0.1:${await freePort()}`
    const given = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', '--web.enable-remote-write-receiver']
    const child = spawn('prometheus', [...given, `--web.listen-address=${url}`], { cwd: directory, stdio: 'ignore' })
    const started = new RealPrometheus(`http://${url}`, child, directory)
    try {
      await eventually(async () => expect((await fetch(`${started.url}/-/ready`)).status).toBe(200))
    } catch (error) {
      await started.stop()
      throw error
    }
    return started
  }

  /** All that is stored of series with this name or expression. */
  async read(names = '.+'): Promise<readonly StoredSeries[]> {
    const body = readRequest([{ fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, matchers: [['__name__', '=~', names]] }])
    const answer = await fetch(`${this.url}/api/v1/read`, { method: 'POST', headers: READ_HEADERS, body })
    const bytes = new Uint8Array(await answer.arrayBuffer())
    if (answer.status !== 200) throw new Error(`${answer.status}: ${Buffer.from(bytes)}`)
    const [found = []] = readResponse(bytes)
    const negative = await this.#negativeZeros(names)
    return found.map(({ labels, samples }) => {
      const times = negative.get(keyOf(labels))
      const signed = samples.map((sample) => (times?.has(sample.timeMs) ? { ...sample, bits: NEGATIVE_ZERO } : sample))
      return { labels, samples: signed }
    })
  }

  /** Where a sample is -0, by the series: protocol buffers leave out any zero. */
  async #negativeZeros(names: string): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
    const query = `{__name__=~${JSON.stringify(names)}}[${RANGE}]`
    const asked = new URLSearchParams({ query, time: String(Math.ceil(Date.now() / 1_000)) })
    const answer = await fetch(`${this.url}/api/v1/query?${asked}`)
    const { data } = (await answer.json()) as {
      data: { result: { metric: Record<string, string>; values: [number, string][] }[] }
    }
    return new Map(
      data.result.map(({ metric, values }) => {
        const zeros = values.filter(([, value]) => value === '-0')
        return [keyOf(Object.entries(metric)), new Set(zeros.map(([seconds]) => Math.round(seconds * 1_000)))]
      }),
    )
  }

  /** The last scrape of each job that has had one. */
  async scrapes(): Promise<ReadonlyMap<string, Scrape>> {
    const answer = await fetch(`${this.url}/api/v1/targets`)
    const { data } = (await answer.json()) as { data: { activeTargets: ActiveTarget[] } }
    const scraped = data.activeTargets.filter(({ health }) => health !== 'unknown')
    return new Map(
      scraped.map(({ scrapePool, lastScrape, lastError }) => [
        scrapePool,
        { begunMs: Date.parse(lastScrape), problem: lastError, isLate: /deadline exceeded/.test(lastError) },
      ]),
    )
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function keyOf(labels: Iterable<readonly [string, string]>): string {
  return JSON.stringify([...labels].sort())
}
