/** Debian's Prometheus, with what it has stored: every sample of every series as it keeps it, stale markers and all (remote read). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress, snappyUncompress } from 'hysnappy'
import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'

export const hasPrometheus = spawnSync('which', ['prometheus']).status === 0

/** The bits of the NaN that says that a series has ended. */
export const STALE_BITS = 0x7ff0000000000002n
const MATCHES = 2
const NEGATIVE_ZERO = 1n << 63n
/** All there is. */
const RANGE = '20y'
const MOST_BYTES = 64 << 20

export interface StoredSample {
  readonly timeMs: number
  readonly bits: bigint
}

/** A series by its labels, `__name__` among them. */
export interface StoredSeries {
  readonly labels: ReadonlyMap<string, string>
  readonly samples: readonly StoredSample[]
}

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
    const writer = new BinaryWriter()
    writer.tag(1, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).int64(0).tag(2, WireType.Varint).int64(Number.MAX_SAFE_INTEGER)
    writer.tag(3, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int32(MATCHES)
    writer.tag(2, WireType.LengthDelimited).string('__name__').tag(3, WireType.LengthDelimited).string(names)
    writer.join().join()
    const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' }
    const body = Uint8Array.from(snappyCompress(writer.finish()))
    const answer = await fetch(`${this.url}/api/v1/read`, { method: 'POST', headers, body })
    const bytes = new Uint8Array(await answer.arrayBuffer())
    if (answer.status !== 200) throw new Error(`${answer.status}: ${Buffer.from(bytes)}`)
    const [result] = messagesOf(uncompressed(bytes), 1)
    const negative = await this.#negativeZeros(names)
    return messagesOf(result ?? new Uint8Array(0), 1).map((message) => {
      const { labels, samples } = seriesOf(message)
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

function uncompressed(bytes: Uint8Array): Uint8Array {
  const length = new BinaryReader(bytes).uint32()
  if (length > MOST_BYTES) throw new Error(`${length} bytes`)
  return snappyUncompress(bytes, length)
}

/** The messages that a field of a message has. */
function messagesOf(bytes: Uint8Array, field: number): Uint8Array[] {
  const reader = new BinaryReader(bytes)
  const all: Uint8Array[] = []
  while (reader.pos < reader.len) {
    const [found, wire] = reader.tag()
    if (found === field && wire === WireType.LengthDelimited) all.push(reader.bytes())
    else reader.skip(wire)
  }
  return all
}

function seriesOf(bytes: Uint8Array): StoredSeries {
  const labels = new Map(
    messagesOf(bytes, 1).map((label) => {
      const texts = [1, 2].map((field) => Buffer.from(messagesOf(label, field)[0] ?? []).toString())
      return [texts[0] ?? '', texts[1] ?? ''] as const
    }),
  )
  return { labels, samples: messagesOf(bytes, 2).map(sampleOf) }
}

function sampleOf(bytes: Uint8Array): StoredSample {
  const reader = new BinaryReader(bytes)
  let [timeMs, bits] = [0, 0n]
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1 && wire === WireType.Bit64) bits = BigInt(reader.fixed64())
    else if (field === 2 && wire === WireType.Varint) timeMs = Number(reader.int64())
    else reader.skip(wire)
  }
  return { timeMs, bits }
}
