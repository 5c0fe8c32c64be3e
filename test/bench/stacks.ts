/**
 * What connects Cinnabar with today's stacks, beside Prometheus or vmagent doing the same work in the same run: `scrape`,
 * `remote-write`, `otlp` and `drain`. Debian: `apt-get install prometheus victoria-metrics`.
 */
import { setTimeout } from 'node:timers/promises'
import { encodeMetricsRequest } from '../../protocol/otlp/encode.ts'
import { encodeWriteRequest } from '../../protocol/prometheus/write-request.ts'
import { finish } from '../../server/kernel/core/fair-work.ts'
import { optionsIn } from '../rig/options.ts'
import { until } from '../rig/patience.ts'
import { cpuSecondsOf, memoryMiB } from '../rig/process-costs.ts'
import { OTLP_HEADERS, StackProgram, tokenOfPublisher, WRITE, WRITE_HEADERS } from '../rig/prometheus-stack.ts'
import { command, type, u64 } from '../support/bytes.ts'
import { ServerProcess } from '../support/server-process.ts'
import { WITHOUT_HISTORY } from './measured.ts'

const SERIES_PER_REQUEST = 2_000
/** Senders have a few requests under way. */
const AT_ONCE = 4
const LOOK_MS = 50

/** A server of ours, or of others, that takes requests by HTTP. */
interface Taker {
  readonly url: string
  readonly pid: number
  readonly headers: Readonly<Record<string, string>>
  remove(): Promise<void>
}

interface Cost {
  readonly seconds: number
  readonly cpu: number
}

export async function benchRemoteWrite(argv: string[]): Promise<object> {
  const { series, rounds } = sizesIn(argv)
  const ours = await cinnabar('prometheus.*')
  const theirs = await prometheus()
  try {
    const figures: Record<string, unknown> = {}
    for (const [name, taker] of [
      ['', ours],
      ['prometheus', theirs],
    ] as const) {
      const cost = await measured(taker, () => writeAll(taker, series, rounds))
      Object.assign(figures, named(name, cost, series * rounds, taker))
    }
    return figures
  } finally {
    await ours.remove()
    await theirs.remove()
  }
}

export async function benchOtlp(argv: string[]): Promise<object> {
  const { series, rounds } = sizesIn(argv)
  const ours = await cinnabar('otlp.*')
  const theirs = await prometheus()
  try {
    const cost = await measured(ours, () => postAll(ours, '/v1/metrics', OTLP_HEADERS, otlpBodies(series, rounds)))
    // Debian's Prometheus takes no OTLP: the same values by remote write.
    const beside = await measured(theirs, () => writeAll(theirs, series, rounds))
    return {
      ...named('', cost, series * rounds, ours),
      ...named('prometheusRemoteWrite', beside, series * rounds, theirs),
    }
  } finally {
    await ours.remove()
    await theirs.remove()
  }
}

export async function benchScrape(argv: string[]): Promise<object> {
  const { series, rounds } = sizesIn(argv)
  const ours = await cinnabar('prometheus.*')
  const theirs = await prometheus()
  try {
    for (const taker of [ours, theirs]) await writeAll(taker, series, 1)
    const figures: Record<string, unknown> = {}
    const all = encodeURIComponent('{__name__=~"bench.*"}')
    const paths = { '': '/metrics?metric=prometheus.*', prometheus: `/federate?match[]=${all}` }
    for (const [name, taker] of [
      ['', ours],
      ['prometheus', theirs],
    ] as const) {
      const url = taker.url + paths[name]
      const lines = (await (await fetch(url, { headers: taker.headers })).text()).split('\n')
      const samples = lines.filter((line) => line.startsWith('bench') || line.startsWith('prometheus_bench')).length
      if (samples !== series) throw new Error(`${url} shows ${samples} series of ${series}`)
      const cost = await measured(taker, async () => {
        for (let round = 0; round < rounds; round++) await (await fetch(url, { headers: taker.headers })).arrayBuffer()
      })
      Object.assign(figures, named(name, cost, series * rounds, taker))
    }
    return figures
  } finally {
    await ours.remove()
    await theirs.remove()
  }
}

export async function benchDrain(argv: string[]): Promise<object> {
  const { series, rounds } = sizesIn(argv)
  const figures: Record<string, unknown> = {}
  for (const name of ['', 'vmagent']) {
    const destination = await prometheus()
    const sender = await (name === '' ? cinnabar('prometheus.*', destination) : vmagent(destination))
    try {
      const cost = await measured(sender, async () => {
        await writeAll(sender, series, rounds)
        const hasAll = async (): Promise<boolean> => (await countAt(destination)) >= series * rounds
        await until('everything has come', hasAll, { everyMs: LOOK_MS, looks: Number.POSITIVE_INFINITY })
      })
      Object.assign(figures, named(name, cost, series * rounds, sender))
    } finally {
      await sender.remove()
      await destination.remove()
    }
  }
  return figures
}

function sizesIn(argv: string[]): { readonly series: number; readonly rounds: number } {
  return optionsIn(argv, { series: 100_000, rounds: 5 })
}

