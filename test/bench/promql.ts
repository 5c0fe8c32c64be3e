/**
 * PromQL by itself: what expressions over a day of 1,000 counters at 10 s cost, from columns in memory, at steps of 60 s. Reading
 * the columns from a disk comes on top.
 */
import { PreparedQuery } from '../../promql/query.ts'
import type { SeriesSource, SourceSeries } from '../../promql/series-source.ts'
import { optionsIn } from '../rig/options.ts'
import { benchPromqlPeers } from './promql-peers.ts'

const SERIES = 1_000
const SAMPLES = 8_640
const INTERVAL_MS = 10_000
const STEP_MS = 60_000
const START_MS = 1_795_742_640_000
const RUNS = 3

const EXPRESSIONS: Readonly<Record<string, string>> = {
  sumOfRates: 'sum by (job) (rate(x_total[5m]))',
  average: 'avg by (job) (x_total)',
  largest: 'topk(5, rate(x_total[5m]))',
  ratio: 'x_total / on(i) x_total',
  maxOfAnHour: 'max_over_time(x_total[1h])',
}

/** `--peers`: by HTTP, beside Prometheus and VictoriaMetrics. */
export async function benchPromql(argv: string[]): Promise<object> {
  const { peers, ...sizes } = optionsIn(argv, {
    peers: false,
    series: SERIES,
    hours: 24,
    step: 10,
    runs: RUNS,
    days: 90,
    long: 100,
  })
  if (peers) return benchPromqlPeers(sizes)
  const source = memory(counters())
  const figures = Object.entries(EXPRESSIONS).flatMap(([name, text]) => {
    const runs = Array.from({ length: RUNS }, () => measured(source, new PreparedQuery(text)))
    const [, median = Number.NaN] = runs.map(({ cpuSeconds }) => cpuSeconds).sort((left, right) => left - right)
    return [
      [`${name}CpuSeconds`, Number(median.toFixed(3))],
      [`${name}Steps`, runs[0]?.steps ?? 0],
    ]
  })
  return Object.fromEntries(figures)
}

function measured(source: SeriesSource, query: PreparedQuery): { cpuSeconds: number; steps: number } {
  const before = process.cpuUsage()
  const run = query.range(source, START_MS + 300_000, START_MS + SAMPLES * INTERVAL_MS, STEP_MS)
  let steps = 0
  while (run.next().done !== true) steps++
  const { user, system } = process.cpuUsage(before)
  return { cpuSeconds: (user + system) / 1e6, steps }
}

/** Each grows by a random 0 to 999, from the same seed in each run. */
function counters(): SourceSeries[] {
  let state = 1
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
  return Array.from({ length: SERIES }, (_, series) => {
    const [times, values] = [new Float64Array(SAMPLES), new Float64Array(SAMPLES)]
    let count = random(1_000_000)
    for (let sample = 0; sample < SAMPLES; sample++) {
      times[sample] = START_MS + sample * INTERVAL_MS + (series % 97) * 37
      count += random(1_000)
      values[sample] = count
    }
    const labels = Object.entries({ __name__: 'x_total', job: `job-${series % 10}`, i: `${series}` })
    return { labels, times, values }
  })
}

function memory(series: readonly SourceSeries[]): SeriesSource {
  return {
    *select() {
      yield* series
    },
  }
}
