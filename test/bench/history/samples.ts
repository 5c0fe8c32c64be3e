/** What is written to a history and to its peers: series, and how their values go on. */
import { gunzipSync } from 'node:zlib'
import { encodeWriteRequest, type OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { Random } from '../../support/random.ts'
import { nodeExporterPages } from '../doors/exporters.ts'

type Identity = Pick<OutgoingSeries, 'name' | 'labels'>

export interface Workload {
  readonly name: string
  readonly series: readonly Identity[]
  /** The next value of a series: asked for each sample once, in the order of its times. */
  readonly next: (series: number) => number
}

/** So many samples are in a request of those that write what they have gathered. */
const SAMPLES_PER_REQUEST = 2_000
const SERIES_PER_REQUEST = 100
const SEED = 39
/** A counter grows by less than this. */
const MOST_GROWTH = 1_000
/** Scrapes of node_exporter; they are gone round, and counters go on from where they were. */
const PAGES = 40

function identities(name: string, count: number): Identity[] {
  return Array.from({ length: count }, (_, at) => {
    const labels = [
      ['instance', `host${at}:9100`],
      ['job', `job${at % 10}`],
    ] as const
    return { name, labels }
  })
}

/** Counters that grow by something at random: there are ten bits in each sample that no layout can save. */
export function counters(count: number): Workload {
  const random = new Random(SEED)
  const values = new Float64Array(count)
  const next = (series: number): number => (values[series]! += random.below(MOST_GROWTH))
  return { name: 'counters', series: identities('bench_requests_total', count), next }
}

/** Temperatures with one decimal that go up or down by up to half a degree. */
export function gauges(count: number): Workload {
  const random = new Random(SEED)
  const tenths = new Int32Array(count).fill(200)
  const next = (series: number): number => {
    tenths[series]! += random.below(11) - 5
    return tenths[series]! / 10
  }
  return { name: 'gauges', series: identities('bench_celsius', count), next }
}

/** Gives what node_exporter says of this machine, as so many series of one machine after the other. Throws if it is not installed. */
export async function scrapes(): Promise<(count: number) => Workload> {
  const pages = (await nodeExporterPages(PAGES)).map(({ body }) => samplesIn(gunzipSync(body).toString()))
  const [first = new Map<string, number>()] = pages
  const lines = [...first.keys()].filter((line) => pages.every((page) => page.has(line)))
  const columns = lines.map((line) => pages.map((page) => page.get(line)!))
  const isCounter = lines.map((line) => /_total(\{|$)/.test(line))
  return (count) => {
    const series = Array.from({ length: count }, (_, at) => {
      const { name, labels } = identityIn(lines[at % lines.length]!)
      return { name, labels: [...labels, ['instance', `host${Math.floor(at / lines.length)}:9100`] as const] }
    })
    const asked = new Uint32Array(count)
    const next = (at: number): number => {
      const values = columns[at % lines.length]!
      const round = asked[at]!++
      const value = values[round % PAGES]!
      return isCounter[at % lines.length]
        ? value + Math.floor(round / PAGES) * (values[PAGES - 1]! - values[0]!)
        : value
    }
    return { name: 'node_exporter', series, next }
  }
}

/** Values by the series as they are written. */
function samplesIn(page: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of page.split('\n')) {
    const at = line.lastIndexOf(' ')
    const value = Number(line.slice(at + 1))
    // What has no value is not played.
    if (at > 0 && !line.startsWith('#') && Number.isFinite(value)) samples.set(line.slice(0, at), value)
  }
  return samples
}

function identityIn(written: string): Identity {
  const [name = ''] = written.split('{')
  const labels = [...written.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label = '', text = '']) => [label, text] as const,
  )
  return { name, labels: labels.filter(([, text]) => text !== '') }
}

/** When the samples are. */
export interface Span {
  readonly startMs: number
  readonly stepMs: number
  /** Of each series. */
  readonly samples: number
}

/**
 * The requests with all samples, in as many lanes as senders are: what is in one lane is sent in order, so that the samples of each
 * series ascend.
 */
export function lanesOf(
  { series, next }: Workload,
  { startMs, stepMs, samples }: Span,
  lanes: number,
): Generator<Uint8Array>[] {
  return Array.from({ length: lanes }, (_, lane) => requests(lane))

  function* requests(lane: number): Generator<Uint8Array> {
    const [first, end] = [lane, lane + 1].map((each) => Math.floor((each * series.length) / lanes)) as [number, number]
    const rounds = SAMPLES_PER_REQUEST / SERIES_PER_REQUEST
    for (let from = 0; from < samples; from += rounds) {
      const length = Math.min(rounds, samples - from)
      for (let at = first; at < end; at += SERIES_PER_REQUEST) {
        const some = series.slice(at, Math.min(end, at + SERIES_PER_REQUEST)).map((identity, place) => {
          const times = Array.from({ length }, (_, index) => startMs + (from + index) * stepMs)
          return { ...identity, samples: times.map((timeMs) => ({ value: next(at + place), timeMs })) }
        })
        yield finish(encodeWriteRequest(some))
      }
    }
  }
}