function named(name: string, { seconds, cpu }: Cost, values: number, { pid }: Taker): object {
  const key = (word: string): string => (name === '' ? word : name + word[0]?.toUpperCase() + word.slice(1))
  return {
    [key('valuesPerSecond')]: Math.round(values / seconds),
    [key('cpuPerMillion')]: ((cpu * 1e6) / values).toFixed(3),
    [key('peakRssMiB')]: memoryMiB(pid, 'VmHWM'),
  }
}

async function measured(taker: Taker, work: () => Promise<void>): Promise<Cost> {
  const cpu = cpuSecondsOf(taker.pid)
  const started = performance.now()
  await work()
  return { seconds: (performance.now() - started) / 1_000, cpu: cpuSecondsOf(taker.pid) - cpu }
}

const seriesName = (number: number): string => `bench_${number % 100}`
const labelsOf = (number: number) => [['host', `host${Math.floor(number / 100)}`] as const]

/** One sample of each series in each round; made as they are sent, so that they take no memory. */
function* writeBodies(series: number, rounds: number): Generator<Uint8Array> {
  const startMs = Date.now() - 60_000
  for (let round = 0; round < rounds; round++) {
    for (let from = 0; from < series; from += SERIES_PER_REQUEST) {
      const some = Array.from({ length: Math.min(SERIES_PER_REQUEST, series - from) }, (_, at) => {
        const samples = [{ value: round + at, timeMs: startMs + round * 1_000 }]
        return { name: seriesName(from + at), labels: labelsOf(from + at), samples }
      })
      yield finish(encodeWriteRequest(some))
    }
  }
}

function* otlpBodies(series: number, rounds: number): Generator<Uint8Array> {
  const start = (Date.now() - 60_000) * 1_000
  for (let round = 0; round < rounds; round++) {
    for (let from = 0; from < series; from += SERIES_PER_REQUEST) {
      const some = Array.from({ length: Math.min(SERIES_PER_REQUEST, series - from) }, (_, at) => {
        const attributes = labelsOf(from + at).map(([key, value]) => ({ key, value }))
        const point = { attributes, start: 0, time: start + round * 1_000_000, isEnd: false, value: round + at }
        return {
          name: seriesName(from + at),
          unit: '',
          description: '',
          data: { kind: 'gauge', points: [point] } as const,
        }
      })
      yield finish(encodeMetricsRequest(some))
    }
  }
}

/** So many samples of each series. */
export function writeAll(taker: Pick<Taker, 'url' | 'headers'>, series: number, rounds: number): Promise<void> {
  return postAll(taker, WRITE, WRITE_HEADERS, writeBodies(series, rounds))
}

/** Posts all, a few at once; those that are told to wait are sent again. */
async function postAll(
  { url, headers }: Pick<Taker, 'url' | 'headers'>,
  path: string,
  more: Readonly<Record<string, string>>,
  bodies: Iterator<Uint8Array>,
): Promise<void> {
  const post = async (): Promise<void> => {
    for (let next = bodies.next(); next.done !== true; next = bodies.next()) {
      for (;;) {
        const body = Uint8Array.from(next.value)
        const answer = await fetch(url + path, { method: 'POST', headers: { ...more, ...headers }, body })
        const text = await answer.text()
        if (answer.ok) break
        if (answer.status !== 429 && answer.status !== 503) throw new Error(`${url + path}: ${answer.status} ${text}`)
        await setTimeout(LOOK_MS)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, post))
}

/** A server that keeps what comes on a durable channel that nobody reads, or delivers it. */
async function cinnabar(family: string, drainTo?: StackProgram): Promise<Taker> {
  const drain = `[[drain]]
name = "d"
role = "operator"
url = "prometheus+${drainTo?.url}${WRITE}"
metrics = ["${family}"]
`
  const toml = `${WITHOUT_HISTORY}[channels]\nmax_bytes = 4294967296\n`
  const server = new ServerProcess(toml + (drainTo === undefined ? '' : drain))
  await server.start()
  const seat = await server.seat()
  const token = await tokenOfPublisher(seat, family, ';COLLECT *')
  if (drainTo === undefined) {
    const kept = await seat.defChannel(['max_bytes', type.uint64, u64(4_294_967_296)])
    const id = await seat.collect(family)
    await seat.ok((seq) => command.subscribe(seq, id, kept))
  }
  seat.peer.destroy()
  return {
    url: `http://127.0.0.1:${server.httpPort}`,
    pid: server.pid,
    headers: { authorization: `Bearer ${token}` },
    remove: () => server.remove(),
  }
}

async function prometheus(): Promise<StackProgram> {
  const program = await StackProgram.prometheus()
  await program.start()
  return program
}

async function vmagent(to: StackProgram): Promise<StackProgram> {
  const program = await StackProgram.vmagent(to)
  await program.start()
  return program
}

/** The samples that a Prometheus has taken since it started. */
async function countAt({ url }: Taker): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  let count = 0
  for (const [, number] of text.matchAll(
    /^prometheus_tsdb_head(?:_out_of_order)?_samples_appended_total(?:\{[^}]*\})? (\S+)$/gm,
  )) {
    count += Number(number)
  }
  return count
}
